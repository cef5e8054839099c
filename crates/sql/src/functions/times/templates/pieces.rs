//! A template cut into its pieces: patterns, with what stands before and behind them, and text that is copied.
/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A pattern as it was written.
    Pattern {
        word: &'static str,
        /// How it was written tells how names are written.
        written: String,
        /// `FM`: no blanks and zeros that fill up.
        is_short: bool,
        /// `TH` or `th` behind it.
        ordinal: Option<Ordinal>,
    },
    Text(String),
}

/// How `st`, `nd`, `rd`, `th` are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ordinal {
    Upper,
    Lower,
}

/// The patterns, longer ones before those that they begin with.
const WORDS: [&str; 55] = [
    "HH24", "HH12", "HH", "MI", "SSSSS", "SSSS", "SS", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "A.M.",
    "AM", "P.M.", "PM", "Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "IDDD", "ID", "IW", "I", "B.C.", "BC",
    "A.D.", "AD", "MONTH", "MON", "MM", "DAY", "DY", "DDD", "DD", "D", "WW", "W", "CC", "J", "Q", "RM", "TZH", "TZM",
    "TZ", "OF", "FX", "TM",
];

/// Cuts a template into its pieces.
pub(super) fn cut(template: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut rest = template;
    let mut is_short = false;
    let literal = |pieces: &mut Vec<Piece>, text: &str| match pieces.last_mut() {
        Some(Piece::Text(before)) => before.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    };
    while let Some(sign) = rest.chars().next() {
        if let Some(after) = strip(rest, "FM") {
            (is_short, rest) = (true, after);
            continue;
        }
        if let Some((found, after)) = pattern(rest, is_short) {
            (is_short, rest) = (false, after);
            pieces.extend(found);
            continue;
        }
        rest = &rest[sign.len_utf8()..];
        match sign {
            // Text in double quotes is copied; a backslash takes the meaning of the next sign.
            '"' => {
                while let Some(sign) = rest.chars().next() {
                    rest = &rest[sign.len_utf8()..];
                    match sign {
                        '"' => break,
                        '\\' => {
                            if let Some(next) = rest.chars().next() {
                                rest = &rest[next.len_utf8()..];
                                literal(&mut pieces, next.encode_utf8(&mut [0; 4]));
                            }
                        }
                        other => literal(&mut pieces, other.encode_utf8(&mut [0; 4])),
                    }
                }
            }
            '\\' if rest.starts_with('"') => {
                rest = &rest[1..];
                literal(&mut pieces, "\"");
            }
            other => literal(&mut pieces, other.encode_utf8(&mut [0; 4])),
        }
    }
    pieces
}

/// The pattern that a template begins with, if it is one that says something, and what is behind it.
pub(super) fn pattern(text: &str, is_short: bool) -> Option<(Option<Piece>, &str)> {
    let word = WORDS.iter().find(|word| strip(text, word).is_some())?;
    let (written, after) = text.split_at(word.len());
    let (ordinal, after) = match after.get(..2) {
        Some("TH") => (Some(Ordinal::Upper), &after[2..]),
        Some("th") => (Some(Ordinal::Lower), &after[2..]),
        _ => (None, after),
    };
    let says_nothing = matches!(*word, "FX" | "TM");
    let pattern = || Piece::Pattern { word, written: written.to_owned(), is_short, ordinal };
    Some(((!says_nothing).then(pattern), after))
}

/// What is behind a word in whatever case.
pub(super) fn strip<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let start = text.get(..word.len())?;
    // Parts of days in mixed case, as `Am`, are none; other patterns may be written as one likes.
    start.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_cut() {
        let words = |template: &str| -> Vec<String> {
            let word = |piece: &Piece| match piece {
                Piece::Pattern { word, is_short, .. } => format!("{word}{}", if *is_short { "!" } else { "" }),
                Piece::Text(text) => format!("'{text}'"),
            };
            cut(template).iter().map(word).collect()
        };
        assert_eq!(words("YYYY-MM-DD"), ["YYYY", "'-'", "MM", "'-'", "DD"]);
        assert_eq!(words("FMDay, DDth \"of\" Month"), ["DAY!", "', '", "DD", "' of '", "MONTH"]);
        assert_eq!(words("HH24:MI:SS.US"), ["HH24", "':'", "MI", "':'", "SS", "'.'", "US"]);
    }
}
