//! Bringing base pages forward.
pub(crate) mod early;
pub(crate) mod inserted;
pub(crate) mod pages;
pub(crate) mod texts;
mod words;
