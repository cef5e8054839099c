//! Entering what a table has into its indexes: when one is made while others write, and when one is first used after the database
//! was opened.
//!
//! ```text
//! opened: no entries --> first use, or first write to the table: one thread enters all, others that need the index wait --> filled
//!
//! with an image in order              of ranges that are behind what the table has; blocks of the image when they are needed
//! with another image                  its runs, but for records of ranges that are behind  |  of these ranges what the table has
//! without one, or if it is damaged    of all ranges what the table has
//! ```
//!
//! Runs and ranges are shared out among threads. The keys of a record come from [`lineage`]: the key of every version that
//! is kept, so that the index serves every snapshot from the table's horizon on.
use std::collections::HashSet;
use std::ops::RangeBounds;
use std::sync::atomic::Ordering;

use index::AddressSpaceError;
use lineage::{Cell, PageError, View};
use parking_lot::Mutex;
use types::{Rid, Snapshot, Timestamp};

use crate::error::{Error, Result};
use crate::keys::blocks::{BlockPlace, Blocks, Counting, bounds_of};
use crate::keys::computed::KeysOfRows;
use crate::keys::data::{BlockSource, IndexData};
use crate::keys::entries::LoadError;
use crate::keys::order::{Bounds, IndexKey, Keyed, ordered_integer};
use crate::keys::runs::Run;
use crate::state::share_out::share_out;
use crate::state::table_data::TableData;
use crate::terms::outcomes::{OnlyStamped, Transactions};

