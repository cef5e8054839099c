//! The entries of one index, whichever way it keeps them.
//!
//! | method | keys | structure |
//! |---|---|---|
//! | `btree` | words, bytes | a B+tree of pairs (key, Rid); if unique, of keys with their Rids |
//! | `kiss` | words | a KISS-Tree of keys with their Rids |
//! | `hash` | words, bytes | a hash table of keys with their Rids |
//! | `gin` | bytes: terms, several of a row | a B+tree of pairs (term, Rid) |
//! | `bwd`, `gist` | whole numbers; extents | see [`super::space_entries`] |
//!
//! In an index with keys that are words, rows with NULL stand in a tree of their own, behind all others.
use std::ops::{Bound, RangeBounds};

use index::{
    AddressSpaceError, BPlusTree, Bytes, Change, HashIndex, Holder, InsertError, Key, KeyBytes, KeyRids, KissIndex,
    ListedRids, UniqueTree, WordIndex,
};
use parking_lot::Mutex;
use smallvec::SmallVec;
use sync::Guard;
use types::Rid;

use super::definition::{IndexDefinition, IndexMethod};
use super::order::{Bounds, Direction, IndexKey, KeyShape, only_key};
use super::runs::Run;
use super::space_entries::SpaceEntries;

/// An entry.
pub(crate) type Entry = (IndexKey, Rid);

enum Keyed {
    Words(BPlusTree<(u64, Rid), ()>),
    Bytes(BPlusTree<(Bytes, Rid), ()>),
    UniqueWords(UniqueTree<u64>),
    UniqueBytes(UniqueTree<Bytes>),
    Kiss(KissIndex),
    HashedWords(WordIndex<1>),
    HashedBytes(HashIndex<KeyBytes>),
    Space(SpaceEntries),
}

/// See the module.
pub(crate) struct Entries {
    keyed: Keyed,
    is_ordered: bool,
    nulls: BPlusTree<Rid, ()>,
    /// held while NULL is claimed, where one record alone may have it
    claiming_null: Option<Mutex<()>>,
}

/// More keys are not entered together.
const TOGETHER_MAX: usize = 64;

/// See [`Entries::insert_new`].
fn insert_into<K: Key>(tree: &UniqueTree<K>, keys: SmallVec<[&K::Owned; TOGETHER_MAX]>, first: Rid) -> usize {
    if keys.is_empty() { 0 } else { tree.insert_new(keys.len(), |at| keys[at], first) }
}

/// Why a run was not loaded.
pub(crate) enum LoadError {
    NoRoom(AddressSpaceError),
    OtherKeys,
}

impl From<AddressSpaceError> for LoadError {
    fn from(error: AddressSpaceError) -> LoadError {
        LoadError::NoRoom(error)
    }
}

/// Enters records under ascending keys: those of keys that have one record by `together`, which says how many it took, and where it
/// takes none, or a key has several, by `alone`. A key's records are given newest first and enter oldest first. Keys that `is_known`
/// says to have records already are told.
fn load_lists<K: PartialEq>(
    entries: &[(K, Rid)],
    together: impl Fn(&[(K, Rid)]) -> Result<usize, AddressSpaceError>,
    alone: impl Fn(&(K, Rid)) -> Result<(), AddressSpaceError>,
    mut is_known: impl FnMut(&K),
) -> Result<(), AddressSpaceError> {
    let mut rest = entries;
    while let Some((first, _)) = rest.first() {
        let several = rest.windows(2).position(|pair| pair[0].0 == pair[1].0).unwrap_or(rest.len());
        let (mut single, others) = rest.split_at(several);
        while let Some(next) = single.first() {
            let taken = together(single)?;
            if taken == 0 {
                is_known(&next.0);
                alone(next)?;
            }
            single = &single[taken.max(1)..];
        }
        let listed = others.iter().take_while(|(key, _)| *key == others[0].0).count();
        debug_assert!(several > 0 || others[0].0 == *first, "each step enters something");
        others[..listed].first().into_iter().for_each(|(key, _)| is_known(key));
        others[..listed].iter().rev().try_for_each(&alone)?;
        rest = &others[listed..];
    }
    Ok(())
}

