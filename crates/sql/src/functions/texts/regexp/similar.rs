//! Patterns of `SIMILAR TO` as regular expressions: `%` is any text, `_` any character; `|`, `*`, `+`, `?`, braces, parentheses
//! and brackets mean what they do there; all else stands for itself, as does what follows the escape character.
//!
//! In `substring(text SIMILAR pattern ESCAPE '#')` two marks `#"` cut the pattern into three parts, of which the first takes as
//! little as it can and the second is the result.
use crate::error::SqlError;

/// The regular expression that a pattern is.
pub(super) fn translate(pattern: &str, escape: &str) -> Result<String, SqlError> {
    let mut signs = escape.chars();
    let escape = signs.next();
    if signs.next().is_some() {
        let hint = "Escape string must be empty or one character.";
        return Err(SqlError::new("22025", "invalid escape string").hint(hint));
    }
    let is_cut = escape.is_some_and(|escape| pattern.contains(&format!("{escape}\"")));
    let mut out = String::from("^(?:");
    let (mut marks, mut is_escaped, mut in_brackets) = (0, false, false);
    for sign in pattern.chars() {
        // The part before the first mark takes as little as it can.
        let reluctant = if is_cut && marks == 0 { "?" } else { "" };
        if is_escaped {
            is_escaped = false;
            match sign {
                '"' if !in_brackets => {
                    out.push_str(match marks {
                        0 => ")(",
                        1 => ")(?:",
                        _ => return Err(too_many_marks()),
                    });
                    marks += 1;
                }
                other => out.extend(['\\', other]),
            }
        } else if Some(sign) == escape {
            is_escaped = true;
        } else if in_brackets {
            if sign == '\\' {
                out.push('\\');
            }
            out.push(sign);
            in_brackets = sign != ']';
        } else {
            match sign {
                '[' => {
                    in_brackets = true;
                    out.push('[');
                }
                '%' => {
                    out.push_str(".*");
                    out.push_str(reluctant);
                }
                '*' | '+' | '?' | '}' => {
                    out.push(sign);
                    out.push_str(reluctant);
                }
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => out.extend(['\\', sign]),
                other => out.push(other),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}

fn too_many_marks() -> SqlError {
    SqlError::new("2200C", "SQL regular expression may not contain more than two escape-double-quote separators")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_expressions() {
        let of = |pattern: &str| translate(pattern, "\\").unwrap();
        assert_eq!(of("a%_.(b|c)"), "^(?:a.*.\\.(?:b|c))$");
        assert_eq!(of("[a%]\\%"), "^(?:[a%]\\%)$");
        assert_eq!(translate("a#%", "#").unwrap(), "^(?:a\\%)$");
        assert_eq!(translate("%#\"o_b#\"%", "#").unwrap(), "^(?:.*?)(o.b)(?:.*)$");
        assert_eq!(translate("a", "##").unwrap_err().sqlstate, "22025");
        assert_eq!(translate("#\"#\"#\"", "#").unwrap_err().sqlstate, "2200C");
    }
}