/// Enters everything that has committed into an index of the table, which every writer keeps already; returns once that is
/// done, with the records of versions for which an expression fails.
pub(crate) fn enter_committed(
    table: &TableData,
    index: &IndexData,
    transactions: &Transactions,
    is_interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<HashSet<Rid>> {
    // Nothing is given up meanwhile: a version that was in the tail a moment ago is in the history then.
    let (all, failing) = (table.storage.keep_all(), Mutex::new(HashSet::new()));
    debug_assert!(table.storage.keeps(all.from()), "invariant 3: versions of {:?} may go meanwhile", all.from());
    index.serve_from(all.from());
    share_out(table.storage.range_count(), |range| {
        if is_interrupted() {
            return Err(Error::Interrupted);
        }
        let (mut entered, mut loaded) = (Ok(()), Vec::new());
        let space = index.entries_so_far().space();
        let mut keys = KeysOfRows::new(index, |rid, keyed: Result<Keyed>| match keyed {
            Ok(keyed) if space.is_some() => loaded.push((keyed.key, rid)),
            Ok(keyed) if entered.is_ok() => entered = index.enter(&keyed.key, rid),
            Ok(_) => {}
            Err(_) => drop(failing.lock().insert(rid)),
        });
        let enter = |rid: Rid, cells: &[Cell<'_>]| keys.push(rid, cells);
        table.storage.for_each_committed_version(range, index.columns(), all.from(), transactions, enter)?;
        keys.finish();
        space.iter().for_each(|space| space.load(&loaded));
        entered
    })?;
    // What was loaded is kept up to here.
    index.entries_so_far().space().iter().for_each(|space| space.settle());
    Ok(failing.into_inner())
}

impl TableData {
    /// Sees to it that an index of the table has all its entries, before it is asked for the first time since the database was
    /// opened.
    ///
    /// No transaction has written to the table by then: each has all indexes filled before its first write to it
    /// ([`TableData::fill_indexes`]). Views may be held that are older than the table's horizon, and find what they see.
    ///
    /// # Errors
    /// [`Error::Page`](crate::error::Error::Page) if a page of the keys can't be read;
    /// [`Error::IndexWithoutRoom`](crate::error::Error::IndexWithoutRoom) if the index can't grow. The next caller tries again.
    #[inline]
    pub(crate) fn fill(&self, index: &IndexData) -> Result<()> {
        index.fill(|| enter_all(self, index))
    }

    /// Sees to it that the primary key's index has all its entries.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    #[inline]
    pub(crate) fn fill_primary_key(&self) -> Result<()> {
        self.primary_key.as_ref().map_or(Ok(()), |key| self.fill(&key.index))
    }

    /// Sees to it that all indexes have all their entries: before the first write of each transaction to the table.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    #[inline]
    pub(crate) fn fill_indexes(&self) -> Result<()> {
        if self.fills_late.load(Ordering::Acquire) { self.fill_all() } else { Ok(()) }
    }

    #[cold]
    fn fill_all(&self) -> Result<()> {
        self.all_indexes().try_for_each(|index| self.fill(&index))?;
        self.fills_late.store(false, Ordering::Release);
        debug_assert!(self.all_indexes().all(|index| index.is_filled()), "invariant 7: an index misses entries");
        Ok(())
    }
}

#[cold]
fn enter_all(table: &TableData, index: &IndexData) -> Result<()> {
    // Nothing is given up meanwhile but what no view holds.
    let (_all, from) = (table.storage.keep_all(), table.storage.kept().oldest());
    let to_order = Mutex::new(HashSet::new());
    let ranges = match enter_image(table, index)? {
        Some(behind) => behind,
        None => (0..table.storage.range_count()).collect(),
    };
    share_out(ranges.len(), |place| enter_range(table, index, (ranges[place], from), &to_order))?;
    if let Some(space) = index.entries_so_far().space() {
        space.settle();
        // Without an image all is found one by one.
        let _stays = space.bring_forward(true);
    }
    order(table, index, to_order.into_inner())
}

/// Enters what the image of an index has, if there is one, or leaves that to those that need it, block by block. Returns the ranges
/// whose records are still to be entered.
fn enter_image(table: &TableData, index: &IndexData) -> Result<Option<Vec<usize>>> {
    let Some(image) = index.imaged.image() else { return Ok(None) };
    let ranges = table.storage.range_count();
    let behind = image.behind(&index.imaged.counts(ranges));
    // What was not there when the log was replayed, or is entered from the table.
    let slots = (0..ranges).map(|range| if behind.contains(&range) { 0 } else { table.storage.range_len(range) });
    let counting = Counting::Below(slots.collect());
    index.imaged.count_only(counting.clone());
    debug_assert!(image.source.is_some(), "invariant 7: an image that is read nowhere");
    let places = || image.runs.iter().map(|run| image.place(run.blob)).collect::<Option<Vec<_>>>();
    let read = match image.blocks() {
        Some(blocks) if blocks.is_empty() => Ok(()),
        Some(blocks) => {
            index.begin_blocks(blocks, counting);
            Ok(())
        }
        None => places().ok_or_else(|| RunError::Unread("it is not there".into())).and_then(|runs| {
            share_out(runs.len(), |place| {
                let run = counting.read(&*runs[place].held).map_err(RunError::Unread)?;
                enter_run(index, run).map(drop)
            })
        }),
    };
    match read {
        Ok(()) => Ok(Some(behind.into_iter().filter(|range| *range < ranges).collect())),
        Err(RunError::NoRoom(error)) => Err(index.without_room(error)),
        Err(RunError::Unread(why)) => {
            // What was entered is right; all else comes from the table.
            distrust_image(table, index, &why);
            Ok(None)
        }
    }
}

fn distrust_image(table: &TableData, index: &IndexData, why: &str) {
    let (index_name, table) = (&index.definition.name, &table.name);
    eprintln!("lstore: index \"{index_name}\" of \"{table}\" is filled from the table, not from its image: {why}");
    index.imaged.set(None);
}

fn enter_run(index: &IndexData, run: Run) -> Result<Vec<IndexKey>, RunError> {
    index.entries_so_far().load(run).map_err(|error| match error {
        LoadError::NoRoom(error) => RunError::NoRoom(error),
        LoadError::OtherKeys => RunError::Unread("its keys are of another kind".into()),
    })
}

impl BlockSource for TableData {
    fn load(&self, index: &IndexData, blocks: &Blocks, (block, place): (usize, &BlockPlace)) -> Result<bool> {
        let read = blocks.with().read(&*place.held).map_err(RunError::Unread).and_then(|run| {
            index.note_read(&self.budget, run.bytes());
            enter_run(index, run)
        });
        match (read, blocks.with()) {
            // Where several records may have a key, nobody asks for the newest.
            (Ok(_), _) if !index.definition.unique => Ok(true),
            (Ok(mixed), _) => order(self, index, mixed.into_iter().collect()).map(|()| true),
            (Err(RunError::NoRoom(error)), _) => Err(index.without_room(error)),
            (Err(RunError::Unread(why)), Counting::Below(slots)) => {
                distrust_image(self, index, &why);
                enter_between(self, index, slots.len(), &bounds_of(blocks, block)).map(|()| false)
            }
            (Err(RunError::Unread(why)), Counting::All) => {
                // What ran when it left, and has committed since, may have no other trace in the table than a version that is not stamped.
                index.imaged.set(None);
                let subject = format!("a block of index \"{}\" of \"{}\"", index.definition.name, self.name);
                Err(PageError::of_blob(place.blob, &subject, why).into())
            }
        }
    }
}

/// Enters what the table had between some bounds in its first ranges when the index was first used; what came since is there.
fn enter_between(table: &TableData, index: &IndexData, ranges: usize, bounds: &Bounds) -> Result<()> {
    let (_all, from) = (table.storage.keep_all(), table.storage.kept().oldest());
    let to_order = Mutex::new(HashSet::new());
    share_out(ranges, |range| {
        let mut entered = Ok(());
        let mut keys = KeysOfRows::new(index, |rid, keyed: Result<Keyed>| {
            if let (Ok(Keyed { key, .. }), Ok(())) = (keyed, &entered)
                && bounds.contains(&(key.clone(), rid))
            {
                entered = enter_alone(index, &key, rid, &to_order);
            }
        });
        let enter = |rid: Rid, cells: &[Cell<'_>]| keys.push(rid, cells);
        table.storage.for_each_committed_version(range, index.columns(), from, &OnlyStamped, enter)?;
        keys.finish();
        entered
    })?;
    order(table, index, to_order.into_inner())
}

/// Enters a record alone; its key is noted if it has others.
fn enter_alone(index: &IndexData, key: &IndexKey, rid: Rid, to_order: &Mutex<HashSet<IndexKey>>) -> Result<()> {
    if index.enter_again(key, rid)? {
        to_order.lock().insert(key.clone());
    }
    Ok(())
}

/// Why a run of an image was not entered.
enum RunError {
    Unread(String),
    NoRoom(AddressSpaceError),
}

/// Enters what a range has, every version from a time on.
fn enter_range(
    table: &TableData,
    index: &IndexData,
    (range, from): (usize, Timestamp),
    to_order: &Mutex<HashSet<IndexKey>>,
) -> Result<()> {
    debug_assert!(range < table.storage.range_count(), "invariant 7: range {range} is behind, and is not there");
    let (mut entered, mut run) = (Ok(()), NeighbourRun::new(index, to_order));
    // The key of a record that was never changed is the one in its base page.
    if let [column] = index.columns()
        && index.entries_so_far().kiss().is_some()
        && !index.has_changed_keys()
        && !table.has_changed_keys()
    {
        let enter = |slot: usize, word: u64| {
            if entered.is_ok() {
                entered = run.enter(IndexKey::Word(ordered_integer(word as i64)), Rid::base(range, slot));
            }
        };
        if table.storage.for_each_base_word(range, *column, enter)? {
            return entered.and_then(|()| run.finish());
        }
    }
    let (space, mut loaded) = (index.entries_so_far().space(), Vec::new());
    // Versions for which an expression fails are from before the index.
    let mut keys = KeysOfRows::new(index, |rid, keyed: Result<Keyed>| match (keyed, &entered) {
        (Ok(Keyed { key, .. }), Ok(())) if space.is_some() => loaded.push((key, rid)),
        (Ok(Keyed { key, .. }), Ok(())) => entered = run.enter(key, rid),
        _ => {}
    });
    let enter = |rid: Rid, cells: &[Cell<'_>]| keys.push(rid, cells);
    table.storage.for_each_committed_version(range, index.columns(), from, &OnlyStamped, enter)?;
    keys.finish();
    space.iter().for_each(|space| space.load(&loaded));
    entered.and_then(|()| run.finish())
}

/// Enters records of a range, neighbours with ascending keys together where the index takes them so.
struct NeighbourRun<'i> {
    index: &'i IndexData,
    /// keys that have several records
    to_order: &'i Mutex<HashSet<IndexKey>>,
    /// ascending keys of records that follow `first`, not entered yet
    keys: Vec<IndexKey>,
    first: Rid,
}

impl<'i> NeighbourRun<'i> {
    /// So many are entered at a time.
    const KEYS_MAX: usize = 64;

    fn new(index: &'i IndexData, to_order: &'i Mutex<HashSet<IndexKey>>) -> NeighbourRun<'i> {
        NeighbourRun { index, to_order, keys: Vec::with_capacity(Self::KEYS_MAX), first: Rid::base(0, 0) }
    }

    fn enter(&mut self, key: IndexKey, rid: Rid) -> Result<()> {
        let is_next = rid.word() == self.first.word() + self.keys.len() as u64
            && self.keys.last().is_none_or(|last| *last < key)
            && self.keys.len() < Self::KEYS_MAX;
        if !is_next {
            self.finish()?;
        }
        if self.keys.is_empty() {
            self.first = rid;
        }
        self.keys.push(key);
        Ok(())
    }

    /// Enters those that are not entered yet.
    fn finish(&mut self) -> Result<()> {
        let mut done = 0;
        while done < self.keys.len() {
            let rid = Rid::base(self.first.range(), self.first.slot() + done);
            let together = self.index.entries_so_far().insert_new(&self.keys[done..], rid);
            if together == 0 {
                enter_alone(self.index, &self.keys[done], rid, self.to_order)?;
            }
            debug_assert!(together <= self.keys.len() - done, "invariant 7: more keys were entered than there are");
            done += together.max(1);
        }
        self.keys.clear();
        Ok(())
    }
}

/// Puts the records of each key in the order in which they got it. A lookup of the record that has the key now
/// relies on it, and does not come here meanwhile. One that is taken out by its writer meanwhile may stay, as a version that is no more.
fn order(table: &TableData, index: &IndexData, keys: HashSet<IndexKey>) -> Result<()> {
    let entries = index.entries_so_far();
    for key in keys {
        let mut rids: Vec<Rid> = entries.rids(&key).to_vec();
        if rids.len() > 1 {
            order_holders(table, &mut rids)?;
            rids.iter().for_each(|rid| entries.remove(&key, *rid));
            rids.iter().try_for_each(|rid| entries.insert(&key, *rid).map_err(|error| index.without_room(error)))?;
        }
    }
    Ok(())
}

/// Puts records that have had one key in the order in which they got it: a lookup of the one that has it begins at
/// the end. Of those that one commit inserted, those that it gave up come first; those that are not decided yet come last.
fn order_holders(table: &TableData, rids: &mut [Rid]) -> Result<()> {
    let mut holders = Vec::with_capacity(rids.len());
    for rid in rids.iter() {
        let inserted_at = table.storage.inserted_at(*rid)?;
        let view = |at: Timestamp| View { snapshot: Snapshot::at(at), outcomes: &OnlyStamped };
        let lived = match inserted_at {
            Some(at) => table.storage.read(view(at), *rid, &[], |_| ())?.is_some(),
            None => false,
        };
        holders.push(((inserted_at.is_none(), inserted_at, lived), *rid));
    }
    debug_assert_eq!(holders.len(), rids.len(), "invariant 7: a record would lose its place");
    holders.sort_by_key(|(order, _)| *order);
    rids.iter_mut().zip(holders).for_each(|(rid, (_, holder))| *rid = holder);
    Ok(())
}