/// The upper half of the words of small integers.
const HOME: u32 = 1 << 31;

impl Entries {
    pub(crate) fn new(definition: &IndexDefinition, shape: &KeyShape) -> Result<Entries, AddressSpaceError> {
        let (method, is_unique) = (definition.method, definition.unique);
        let keyed = match (method, shape.is_word()) {
            (IndexMethod::Btree, true) if is_unique => Keyed::UniqueWords(UniqueTree::new()),
            (IndexMethod::Btree, false) if is_unique => Keyed::UniqueBytes(UniqueTree::new()),
            (IndexMethod::Btree, true) => Keyed::Words(BPlusTree::new()),
            // An index that is told alone is refused before it has entries.
            (IndexMethod::Btree, false) | (IndexMethod::Gin | IndexMethod::Brin | IndexMethod::Spgist, _) => {
                Keyed::Bytes(BPlusTree::new())
            }
            (IndexMethod::Kiss, _) => Keyed::Kiss(KissIndex::new(HOME)?),
            (IndexMethod::Hash, true) => Keyed::HashedWords(WordIndex::new()),
            (IndexMethod::Hash, false) => Keyed::HashedBytes(HashIndex::new()),
            (IndexMethod::Bwd | IndexMethod::Gist, _) => Keyed::Space(SpaceEntries::new(definition, shape)),
        };
        let claiming_null = (is_unique && definition.nulls_equal).then(|| Mutex::new(()));
        let is_ordered = method.is_ordered() || method == IndexMethod::Gin;
        Ok(Entries { keyed, is_ordered, nulls: BPlusTree::new(), claiming_null })
    }

    /// Whether entries can be read in order.
    pub(crate) fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Whether the records of a key are one list, which is read as a whole and is in no order of Rids.
    pub(crate) fn are_listed(&self, key: &IndexKey) -> bool {
        let has_lists = matches!(self.keyed, Keyed::Kiss(_) | Keyed::UniqueWords(_) | Keyed::UniqueBytes(_));
        has_lists && *key != IndexKey::Null
    }

    /// Adds an entry, if it is not there.
    ///
    /// # Errors
    /// If the process has no address space left for the structure; nothing was added.
    pub(crate) fn insert(&self, key: &IndexKey, rid: Rid) -> Result<(), AddressSpaceError> {
        match (&self.keyed, key) {
            (Keyed::Space(space), key) => space.insert(key, rid),
            (_, IndexKey::Null) => drop(self.nulls.insert(rid, ())),
            (Keyed::Words(tree), IndexKey::Word(word)) => drop(tree.insert((*word, rid), ())),
            (Keyed::Bytes(tree), IndexKey::Bytes(bytes)) => drop(tree.insert((bytes, rid), ())),
            (Keyed::Kiss(tree), IndexKey::Word(word)) => return tree.insert(*word, rid),
            _ => drop(self.insert_unique(key, rid, |_| Holder::Past)),
        }
        Ok(())
    }

    /// Adds an entry unless a record has the key already, of an index that is unique; see
    /// [`UniqueTree::insert_unique`].
    ///
    /// # Errors
    /// The record that has the key, or that the process has no address space left for the structure; nothing was added.
    pub(crate) fn insert_unique(
        &self,
        key: &IndexKey,
        rid: Rid,
        holder: impl FnMut(Rid) -> Holder,
    ) -> Result<(), InsertError> {
        if *key == IndexKey::Null
            && let Some(claiming) = &self.claiming_null
        {
            return self.claim_null(claiming, rid, holder).map_err(InsertError::Present);
        }
        match (&self.keyed, key) {
            (Keyed::Kiss(tree), IndexKey::Word(word)) => return tree.insert_unique(*word, rid, holder),
            (Keyed::UniqueWords(tree), IndexKey::Word(word)) => tree.insert_unique(*word, rid, holder),
            (Keyed::UniqueBytes(tree), IndexKey::Bytes(bytes)) => tree.insert_unique(bytes, rid, holder),
            (Keyed::HashedWords(table), IndexKey::Word(word)) => table.insert_unique(&[*word], rid, holder),
            (Keyed::HashedBytes(table), IndexKey::Bytes(bytes)) => table.insert_unique(bytes.clone(), rid, holder),
            (Keyed::Words(_) | Keyed::Bytes(_) | Keyed::Space(_), _) | (_, IndexKey::Null) => {
                return Ok(self.insert(key, rid)?);
            }
            _ => unreachable!("{key:?} is not of the index's shape"),
        }
        .map_err(InsertError::Present)
    }

