//! The frames of windows as far as the library does not know them: what a frame leaves out, offsets that are no plain
//! numbers, frames without rows, and aggregates that can't take a row out again when a frame moves on.
//!
//! ```text
//! ... EXCLUDE TIES)                                            tokens: a mark on the last bound (`crate::syntax::tokens`)
//! sum(x) OVER (PARTITION BY '\0exclude TIES', y ORDER BY z ..) syntax tree: a constant among the parts (`spelling`)
//! framed(x) OVER (PARTITION BY y ORDER BY z ..)                plan: a function over the rows of each frame (`rule`)
//! ```
//!
//! That function works an aggregate out anew for each row (`function`), which is what PostgreSQL does, too.
mod forward;
mod function;
mod rule;
mod spelling;

pub(crate) use rule::Frames;
pub(crate) use spelling::spell_out;

/// The rows that a frame leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Exclusion {
    Nothing,
    CurrentRow,
    /// The current row and those that stand beside it in the order.
    Group,
    /// Those that stand beside the current row.
    Ties,
}

impl Exclusion {
    fn of(words: &str) -> Exclusion {
        match words {
            "CURRENT ROW" => Exclusion::CurrentRow,
            "GROUP" => Exclusion::Group,
            "TIES" => Exclusion::Ties,
            _ => Exclusion::Nothing,
        }
    }
}

/// With what the constant begins that says which rows are left out; no statement can spell it.
const MARK: &str = "\0exclude ";
