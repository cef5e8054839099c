//! Secondary indexes: from the values of some columns to the records that have or had them.
//!
//! ```text
//! writer    append the version -> enter its keys -> ... -> commit
//! reader    take a view -> entries of the range, in order -> the version of each record that the view sees
//!           -> passed on if that version has the entry's key
//! ```
//!
//! An index has an entry (key, base Rid) for every key of every version of a record that a snapshot may still see,
//! and perhaps more: entries stay when a version is overwritten or rolled back. So a reader checks the key on the
//! version that it sees (L-Store, section 3). As a record has one visible version, and that has one key, no record
//! comes twice, and those that come are in the order of their keys.
//!
//! An index is not versioned: it serves every snapshot from the table's horizon on, also from before it was made, and a
//! definition is there for everybody once it is committed, whatever their snapshot. The log has its definition only; checkpoints
//! have an image of its entries as well, from which it is filled when it is first used, and from the table where there is none.
//!
//! **Expressions and predicates.** A key may be worked out of a row, and an index may be of some rows only
//! (`computed`). Such keys follow the rules above: a version without a key has no entry, and a change of a column
//! that an index reads may give the record another key, one where it had none, or none. Nothing is taken out then,
//! as older snapshots still find the version before; readers pass over the one that has no key.
//!
//! **Entries that are no longer needed** are those of records that were rolled back, which go at once, and those of
//! versions that were given up, which the merge threads take out from time to time, in the primary key as well.
//!
//! Imports the terms only. Entering what a table has (`state/index_build.rs`), reading rows through an index
//! (`table/index_scan.rs`) and sweeping (`background/sweep.rs`) stand in the rooms above.
//!
//! | module | subject |
//! |---|---|
//! | `definition` | what an index is of |
//! | `data` | an index, and the list of a table's |
//! | `computed` | keys that are worked out by expressions, and which rows have one |
//! | `order`, `range` | keys that compare as rows do, and what an index is asked for |
//! | `space`, `extents` | windows in space, and where values lie in it |
//! | `inverted`, `inverted_lists` | by what an inverted index knows values, and the records that it leads to |
//! | `space_entries`, `box_entries` | the structures that are asked for windows |
//! | `entries` | the structures of the `index` crate behind one interface |
//! | `blocks`, `resident` | what of an image is in memory, and how that is asked |
//! | `image`, `runs`, `directory` | what checkpoints have of an index, and its bytes |
//! | `primary_key` | the index of the primary key, and uniqueness |
pub(crate) mod blocks;
mod box_entries;
mod box_image;
pub(crate) mod computed;
pub(crate) mod data;
pub(crate) mod definition;
pub(crate) mod directory;
pub(crate) mod entries;
pub(crate) mod extents;
pub(crate) mod image;
pub(crate) mod inverted;
mod inverted_lists;
pub(crate) mod order;
pub(crate) mod primary_key;
pub(crate) mod range;
mod resident;
pub(crate) mod runs;
pub(crate) mod space;
pub(crate) mod space_entries;