    /// Adds an entry of NULL unless a record has it already.
    fn claim_null(&self, claiming: &Mutex<()>, rid: Rid, mut holder: impl FnMut(Rid) -> Holder) -> Result<(), Rid> {
        let _alone = claiming.lock();
        let mut others = self.nulls.range(..).map(|(other, ())| other).filter(|other| *other != rid);
        match others.find(|other| matches!(holder(*other), Holder::Present)) {
            Some(other) => Err(other),
            None => {
                self.nulls.insert(rid, ());
                Ok(())
            }
        }
    }

    /// Adds entries of ascending keys for records that follow one another, for the first of these keys: as many as are new and the
    /// structure takes together. Returns how many; 0 where the first key is there already, or keys go in alone.
    pub(crate) fn insert_new(&self, keys: &[IndexKey], first: Rid) -> usize {
        let keys = keys.iter().take(TOGETHER_MAX);
        fn word(key: &IndexKey) -> Option<&u64> {
            if let IndexKey::Word(word) = key { Some(word) } else { None }
        }
        fn bytes(key: &IndexKey) -> Option<&<Bytes as Key>::Owned> {
            if let IndexKey::Bytes(bytes) = key { Some(bytes) } else { None }
        }
        match &self.keyed {
            Keyed::Kiss(tree) => {
                let words: SmallVec<[u64; TOGETHER_MAX]> = keys.map_while(word).copied().collect();
                // Where there is no room, the one key says so.
                if words.is_empty() { 0 } else { tree.insert_new(&words, first).unwrap_or(0) }
            }
            Keyed::UniqueWords(tree) => insert_into(tree, keys.map_while(word).collect(), first),
            Keyed::UniqueBytes(tree) => insert_into(tree, keys.map_while(bytes).collect(), first),
            _ => 0,
        }
    }

    /// Adds the entries of a run, which the index has listed so, or that are to be [settled](SpaceEntries::settle). Returns the keys that
    /// had other records before, which may not be in their order now.
    ///
    /// # Errors
    /// If the process has no address space left for the structure, or the run is of keys of another kind; some were added.
    pub(crate) fn load(&self, run: Run) -> Result<Vec<IndexKey>, LoadError> {
        let (mut mixed, guard) = (Vec::new(), &sync::pin());
        match (&self.keyed, run) {
            (Keyed::Space(space), run) => space.load(&run.into_entries()),
            (_, Run::Nulls(rids)) => self.nulls.insert_sorted(&rids, ()),
            (Keyed::Words(tree), Run::Words(entries)) => tree.insert_sorted(&entries, ()),
            (Keyed::Bytes(tree), Run::Bytes(entries)) => tree.insert_sorted(&entries, ()),
            (Keyed::UniqueWords(tree), Run::Words(entries)) => load_lists(
                &entries,
                |new| Ok(tree.insert_sorted(new.len(), |at| (&new[at].0, new[at].1))),
                |(word, rid)| {
                    tree.insert(*word, *rid);
                    Ok(())
                },
                |word| mixed.extend(tree.find(guard, *word, |_| Some(IndexKey::Word(*word)))),
            )?,
            (Keyed::UniqueBytes(tree), Run::Bytes(entries)) => load_lists(
                &entries,
                |new| Ok(tree.insert_sorted(new.len(), |at| (&new[at].0, new[at].1))),
                |(bytes, rid)| {
                    tree.insert(bytes, *rid);
                    Ok(())
                },
                |bytes| mixed.extend(tree.find(guard, bytes, |_| Some(IndexKey::Bytes(bytes.clone())))),
            )?,
            (Keyed::Kiss(tree), Run::Words(entries)) => load_lists(
                &entries,
                |new| tree.insert_sorted(new),
                |(word, rid)| tree.insert(*word, *rid),
                |word| mixed.extend(tree.find(guard, *word, |_| Some(IndexKey::Word(*word)))),
            )?,
            _ => return Err(LoadError::OtherKeys),
        }
        Ok(mixed)
    }

