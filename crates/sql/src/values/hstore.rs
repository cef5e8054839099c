//! `hstore`: pairs of texts, of which each key is there once. A value is kept as its text in one form, in the order of PostgreSQL: by the
//! length of keys, then by their bytes.
//!
//! ```text
//! b=>2, a => NULL, "x y"=>"1"      ->      "a"=>NULL, "b"=>"2", "x y"=>"1"
//! ```
use super::Misfit;

/// Keys with their values, which may be NULL.
pub(crate) type Pairs = Vec<(String, Option<String>)>;

/// Why a text is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PairsFault {
    /// At this byte stands what is not expected there.
    At(usize),
    /// More is expected.
    End,
}

impl PairsFault {
    /// PostgreSQL's message about a text.
    pub(crate) fn message(self, text: &str) -> String {
        match self {
            PairsFault::End => "Unexpected end of string".to_owned(),
            PairsFault::At(at) => {
                let sign = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
                format!("Syntax error near \"{sign}\" at position {at}")
            }
        }
    }
}

/// The pairs of a text, in their order.
pub(crate) fn parsed(text: &str) -> Result<Pairs, PairsFault> {
    let mut reader = Reader { text, at: 0 };
    let mut pairs = Vec::new();
    reader.blanks();
    while reader.at < text.len() {
        let (key, _) = reader.word()?;
        reader.blanks();
        reader.sign('=')?;
        reader.sign('>')?;
        reader.blanks();
        let (value, is_quoted) = reader.word()?;
        let is_null = !is_quoted && value.eq_ignore_ascii_case("null");
        pairs.push((key, Some(value).filter(|_| !is_null)));
        reader.blanks();
        if reader.at < text.len() {
            reader.sign(',')?;
            reader.blanks();
        }
    }
    Ok(ordered(pairs))
}

/// Pairs in their order, of those of one key the first.
pub(crate) fn ordered(mut pairs: Pairs) -> Pairs {
    pairs.sort_by(|(one, _), (other, _)| (one.len(), one.as_bytes()).cmp(&(other.len(), other.as_bytes())));
    pairs.dedup_by(|(key, _), (before, _)| key == before);
    pairs
}

/// The text of pairs.
pub(crate) fn written(pairs: &Pairs) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let pair = |(key, value): &(String, Option<String>)| {
        let value = value.as_deref().map_or_else(|| "NULL".to_owned(), quoted);
        format!("{}=>{value}", quoted(key))
    };
    pairs.iter().map(pair).collect::<Vec<_>>().join(", ")
}

/// A text in its one form.
pub(crate) fn canonical(text: &str) -> Result<String, Misfit> {
    if text.contains('\0') {
        return Err(Misfit::Encoding);
    }
    parsed(text).map(|pairs| written(&pairs)).map_err(Misfit::Pairs)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn next(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn blanks(&mut self) {
        while let Some(sign) = self.next().filter(char::is_ascii_whitespace) {
            self.at += sign.len_utf8();
        }
    }

    fn sign(&mut self, wanted: char) -> Result<(), PairsFault> {
        match self.next() {
            Some(sign) if sign == wanted => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(PairsFault::At(self.at)),
            None => Err(PairsFault::End),
        }
    }

    /// A key or a value, and whether it stands in quotes.
    fn word(&mut self) -> Result<(String, bool), PairsFault> {
        let is_quoted = self.next() == Some('"');
        if is_quoted {
            self.at += 1;
        }
        let (start, mut word) = (self.at, String::new());
        loop {
            let sign = match self.next() {
                Some('"') if is_quoted => {
                    self.at += 1;
                    return Ok((word, true));
                }
                None if is_quoted || self.at == start => return Err(PairsFault::End),
                None => return Ok((word, false)),
                Some(sign) if !is_quoted && (sign.is_ascii_whitespace() || matches!(sign, '=' | ',')) => {
                    return if self.at == start { Err(PairsFault::At(start)) } else { Ok((word, false)) };
                }
                Some(sign) => sign,
            };
            self.at += sign.len_utf8();
            if sign != '\\' {
                word.push(sign);
                continue;
            }
            let sign = self.next().ok_or(PairsFault::End)?;
            self.at += sign.len_utf8();
            word.push(sign);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_text() {
        let of = |text: &str| canonical(text).unwrap();
        assert_eq!(of(" b=>2,aa=>NULL , a=>\"x \\\"y\""), "\"a\"=>\"x \\\"y\", \"b\"=>\"2\", \"aa\"=>NULL");
        assert_eq!(of(""), "");
        for text in ["a=>1, b=>NULL", "\"\"=>\"\"", "c=>\"null\", \"\\\\\"=>x"] {
            assert_eq!(of(&of(text)), of(text));
        }
    }

    #[test]
    fn what_is_none_is_told() {
        let of = |text: &str| parsed(text).unwrap_err().message(text);
        assert_eq!(of("a"), "Unexpected end of string");
        assert_eq!(of("a=>1 b=>2"), "Syntax error near \"b\" at position 5");
        assert_eq!(of("=>1"), "Syntax error near \"=\" at position 0");
    }
}
