//! The program `gpu-bench` as a library: data, checks against the twins, roofs, timings.

pub mod check;
mod check_joins;
pub mod command;
pub(crate) mod data;
mod groupings;
mod joins;
mod optimizer;
mod report;
mod roofs;
mod searches;
mod timing;

/// How large the measured inputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// As small as can be, to see that everything runs: its figures mean nothing.
    Small,
    /// Several times the caches of a device.
    Full,
}

impl Size {
    /// The second number for full measurements, else the first.
    pub fn of(self, small: usize, full: usize) -> usize {
        match self {
            Self::Small => small,
            Self::Full => full,
        }
    }
}

/// Which cases are measured: all, or those that begin with a text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Only<'a>(pub Option<&'a str>);

impl Only<'_> {
    /// Whether this case is.
    pub fn takes(self, case: &str) -> bool {
        self.0.is_none_or(|text| case.starts_with(text))
    }

    /// Whether a case that begins so may be.
    pub fn may_take(self, begin: &str) -> bool {
        self.0.is_none_or(|text| text.starts_with(begin) || begin.starts_with(text))
    }
}