    /// Takes the entries of a run out, as far as they are there and there is address space for what stays.
    pub(super) fn unload(&self, run: Run) {
        run.into_entries().into_iter().for_each(|(key, rid)| self.remove(&key, rid));
    }

    /// Removes the entry of a version that no transaction can see, if it is there. Where there is no address space for the
    /// smaller node of the keys that stay, the entry stays as well, until it is swept out or its key is claimed: nothing is
    /// found through it, as the record does not have the key.
    pub(crate) fn remove(&self, key: &IndexKey, rid: Rid) {
        let _stays = self.remove_if(key, rid, || true);
    }

    /// Removes an entry, if it is there and `may_go` says so, which is asked while nobody else can enter the key.
    ///
    /// # Errors
    /// If the process has no address space left for the structure; the entry is still there.
    pub(crate) fn remove_if(
        &self,
        key: &IndexKey,
        rid: Rid,
        may_go: impl FnOnce() -> bool,
    ) -> Result<(), AddressSpaceError> {
        match (&self.keyed, key) {
            (Keyed::Kiss(tree), IndexKey::Word(word)) => return tree.remove_if(*word, rid, may_go),
            (Keyed::Space(space), key) => space.remove_if(key, rid, may_go),
            (_, IndexKey::Null) => drop(self.nulls.change(rid, deciding(may_go))),
            (Keyed::Words(tree), IndexKey::Word(word)) => drop(tree.change((*word, rid), deciding(may_go))),
            (Keyed::Bytes(tree), IndexKey::Bytes(bytes)) => drop(tree.change((bytes, rid), deciding(may_go))),
            (Keyed::UniqueWords(tree), IndexKey::Word(word)) => tree.remove_if(*word, rid, may_go),
            (Keyed::UniqueBytes(tree), IndexKey::Bytes(bytes)) => tree.remove_if(bytes, rid, may_go),
            (Keyed::HashedWords(table), IndexKey::Word(word)) => table.remove_if(&[*word], rid, may_go),
            (Keyed::HashedBytes(table), IndexKey::Bytes(bytes)) => table.remove_if(bytes, rid, may_go),
            _ => unreachable!("{key:?} is not of the index's shape"),
        }
        Ok(())
    }

    /// The first of the key's records for which `accept` returns something; newest first if the index is unique.
    #[inline]
    pub(crate) fn find_pinned<T>(
        &self,
        guard: &Guard,
        key: &IndexKey,
        mut accept: impl FnMut(Rid) -> Option<T>,
    ) -> Option<T> {
        match (&self.keyed, key) {
            (Keyed::Space(space), key) => space.rids(key).into_iter().find_map(accept),
            (_, IndexKey::Null) => self.nulls.range(..).find_map(|(rid, ())| accept(rid)),
            (Keyed::Words(tree), IndexKey::Word(word)) => tree.find(*word, accept),
            (Keyed::Bytes(tree), IndexKey::Bytes(bytes)) => tree.find(bytes, accept),
            (Keyed::UniqueWords(tree), IndexKey::Word(word)) => tree.find(guard, *word, accept),
            (Keyed::UniqueBytes(tree), IndexKey::Bytes(bytes)) => tree.find(guard, bytes, accept),
            (Keyed::Kiss(tree), IndexKey::Word(word)) => tree.find(guard, *word, accept),
            (Keyed::HashedWords(table), IndexKey::Word(word)) => table.find(guard, &[*word], accept),
            (Keyed::HashedBytes(table), IndexKey::Bytes(bytes)) => table.find(bytes, accept),
            _ => unreachable!("{key:?} is not of the index's shape"),
        }
    }

