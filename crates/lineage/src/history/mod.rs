//! History: the versions of a range's records that have left the tail (L-Store, end of section 2.1).
//!
//! Tail records that are merged into base pages and older than every active snapshot are rewritten into history
//! pages: the versions of a record next to each other, records in the order of their slots, values that repeat left
//! out and the rest in few bits. [`HistoryPage`] is one page, [`History`] the short list of them that a range has.
//! Both are plain values that never change; the owner of the range publishes a new [`History`] in place of the old
//! one.
//!
//! | module | subject |
//! |---|---|
//! | `page` | one page, and reading a version |
//! | `chain` | the rules that shorten a record's versions |
//! | `words` | records of words, which take a shorter way into a page |
//! | `column` | the values of one column |
//! | `packed`, `positions` | streams of numbers and sets of places in few bits |
//!
//! # How it is read
//!
//! As the tail: a reader at *t* walks a record's tail records newer than [`History::through`], then its versions here,
//! newest first. Updates and deletes that started after *t* are passed over ([`History::versions_seen`] does so by a
//! search), snapshot records never; the first update or delete seen decides whether the record exists; a column comes
//! from the first version seen that has it, and from the base page if none has. (A column that the delta rule left out
//! of a version that the reader passes over is explicit in an older version of the page, so that a walk still meets it
//! before it turns to the base page.)
//!
//! # Why expiring changes nothing for a snapshot that is kept
//!
//! Versions that the same snapshots see become one within a page, wherever they lie in the chain: [`chain`] says
//! why no reader notices. The rest of this argument is about the oldest of them. A chain is cut in two: the
//! *settled part* is all that is older than the oldest update or delete which started after the oldest kept
//! snapshot (all of it where there is none), the rest is its *newer part*. Let *t* be a kept snapshot.
//!
//! 1. The newer part is not touched, so the walk does the same in it. It comes to its end with the same columns found
//!    and the same answer, or none yet, to whether the record exists.
//! 2. In the settled part the reader sees every version: updates and deletes because they started at or before the
//!    oldest snapshot, snapshot records always. So the rest of the walk does not depend on *t*: existence, if still open, is
//!    decided by the part's newest update or delete, a delete as well as an update; where it has none, by what is
//!    behind it, the base record. A missing column gets its newest value in the part, or if it has none there, that of
//!    the base page.
//! 3. The origin has that update's or delete's kind and start, or is a snapshot record where there is none, and every
//!    column of the part with its newest value. The reader sees it, as it saw all that it stands for, and it answers
//!    the same. A snapshot record at the top of the settled part belongs to an update in the newer part or to one that
//!    rolled back; that its values now stand in an update is the same to readers that see both.
//! 4. The delta rule stays true: a value that a version of the newer part left out is the newest one older than it in
//!    its page. Was that in the newer part, it is still there. Was it in the settled part, it is that part's newest
//!    value of the column, hence in the origin; and the origin is put in the page of the newest settled version, which
//!    is this page, as it lies between the two.
//! 5. The origin may go too if there is no newer part and no tail record of the record newer than history. Then all
//!    versions in existence started at or before the oldest snapshot, so the base pages, which have merged them all, are what
//!    every reader left sees, whether the newest of them is an update or a delete.
//!
//! Two duties follow for the owner. Only what all base pages have merged may be taken in (otherwise 5 fails). And once
//! a record has neither a tail record newer than history nor history, its next update begins anew: the columns that it
//! changes need a snapshot record even if they were updated long ago, because nothing else holds their values for the
//! readers before that update. A writer that is about to update such a record while its origin goes must be told.
pub(crate) mod chain;
pub(crate) mod column;
#[cfg(test)]
mod exact;
#[cfg(test)]
mod model;
pub(crate) mod packed;
pub(crate) mod page;
pub(crate) mod positions;
#[cfg(test)]
mod size;
mod words;

pub(crate) use chain::Values;
pub(crate) use page::{HistoryPage, NewVersion, Version};
pub(crate) use words::{ChainWords, WordReader, WordVersion};
