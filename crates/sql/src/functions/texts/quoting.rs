//! Texts as parts of statements: `quote_literal`, `quote_ident`, `quote_nullable`, and `format`, whose pattern says where
//! arguments stand as they are (`%s`), as names (`%I`) and as literals (`%L`).
use datafusion::logical_expr::ScalarUDF;

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, text};
use crate::syntax::identifiers::quoted;

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    const LITERAL: &[Variant] = &[Variant::strict(&[Kind::Any], Kind::Text, |row| some(literal(text(row.first()))))];
    const IDENT: &[Variant] = &[Variant::strict(&[Kind::Text], Kind::Text, |row| some(quoted(text(row.first()))))];
    const NULLABLE: &[Variant] = &[Variant::with_nulls(&[Kind::Any], Kind::Text, |row| {
        some(if row == [None] { "NULL".to_owned() } else { literal(text(row.first())) })
    })];
    const FORMAT: &[Variant] = &[Variant::variadic(&[Kind::Text, Kind::Any], Kind::Text, format_row)];
    let named: [(&'static str, &'static [Variant]); 4] =
        [("quote_literal", LITERAL), ("quote_ident", IDENT), ("quote_nullable", NULLABLE), ("format", FORMAT)];
    named.into_iter().map(|(name, variants)| function(name, variants))
}

fn some(text: String) -> Result<Option<Cell>, SqlError> {
    Ok(Some(Cell::Text(text)))
}

/// A text as a literal.
fn literal(text: &str) -> String {
    let is_escaped = text.contains('\\');
    let doubled = text.replace('\'', "''").replace('\\', "\\\\");
    format!("{}'{doubled}'", if is_escaped { "E" } else { "" })
}

fn format_row(row: &[Option<Cell>]) -> Result<Option<Cell>, SqlError> {
    match row.split_first() {
        Some((Some(Cell::Text(pattern)), args)) => Format { pattern, args, next: 0 }.run().map(Cell::Text).map(Some),
        _ => Ok(None),
    }
}

/// A pattern, its arguments, and which of them comes next.
struct Format<'a> {
    pattern: &'a str,
    args: &'a [Option<Cell>],
    next: usize,
}

/// How wide a piece is at least, and where it stands then.
struct Width {
    chars: usize,
    is_left: bool,
}

impl Format<'_> {
    fn run(&mut self) -> Result<String, SqlError> {
        let mut out = String::new();
        let mut rest = self.pattern;
        while let Some((before, after)) = rest.split_once('%') {
            out.push_str(before);
            rest = match after.strip_prefix('%') {
                Some(after) => {
                    out.push('%');
                    after
                }
                None => self.piece(after, &mut out)?,
            };
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Writes what stands behind a percent sign, and gives the rest.
    fn piece<'p>(&mut self, text: &'p str, out: &mut String) -> Result<&'p str, SqlError> {
        let mut rest = text;
        let mut place = None;
        let mut width = Width { chars: 0, is_left: false };
        let (number, after) = number(rest)?;
        let mut is_width_known = false;
        match (number, after.strip_prefix('$')) {
            (Some(0), Some(_)) => return Err(wrong("format specifies argument 0, but arguments are numbered from 1")),
            (Some(at), Some(after)) => (place, rest) = (Some(at - 1), after),
            (Some(chars), None) => (width.chars, rest, is_width_known) = (chars, after, true),
            (None, _) => {}
        }
        while let Some(after) = rest.strip_prefix('-') {
            (width.is_left, rest) = (true, after);
        }
        if !is_width_known {
            rest = self.width(rest, &mut width)?;
        }
        let kind = rest.chars().next().ok_or_else(unterminated)?;
        let at = place.unwrap_or(self.next);
        if !matches!(kind, 's' | 'I' | 'L') {
            let hint = "For a single \"%\" use \"%%\".";
            return Err(wrong(&format!("unrecognized format() type specifier \"{kind}\"")).hint(hint));
        }
        let value = self.args.get(at).ok_or_else(|| wrong("too few arguments for format()"))?;
        self.next = at + 1;
        let piece = match (kind, value) {
            ('I', None) => {
                return Err(SqlError::new("22004", "null values cannot be formatted as an SQL identifier"));
            }
            ('L', None) => "NULL".to_owned(),
            ('I', value) => quoted(text_of(value)),
            ('L', value) => literal(text_of(value)),
            (_, value) => text_of(value).to_owned(),
        };
        let chars = width.chars;
        out.push_str(&if width.is_left { format!("{piece:<chars$}") } else { format!("{piece:>chars$}") });
        Ok(&rest[kind.len_utf8()..])
    }

    /// A width that is a number, or `*` or `*1$` for that of an argument.
    fn width<'p>(&mut self, text: &'p str, width: &mut Width) -> Result<&'p str, SqlError> {
        let Some(after) = text.strip_prefix('*') else {
            let (chars, rest) = number(text)?;
            width.chars = chars.unwrap_or(0);
            return Ok(rest);
        };
        let (place, rest) = number(after)?;
        let (at, rest) = match (place, rest.strip_prefix('$')) {
            (Some(0), Some(_)) => return Err(wrong("format specifies argument 0, but arguments are numbered from 1")),
            (Some(at), Some(rest)) => (at - 1, rest),
            (None, _) => (self.next, rest),
            (Some(_), None) => return Err(wrong("width argument position must be ended by \"$\"")),
        };
        let value = self.args.get(at).ok_or_else(|| wrong("too few arguments for format()"))?;
        self.next = at + 1;
        let chars = match value {
            None => 0,
            value => text_of(value).trim().parse::<i32>().map_err(|_| {
                SqlError::new("22P02", format!("invalid input syntax for type integer: \"{}\"", text_of(value)))
            })?,
        };
        width.is_left |= chars < 0;
        width.chars = chars.unsigned_abs() as usize;
        Ok(rest)
    }
}

fn text_of(value: &Option<Cell>) -> &str {
    text(Some(value))
}

/// The number that a text begins with, and the rest.
fn number(text: &str) -> Result<(Option<usize>, &str), SqlError> {
    let end = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 {
        return Ok((None, text));
    }
    let number = text[..end].parse::<i32>().map_err(|_| SqlError::new("22003", "number is out of range"))?;
    Ok((usize::try_from(number).ok(), &text[end..]))
}

fn unterminated() -> SqlError {
    wrong("unterminated format() type specifier").hint("For a single \"%\" use \"%%\".")
}

fn wrong(message: &str) -> SqlError {
    SqlError::new("22023", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        let quoted = ["a", "_b1", "A", "a b", "select", "1a", "a\"b", ""].map(super::quoted);
        assert_eq!(quoted, ["a", "_b1", "\"A\"", "\"a b\"", "\"select\"", "\"1a\"", "\"a\"\"b\"", "\"\""]);
    }

    #[test]
    fn patterns_are_filled() {
        let args = [Some(Cell::Text("x".into())), None];
        let run = |pattern| Format { pattern, args: &args, next: 0 }.run().map_err(|error| error.sqlstate);
        assert_eq!(run("%s|%L|%%").as_deref(), Ok("x|NULL|%"));
        assert_eq!(run("%2$s%1$5s%1$-3s|").as_deref(), Ok("    xx  |"));
        assert_eq!((run("%2$I"), run("%z"), run("%s%s%s"), run("%")), {
            (Err("22004"), Err("22023"), Err("22023"), Err("22023"))
        });
    }
}