    /// The KISS-Tree, if it is one.
    #[inline]
    pub(crate) fn kiss(&self) -> Option<&KissIndex> {
        match &self.keyed {
            Keyed::Kiss(tree) => Some(tree),
            _ => None,
        }
    }

    /// The newest record of each key of a unique index. What takes several steps to the memory takes them for all keys
    /// together.
    pub(crate) fn newest(&self, guard: &Guard, keys: &[IndexKey]) -> Vec<Option<Rid>> {
        let Keyed::Kiss(tree) = &self.keyed else {
            return keys.iter().map(|key| self.find_pinned(guard, key, Some)).collect();
        };
        let words: SmallVec<[u64; 16]> = keys.iter().map(word_of).collect();
        let mut newest = Vec::with_capacity(keys.len());
        tree.newest_batch(&words, &mut newest);
        debug_assert_eq!(newest.len(), keys.len(), "invariant 7: each key has an answer of its own");
        newest
    }

    /// The records that are known under a key.
    pub(crate) fn rids(&self, key: &IndexKey) -> KeyRids {
        let mut rids = KeyRids::new();
        let _: Option<()> = self.find_pinned(&sync::pin(), key, |rid| {
            // A table without order may tell of a record twice.
            if self.is_ordered() || !rids.contains(&rid) {
                rids.push(rid);
            }
            None
        });
        rids
    }

    /// Whether there is an entry, where keys are bytes and entries pairs.
    pub(crate) fn has(&self, guard: &Guard, key: &IndexKey, rid: Rid) -> bool {
        match (&self.keyed, key) {
            (Keyed::Bytes(tree), IndexKey::Bytes(bytes)) => tree.get_pinned((bytes, rid), guard).is_some(),
            _ => self.rids(key).contains(&rid),
        }
    }

    /// The records of a key, in the order in which they were entered as far as is known; about `count` of them, if they are more.
    pub(crate) fn list(&self, guard: &Guard, key: &IndexKey, count: usize) -> ListedRids {
        let mut listed = ListedRids::new();
        match (&self.keyed, key) {
            (Keyed::Words(tree), IndexKey::Word(word)) => tree.list(*word, guard, count, &mut listed),
            (Keyed::Bytes(tree), IndexKey::Bytes(bytes)) => tree.list(bytes, guard, count, &mut listed),
            _ => {
                // The newest comes first.
                let _: Option<()> = self.find_pinned(guard, key, |rid| {
                    listed.push(rid);
                    (listed.len() >= count).then_some(())
                });
                listed.reverse();
            }
        }
        debug_assert!(
            listed.iter().all(|rid| !rid.is_tail()),
            "invariant 7: {key:?} leads to a version, not to a record"
        );
        listed
    }

    /// Appends the first entries between the bounds to `out`, in order: about `count`, all those of a key together where one
    /// list has them. Returns whether there may be more.
    pub(crate) fn next(&self, bounds: &Bounds, direction: Direction, count: usize, out: &mut Vec<Entry>) -> bool {
        if !self.is_ordered() {
            let key = only_key(bounds).expect("a table without order is asked for one key");
            out.extend(self.rids(key).into_iter().map(|rid| (key.clone(), rid)));
            return false;
        }
        let (start, full) = (out.len(), out.len() + count);
        if direction == Direction::Upward {
            self.next_keys(bounds, direction, full, out);
        }
        if out.len() < full {
            self.next_nulls(bounds, direction, full, out);
        }
        if direction == Direction::Downward && out.len() < full {
            self.next_keys(bounds, direction, full, out);
        }
        debug_assert!(
            out[start..].iter().all(|entry| bounds.contains(entry)),
            "invariant 7: an entry is outside of {bounds:?}"
        );
        debug_assert!(
            out[start..].is_sorted_by(|left, right| match direction {
                Direction::Upward => left.0 <= right.0,
                Direction::Downward => left.0 >= right.0,
            }),
            "invariant 7: entries come out of order"
        );
        out.len() >= full
    }

