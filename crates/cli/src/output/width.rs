//! How wide text stands on a terminal, and how it is made safe to stand there.
use std::borrow::Cow;

use rustyline::GraphemeClusterMode;

/// Where a tab goes on to: the next multiple of this.
const TAB_STOP: usize = 8;

/// How many cells of a terminal a character takes: 2 for East Asian wide ones, 0 for combining ones.
pub fn char_width(char: char) -> usize {
    if char.is_ascii() {
        return usize::from(!char.is_ascii_control());
    }
    let mut utf8 = [0; 4];
    usize::from(GraphemeClusterMode::WcWidth.width(char.encode_utf8(&mut utf8)))
}

/// How many cells of a terminal a text takes.
pub fn text_width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// The text with its control characters made visible, line breaks aside: what data can hold must not steer the
/// terminal. Tabs become blanks up to the next stop.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|char| char.is_control() && char != '\n') {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    let mut column = 0;
    for char in text.chars() {
        match char {
            '\n' => {
                safe.push('\n');
                column = 0;
                continue;
            }
            '\t' => {
                let blanks = TAB_STOP - column % TAB_STOP;
                safe.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            '\r' => {
                safe.push_str("\\r");
                column += 2;
            }
            control if control.is_control() => {
                let code = u32::from(control);
                let escape = if control.is_ascii() { format!("\\x{code:02X}") } else { format!("\\u{code:04X}") };
                column += escape.len();
                safe.push_str(&escape);
            }
            other => {
                safe.push(other);
                column += char_width(other);
            }
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_is_in_cells() {
        assert_eq!(text_width("abc"), 3);
        assert_eq!(text_width("日本"), 4);
        assert_eq!(text_width("e\u{301}"), 1);
        assert_eq!(text_width(&"x".repeat(100_000)), 100_000);
    }

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(printable("a\x1b[2Jb\r"), "a\\x1B[2Jb\\r");
        assert_eq!(printable("a\u{85}"), "a\\u0085");
        assert_eq!(printable("a\tb\n\tc"), "a       b\n        c");
        assert!(matches!(printable("a\nb"), Cow::Borrowed(_)));
    }
}
