"""A deterministic corpus of 2,000 lines for tokenizers: code, CJK, emoji, Czech, white space, digits
and mixtures of them."""

import random

WORDS = {
    "code": ["def", "return", "for(int i=0;", "i<n;++i)", "{", "}", "=>", "self.x_", "!=", "0x1F",
             "std::vector<float>", "#include", "\t", "    ", "//", "/* x */", "\"s\\n\"", "'c'",
             "camelCase", "snake_case", "CONST_42", "a[i]", "->", "@property", "$var", "`ls`"],
    "cjk": ["你好", "世界", "。", "，", "日本語", "テスト", "ひらがな", "한국어", "문장", "漢字", "「引用」",
            "中文分詞", "１２３", "々", "ー", "𠮷野家", "　"],
    "emoji": ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "❤️", "🇨🇿", "🧑🏿‍🚀", "☺", "✓", "🀄", "e\u0301", "ﷺ", "\u200d", "\ufe0f"],
    "czech": ["Příliš", "žluťoučký", "kůň", "úpěl", "ďábelské", "ódy", "„uvozovky“", "č.", "např.",
              "se", "neměl", "Ň", "řeřicha", "I'll", "don't", "WE'RE", "naïve", "Straße"],
    "space": [" ", "  ", "   ", "\t", "\t\t ", "\u00a0", "\u2003", "\u200b", "\r\n", "\n\n", "\x0b", "\u2028",
              " " * 17, " \n "],
    "digits": ["0", "42", "1234567890", "3.14159", "1,000,000", "1e-9", "٣٤٥", "²", "½", "Ⅳ", "007", "-1",
               "12:34:56", "2024-02-29", "99%", "₡5"],
}


def line_of(kind, rng):
    pool = WORDS[kind] if kind != "mixed" else [word for words in WORDS.values() for word in words]
    words = [rng.choice(pool) for _ in range(rng.randint(1, 14))]
    joiner = rng.choice(["", " ", " ", " "]) if kind != "space" else rng.choice(["", "x", " y"])
    return joiner.join(words)


def corpus(count=2000, seed=20240229):
    rng = random.Random(seed)
    kinds = [*WORDS, "mixed", "mixed"]
    return [line_of(kinds[i % len(kinds)], rng) for i in range(count)]