    /// Passes on every key with its records, while nobody writes.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&IndexKey, &[Rid])) {
        /// Entries that are looked at together.
        const BATCH: usize = 4096;
        match &self.keyed {
            Keyed::HashedWords(table) => table.for_each(|[word], rids| visit(&IndexKey::Word(*word), rids)),
            Keyed::HashedBytes(table) => table.for_each(|bytes, rids| visit(&IndexKey::Bytes(bytes.clone()), rids)),
            Keyed::Space(space) => space.for_each(visit),
            _ => {
                let (mut low, mut entries, mut has_more) = (Bound::Unbounded, Vec::<Entry>::new(), true);
                while has_more {
                    has_more = self.next(&(low, Bound::Unbounded), Direction::Upward, BATCH, &mut entries);
                    low = entries.last().map_or(Bound::Unbounded, |last| Bound::Excluded(last.clone()));
                    // What the last key lists may go on in the next batch.
                    let last = entries.iter().rposition(|(key, _)| Some(key) != entries.last().map(|(key, _)| key));
                    let rest = if has_more { entries.split_off(last.map_or(0, |last| last + 1)) } else { Vec::new() };
                    for listed in entries.chunk_by(|left, right| left.0 == right.0) {
                        visit(&listed[0].0, &listed.iter().map(|(_, rid)| *rid).collect::<Vec<_>>());
                    }
                    entries = rest;
                }
            }
        }
        let nulls: Vec<Rid> = self.nulls.range(..).map(|(rid, ())| rid).collect();
        if !self.is_ordered() && !nulls.is_empty() {
            visit(&IndexKey::Null, &nulls);
        }
    }

    fn next_keys(&self, (low, high): &Bounds, direction: Direction, full: usize, out: &mut Vec<Entry>) {
        let (Some(low), high) = (below_null(low, true), below_null(high, false)) else { return };
        let Some(high) = high else { return };
        match &self.keyed {
            Keyed::Words(tree) => pairs(tree, (low, high), direction, full, out, word_of, IndexKey::Word),
            Keyed::Bytes(tree) => pairs(tree, (low, high), direction, full, out, bytes_of, IndexKey::Bytes),
            Keyed::UniqueWords(tree) => {
                let range = tree.range((key_bound(low, word_of), key_bound(high, word_of)));
                lists(range, direction, full, out, IndexKey::Word);
            }
            Keyed::UniqueBytes(tree) => {
                let range = tree.range((key_bound(low, bytes_of), key_bound(high, bytes_of)));
                lists(range, direction, full, out, IndexKey::Bytes);
            }
            Keyed::Kiss(tree) => {
                let range = tree.range((key_bound(low, word_of), key_bound(high, word_of)));
                lists(range, direction, full, out, IndexKey::Word);
            }
            Keyed::HashedWords(_) | Keyed::HashedBytes(_) | Keyed::Space(_) => {
                unreachable!("they have no order")
            }
        }
    }

    fn next_nulls(&self, (low, high): &Bounds, direction: Direction, full: usize, out: &mut Vec<Entry>) {
        fn null(bound: &Bound<Entry>) -> Option<Bound<Rid>> {
            match bound {
                Bound::Included((IndexKey::Null, rid)) => Some(Bound::Included(*rid)),
                Bound::Excluded((IndexKey::Null, rid)) => Some(Bound::Excluded(*rid)),
                _ => None,
            }
        }
        let high = match high {
            Bound::Unbounded => Bound::Unbounded,
            bounded => match null(bounded) {
                Some(high) => high,
                None => return,
            },
        };
        let range = self.nulls.range((null(low).unwrap_or(Bound::Unbounded), high));
        take(range.map(|(rid, ())| (IndexKey::Null, rid)), direction, full, out);
    }

    /// The memory that the entries take, that of long keys in a hash table estimated.
    pub(crate) fn bytes(&self) -> usize {
        /// What an entry of a byte string takes with its list of Rids, as measured.
        const ENTRY_BYTES: usize = 120;
        self.nulls.bytes()
            + match &self.keyed {
                Keyed::Words(tree) => tree.bytes(),
                Keyed::Bytes(tree) => tree.bytes(),
                Keyed::UniqueWords(tree) => tree.bytes(),
                Keyed::UniqueBytes(tree) => tree.bytes(),
                Keyed::Kiss(tree) => tree.bytes(),
                Keyed::HashedWords(table) => table.bytes(),
                Keyed::HashedBytes(table) => table.len() * ENTRY_BYTES,
                Keyed::Space(space) => space.bytes(),
            }
    }

    /// The entries as what they are in an index that is asked for parts of space.
    pub(crate) fn space(&self) -> Option<&SpaceEntries> {
        match &self.keyed {
            Keyed::Space(space) => Some(space),
            _ => None,
        }
    }
}

