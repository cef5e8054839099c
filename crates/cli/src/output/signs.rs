//! The signs that the lines of aligned and expanded rows are drawn with.
use super::style::LineStyle;

/// The signs that a line between rows is drawn with: the line itself, its left end, its crossings, its right end.
pub(super) struct Rule {
    pub(super) line: &'static str,
    pub(super) left: &'static str,
    pub(super) middle: &'static str,
    pub(super) right: &'static str,
}

/// The signs of a line style: the rules above, below the names, and below the rows; what stands between columns.
pub(super) struct Signs {
    pub(super) top: Rule,
    pub(super) middle: Rule,
    pub(super) bottom: Rule,
    pub(super) between: &'static str,
    /// What ends a line of a value that has more of them.
    pub(super) more: &'static str,
    /// What stands where a value goes on below, and where it does so.
    pub(super) wrap: &'static str,
}

const ASCII_RULE: Rule = Rule { line: "-", left: "+", middle: "+", right: "+" };
const ASCII: Signs =
    Signs { top: ASCII_RULE, middle: ASCII_RULE, bottom: ASCII_RULE, between: "|", more: "+", wrap: "." };
const UNICODE: Signs = Signs {
    top: Rule { line: "─", left: "┌", middle: "┬", right: "┐" },
    middle: Rule { line: "─", left: "├", middle: "┼", right: "┤" },
    bottom: Rule { line: "─", left: "└", middle: "┴", right: "┘" },
    between: "│",
    more: "↵",
    wrap: "…",
};

/// The signs of a line style.
pub(super) fn signs(lines: LineStyle) -> &'static Signs {
    match lines {
        LineStyle::Ascii => &ASCII,
        LineStyle::Unicode => &UNICODE,
    }
}
