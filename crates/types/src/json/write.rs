//! JSON as text.
use std::fmt::{self, Write};

use super::tree::Json;

/// A text in double quotes, with backslashes where JSON needs them.
pub(super) fn quoted(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for sign in text.chars() {
        match sign {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\u{8}' => out.write_str("\\b")?,
            '\u{c}' => out.write_str("\\f")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            control if control < ' ' => write!(out, "\\u{:04x}", u32::from(control))?,
            other => out.write_char(other)?,
        }
    }
    out.write_char('"')
}

impl Json {
    /// A text as JSON writes it, in double quotes.
    pub fn quote(text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 2);
        // Writing to a text does not fail.
        let _ = quoted(&mut out, text);
        out
    }

    /// The value with a line for each of its parts, each level four blanks further in.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        // Writing to a text does not fail.
        let _ = self.write_pretty(&mut out, 0);
        out
    }

    fn write_pretty(&self, out: &mut String, level: usize) -> fmt::Result {
        let line = |out: &mut String, level: usize| write!(out, "\n{:width$}", "", width = level * 4);
        match self {
            Json::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    line(out, level + 1)?;
                    item.write_pretty(out, level + 1)?;
                }
                line(out, level)?;
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    line(out, level + 1)?;
                    quoted(out, key)?;
                    out.push_str(": ");
                    value.write_pretty(out, level + 1)?;
                }
                line(out, level)?;
                out.push('}');
            }
            plain => write!(out, "{plain}")?,
        }
        Ok(())
    }
}

/// As `jsonb` is shown: one blank behind each `:` and `,`.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Boolean(value) => write!(f, "{value}"),
            Json::Number(number) => write!(f, "{number}"),
            Json::Text(text) => quoted(f, text),
            Json::Array(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    f.write_str(if at > 0 { ", " } else { "" })?;
                    write!(f, "{item}")?;
                }
                f.write_char(']')
            }
            Json::Object(members) => {
                f.write_char('{')?;
                for (at, (key, value)) in members.iter().enumerate() {
                    f.write_str(if at > 0 { ", " } else { "" })?;
                    quoted(f, key)?;
                    write!(f, ": {value}")?;
                }
                f.write_char('}')
            }
        }
    }
}