/// What becomes of an entry of a tree that has it or not.
fn deciding(may_go: impl FnOnce() -> bool) -> impl FnOnce(Option<()>) -> Change<()> {
    |found| if found.is_some() && may_go() { Change::Remove } else { Change::Keep }
}

/// The part of a bound that concerns keys which are not NULL; `None` if no such key is within it.
fn below_null(bound: &Bound<Entry>, is_low: bool) -> Option<Bound<&Entry>> {
    match bound {
        Bound::Included((IndexKey::Null, _)) | Bound::Excluded((IndexKey::Null, _)) => {
            (!is_low).then_some(Bound::Unbounded)
        }
        bound => Some(bound.as_ref()),
    }
}

fn word_of(key: &IndexKey) -> u64 {
    match key {
        IndexKey::Word(word) => *word,
        other => unreachable!("{other:?} in an index of words"),
    }
}

fn bytes_of(key: &IndexKey) -> &[u8] {
    match key {
        IndexKey::Bytes(bytes) => bytes,
        other => unreachable!("{other:?} in an index of bytes"),
    }
}

fn key_bound<'k, R>(bound: Bound<&'k Entry>, of: impl Fn(&'k IndexKey) -> R) -> Bound<R> {
    bound.map(|(key, _)| of(key))
}

/// Reads a tree of pairs.
fn pairs<'k, K: Key>(
    tree: &BPlusTree<(K, Rid), ()>,
    (low, high): (Bound<&'k Entry>, Bound<&'k Entry>),
    direction: Direction,
    full: usize,
    out: &mut Vec<Entry>,
    of: impl Fn(&'k IndexKey) -> K::Ref<'k>,
    back: impl Fn(K::Owned) -> IndexKey,
) {
    let pair = |(key, rid): &'k Entry| (of(key), *rid);
    let range = tree.range((low.map(pair), high.map(pair)));
    take(range.map(|((key, rid), ())| (back(key), rid)), direction, full, out);
}

/// Reads keys that have lists of Rids.
fn lists<K>(
    mut range: impl DoubleEndedIterator<Item = (K, KeyRids)>,
    direction: Direction,
    full: usize,
    out: &mut Vec<Entry>,
    back: impl Fn(K) -> IndexKey,
) {
    while out.len() < full {
        let next = match direction {
            Direction::Upward => range.next(),
            Direction::Downward => range.next_back(),
        };
        let Some((key, rids)) = next else { return };
        let key = back(key);
        match *rids {
            [rid] => out.push((key, rid)),
            _ => out.extend(rids.into_iter().map(|rid| (key.clone(), rid))),
        }
    }
}

fn take(entries: impl DoubleEndedIterator<Item = Entry>, direction: Direction, full: usize, out: &mut Vec<Entry>) {
    let room = full.saturating_sub(out.len());
    match direction {
        Direction::Upward => out.extend(entries.take(room)),
        Direction::Downward => out.extend(entries.rev().take(room)),
    }
}
