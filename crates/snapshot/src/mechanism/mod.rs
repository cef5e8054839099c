//! The ways to keep an instant of memory, behind one trait.
//!
//! | mechanism | begins by | the first update of a shared page | readers |
//! |---|---|---|---|
//! | [`physical`] | copying everything | costs nothing more | read their own memory |
//! | [`fork`] | copying the page table | faults, and the system copies the page | ask the child process |
//! | [`rewire`] | mapping the file once more | finds a stamp; the writer copies and rewires | read the second mapping |
//! | [`protect`] | protecting all pages | faults; a thread copies and rewires | likewise |
pub(crate) mod copy;
pub(crate) mod file;
pub(crate) mod fork;
pub(crate) mod memory;
pub(crate) mod physical;
pub(crate) mod protect;
pub(crate) mod rewire;
pub(crate) mod userfault;
