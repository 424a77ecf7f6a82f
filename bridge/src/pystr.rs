//! Python's str, list and dict methods that templates call and minijinja's pycompat lacks or spells
//! otherwise.

use minijinja::value::{from_args, Tuple, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

pub fn call(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let own = match value.kind() {
        ValueKind::String => string_method(value.as_str().unwrap_or_default(), method, args)?,
        ValueKind::Seq => seq_method(value, method, args)?,
        ValueKind::Map if method == "copy" && args.is_empty() => Some(value.clone()),
        _ => None,
    };
    match own {
        Some(value) => Ok(value),
        None => minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args),
    }
}

/// str.isspace() of one character: Unicode's white space and the ASCII separators.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn string_method(s: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let text = |s: &str| Ok(Some(Value::from(s)));
    match method {
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            text(s.strip_prefix(prefix).unwrap_or(s))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            text(s.strip_suffix(suffix).unwrap_or(s))
        }
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<&str>,) = from_args(args)?;
            let drop = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
            let mut rest = s;
            if method != "rstrip" {
                rest = rest.trim_start_matches(drop);
            }
            if method != "lstrip" {
                rest = rest.trim_end_matches(drop);
            }
            text(rest)
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            partition(s, separator, method == "rpartition").map(Some)
        }
        "split" => {
            let (separator, limit): (Option<&str>, Option<i64>) = from_args(args)?;
            split(s, separator, limit).map(Some)
        }
        "rsplit" => {
            let (separator, limit): (Option<&str>, Option<i64>) = from_args(args)?;
            rsplit(s, separator, limit).map(Some)
        }
        "splitlines" => {
            let (keep_ends,): (Option<bool>,) = from_args(args)?;
            Ok(Some(split_lines(s, keep_ends.unwrap_or(false))))
        }
        "index" | "rindex" => {
            let (what,): (&str,) = from_args(args)?;
            let at = if method == "index" { s.find(what) } else { s.rfind(what) };
            let at = at.ok_or_else(|| invalid("substring not found"))?;
            Ok(Some(Value::from(s[..at].chars().count())))
        }
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            let (sign, digits) = match s.chars().next() {
                Some(c @ ('+' | '-')) => (c.to_string(), &s[1..]),
                _ => (String::new(), s),
            };
            let zeros = padding(width, s)?;
            Ok(Some(Value::from(format!("{sign}{}{digits}", "0".repeat(zeros)))))
        }
        "ljust" | "rjust" | "center" => {
            let (width, fill): (usize, Option<&str>) = from_args(args)?;
            let (missing, fill) = (padding(width, s)?, fill.unwrap_or(" "));
            let left = match method {
                "ljust" => 0,
                "rjust" => missing,
                // CPython puts the odd space left only if the width is odd (unicode_center).
                _ => missing / 2 + (missing & width & 1),
            };
            let (before, after) = (fill.repeat(left), fill.repeat(missing - left));
            Ok(Some(Value::from(format!("{before}{s}{after}"))))
        }
        "casefold" => text(&s.to_lowercase()),
        "swapcase" => {
            let swap = |c: char| -> String {
                if c.is_uppercase() {
                    c.to_lowercase().collect()
                } else {
                    c.to_uppercase().collect()
                }
            };
            Ok(Some(Value::from(s.chars().map(swap).collect::<String>())))
        }
        "isdecimal" => {
            let digits = !s.is_empty() && s.chars().all(|c| c.is_ascii_digit());
            Ok(Some(Value::from(digits)))
        }
        _ => Ok(None),
    }
}

fn seq_method(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    match method {
        "copy" => {
            let () = from_args(args)?;
            Ok(Some(value.clone()))
        }
        "index" => {
            let (what,): (&Value,) = from_args(args)?;
            let at = value.try_iter()?.position(|item| item == *what);
            at.map(|at| Some(Value::from(at))).ok_or_else(|| invalid("value is not in the list"))
        }
        _ => Ok(None),
    }
}

fn invalid(text: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, text)
}

/// How many characters are missing to `width`; absurd widths are refused, since fuel counts only
/// what a template loops over.
fn padding(width: usize, s: &str) -> Result<usize, Error> {
    if width > 1_000_000 {
        return Err(invalid("the width is above 1,000,000"));
    }
    Ok(width.saturating_sub(s.chars().count()))
}

fn partition(s: &str, separator: &str, last: bool) -> Result<Value, Error> {
    if separator.is_empty() {
        return Err(invalid("empty separator"));
    }
    let at = if last { s.rfind(separator) } else { s.find(separator) };
    let parts = match at {
        Some(at) => [&s[..at], separator, &s[at + separator.len()..]],
        None if last => ["", "", s],
        None => [s, "", ""],
    };
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}

fn list<'a>(parts: impl Iterator<Item = &'a str>) -> Value {
    Value::from(parts.map(Value::from).collect::<Vec<_>>())
}

/// None or a negative number: no limit.
fn split_limit(limit: Option<i64>) -> usize {
    limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX - 1)
}

fn split(s: &str, separator: Option<&str>, limit: Option<i64>) -> Result<Value, Error> {
    let limit = split_limit(limit);
    match separator {
        Some("") => Err(invalid("empty separator")),
        Some(separator) => Ok(list(s.splitn(limit + 1, separator))),
        None => {
            let mut parts = Vec::new();
            let mut rest = s.trim_start_matches(is_space);
            while !rest.is_empty() && parts.len() < limit {
                let end = rest.find(is_space).unwrap_or(rest.len());
                parts.push(&rest[..end]);
                rest = rest[end..].trim_start_matches(is_space);
            }
            if !rest.is_empty() {
                parts.push(rest);
            }
            Ok(list(parts.into_iter()))
        }
    }
}

fn rsplit(s: &str, separator: Option<&str>, limit: Option<i64>) -> Result<Value, Error> {
    let limit = split_limit(limit);
    let mut parts: Vec<&str> = Vec::new();
    match separator {
        Some("") => return Err(invalid("empty separator")),
        Some(separator) => parts.extend(s.rsplitn(limit + 1, separator)),
        None => {
            let mut rest = s.trim_end_matches(is_space);
            while !rest.is_empty() && parts.len() < limit {
                let word = rest.rsplit(is_space).next().unwrap_or(rest);
                parts.push(word);
                rest = rest[..rest.len() - word.len()].trim_end_matches(is_space);
            }
            if !rest.is_empty() {
                parts.push(rest);
            }
        }
    }
    Ok(list(parts.into_iter().rev()))
}

/// str.splitlines(): every line boundary that Python knows, `\r\n` being one.
fn split_lines(s: &str, keep_ends: bool) -> Value {
    let is_end = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut lines = Vec::new();
    let mut rest = s;
    while let Some(at) = rest.find(is_end) {
        let end = rest[at..].chars().next().map_or(0, char::len_utf8);
        let end = at + if rest[at..].starts_with("\r\n") { 2 } else { end };
        lines.push(&rest[..if keep_ends { end } else { at }]);
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    list(lines.into_iter())
}
