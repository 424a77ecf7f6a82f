//! Python's spelling of numbers and of json.dumps, which chat templates print through `tojson`.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

/// repr(float): the shortest digits, with an exponent below 1e-4 and from 1e16 on.
pub fn float_repr(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_string();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let scientific = format!("{x:e}");
    let (digits, exponent) = scientific.split_once('e').expect("{:e} prints an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    if x == 0.0 || (-4..16).contains(&exponent) {
        let plain = format!("{x}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The options of transformers' `tojson` filter, which passes them to json.dumps.
struct Style {
    ensure_ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

impl Style {
    /// `args` in the order of the Python signature: ensure_ascii, indent, separators, sort_keys.
    fn new(args: &[Value], kwargs: &Kwargs) -> Result<Style, Error> {
        if args.len() > 4 {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        let option = |position: usize, name: &str| -> Result<Value, Error> {
            match args.get(position) {
                Some(value) => Ok(value.clone()),
                None => Ok(kwargs.get::<Option<Value>>(name)?.unwrap_or(Value::from(()))),
            }
        };
        let indent = option(1, "indent")?;
        let indent = match indent.kind() {
            ValueKind::None | ValueKind::Undefined => None,
            ValueKind::String => Some(indent.to_string()),
            // json.dumps takes True for 1, and a negative number for 0.
            ValueKind::Bool => Some(" ".repeat(usize::from(indent.is_true()))),
            _ => Some(" ".repeat(i64::try_from(indent)?.clamp(0, 64) as usize)),
        };
        let separators = option(2, "separators")?;
        let (item_separator, key_separator) = if separators.is_none() || separators.is_undefined() {
            (if indent.is_some() { "," } else { ", " }.to_string(), ": ".to_string())
        } else {
            (
                separators.get_item_by_index(0)?.to_string(),
                separators.get_item_by_index(1)?.to_string(),
            )
        };
        let style = Style {
            ensure_ascii: option(0, "ensure_ascii")?.is_true(),
            indent,
            item_separator,
            key_separator,
            sort_keys: option(3, "sort_keys")?.is_true(),
        };
        kwargs.assert_all_used()?;
        Ok(style)
    }

    fn newline(&self, depth: usize, out: &mut String) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            for _ in 0..depth {
                out.push_str(indent);
            }
        }
    }

    fn string(&self, text: &str, out: &mut String) {
        use std::fmt::Write;
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if (c as u32) < 0x20 || (self.ensure_ascii && !(' '..='~').contains(&c)) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(out, "\\u{unit:04x}").expect("a String takes all");
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }

    fn key(&self, key: &Value) -> Result<String, Error> {
        match key.kind() {
            ValueKind::String => Ok(key.to_string()),
            ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                let mut text = String::new();
                self.scalar(key, &mut text)?;
                Ok(text)
            }
            kind => Err(not_serializable(&format!("a key of type {kind}"))),
        }
    }

    fn scalar(&self, value: &Value, out: &mut String) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
            ValueKind::Number => {
                out.push_str(&match f64::try_from(value.clone())? {
                    x if x.is_nan() => "NaN".to_string(),
                    x if x.is_infinite() => {
                        if x > 0.0 { "Infinity" } else { "-Infinity" }.to_string()
                    }
                    x => float_repr(x),
                });
            }
            ValueKind::String => self.string(value.as_str().unwrap_or_default(), out),
            kind => return Err(not_serializable(&format!("a value of type {kind}"))),
        }
        Ok(())
    }

    fn value(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.items(&items, ['[', ']'], depth, out, |item, out| {
                    self.value(item, depth + 1, out)
                })
            }
            ValueKind::Map => {
                let mut items = Vec::new();
                for key in value.try_iter()? {
                    items.push((self.key(&key)?, value.get_item(&key)?));
                }
                if self.sort_keys {
                    items.sort_by(|a, b| a.0.cmp(&b.0));
                }
                self.items(&items, ['{', '}'], depth, out, |(key, item), out| {
                    self.string(key, out);
                    out.push_str(&self.key_separator);
                    self.value(item, depth + 1, out)
                })
            }
            _ => self.scalar(value, out),
        }
    }

    fn items<T>(
        &self,
        items: &[T],
        brackets: [char; 2],
        depth: usize,
        out: &mut String,
        write: impl Fn(&T, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        out.push(brackets[0]);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push_str(&self.item_separator);
            }
            self.newline(depth + 1, out);
            write(item, out)?;
        }
        if !items.is_empty() {
            self.newline(depth, out);
        }
        out.push(brackets[1]);
        Ok(())
    }
}

fn not_serializable(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("tojson cannot write {what}"))
}

/// transformers' `tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub fn tojson(value: &Value, args: &[Value], kwargs: Kwargs) -> Result<Value, Error> {
    let style = Style::new(args, &kwargs)?;
    let mut out = String::new();
    style.value(value, 0, &mut out)?;
    Ok(Value::from(out))
}
