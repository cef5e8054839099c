//! The pages of a range: insert, tail, base and history pages, and their values.
pub(crate) mod archived;
pub(crate) mod base;
pub(crate) mod contents;
pub(crate) mod heap;
pub(crate) mod history;
pub(crate) mod insert;
pub(crate) mod interrupted;
pub(crate) mod lent;
pub(crate) mod options;
pub(crate) mod point_rows;
pub(crate) mod sequence;
pub(crate) mod tail;
pub(crate) mod text;
pub(crate) mod wide;
pub(crate) mod words;
