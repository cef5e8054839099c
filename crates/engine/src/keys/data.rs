//! An index of a table: its definition, its entries, whether it is there; and the list of a table's indexes.
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use index::{AddressSpaceError, Gaps, Holder, InsertError, Residence};
use lineage::{Cell, MemoryBudget};
use parking_lot::Mutex;
use smallvec::SmallVec;
use sync::{EpochCell, Guard, Late};
use types::{Column, DataType, Extent, Rid, Schema, Timestamp, TxnId, Value};

use super::blocks::{BlockPlace, Blocks, Counting};
use super::computed::{ComputedExpressions, ExpressionCompiler, RowExpression};
use super::definition::{IndexDefinition, IndexMethod, IndexPart, KeptIndex};
use super::entries::{Entries, Entry};
use super::extents::{DIMENSIONS_MAX, dimensions, extent_between, extent_of};
use super::image::Imaged;
use super::inverted::TermClass;
use super::order::{IndexKey, KeyShape};
use super::space::{COLUMNS_MAX, is_whole};
use crate::error::{Error, Result};
use crate::terms::table_lock::{Standing, TableLock};

/// What enters the entries of a block: the table.
pub(crate) trait BlockSource: Send + Sync {
    /// Enters what a block has; nobody else holds it meanwhile. Returns whether that is what the image has.
    ///
    /// # Errors
    /// If neither the block nor what the table has in its place can be read, or the index can't grow.
    fn load(&self, index: &IndexData, blocks: &Blocks, block: (usize, &BlockPlace)) -> Result<bool>;
}

/// An index of a table.
pub(crate) struct IndexData {
    pub(crate) definition: IndexDefinition,
    /// the columns that a row's key is made of, or worked out from
    columns: Box<[usize]>,
    /// a bit for each of these, those beyond the bits of the word sharing some
    bits: u64,
    /// the parts of its keys, as if they were columns
    pub(crate) key_columns: Box<[Column]>,
    /// `Some` where keys are worked out; compiled before anything is entered
    computed: Option<OnceLock<ComputedExpressions>>,
    pub(crate) shape: KeyShape,
    entries: Entries,
    /// what readers of the present step over
    pub(crate) gaps: Gaps<Entry>,
    /// entering what the table has, which is put off from the opening of the database to the first use of the index
    filling: Late,
    /// its image in the newest checkpoint, and which ranges have had entries since
    pub(crate) imaged: Imaged,
    /// which blocks of an image are in memory
    pub(super) residence: Residence<Entry, BlockPlace, Counting>,
    /// about the memory that such blocks take
    pub(super) bytes_here: AtomicU64,
    pub(super) block_source: OnceLock<Weak<dyn BlockSource>>,
    /// memory of blocks that have come, less those that have left, since all that the index takes was counted
    uncounted: AtomicI64,
    counted: Mutex<Counted>,
    has_changed_keys: AtomicBool,
    /// held while a row looks for others that it excludes, and enters its key
    pub(crate) excluding: Mutex<()>,
    /// Whether it is there: *locked* by the transaction that makes it, *open* for all, or *gone*.
    pub(crate) standing: TableLock,
    /// The commit that made it, 0 if that was before the database was opened.
    made_at: AtomicU64,
    /// The oldest snapshot that it serves: the table's horizon when it was made.
    from: AtomicU64,
}

/// What an index took when it was last counted, and for how many entries.
#[derive(Default)]
struct Counted {
    entries: u64,
    bytes: u64,
}

/// A handle to an index; cheap to clone.
#[derive(Clone)]
pub struct Index {
    pub(crate) data: Arc<IndexData>,
}

impl Index {
    /// Its definition.
    pub fn definition(&self) -> &IndexDefinition {
        &self.data.definition
    }

    /// Whether its rows can be read in the order of their keys, and ranges of them.
    pub fn is_ordered(&self) -> bool {
        self.data.definition.method.is_ordered()
    }

    /// The parts of its keys as if they were columns: an expression's name is its text.
    pub fn key_columns(&self) -> &[Column] {
        &self.data.key_columns
    }

    /// The positions of the columns that keys are made of or worked out from, in the order in which its compiled expressions take
    /// them.
    pub fn reads(&self) -> Vec<usize> {
        self.data.definition.reads()
    }

    /// The compiled expression that is this part of its keys, if it is none of the columns.
    pub fn expression(&self, part: usize) -> Option<Arc<dyn RowExpression>> {
        self.data.computed()?.expression(part).cloned()
    }

    /// Its compiled predicate, if it is of some rows only.
    pub fn predicate(&self) -> Option<Arc<dyn RowExpression>> {
        self.data.computed()?.predicate().cloned()
    }

    /// How many dimensions the extent of a part of its keys has.
    fn dimensions_of(&self, part: usize) -> usize {
        dimensions(self.key_columns().iter().map(|column| column.data_type))[part]
    }

    /// Where a value is to be looked for in a part of the keys of a `gist` index; `None` if it lies nowhere. Of a value that stands for
    /// another type, such as a point that a box is to contain, it is where that lies.
    ///
    /// # Panics
    /// If the index has no such part.
    pub fn extent_of(&self, part: usize, value: &Value) -> Option<Extent> {
        extent_of(value, self.key_columns()[part].data_type, self.dimensions_of(part))
    }

    /// Where the values between two others are to be looked for in a part of the keys of a `gist` index; `None` if that may be
    /// anywhere. NULL is no bound.
    ///
    /// # Panics
    /// If the index has no such part.
    pub fn extent_between(&self, part: usize, low: Bound<&Value>, high: Bound<&Value>) -> Option<Extent> {
        extent_between((low, high), self.key_columns()[part].data_type, self.dimensions_of(part))
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.data.bytes() as u64
    }
}

impl IndexData {
    /// Creates an index without entries, for all or for the transaction that makes it. Its expressions are still to
    /// be [compiled](IndexData::compile).
    pub(crate) fn new(schema: &Schema, kept: KeptIndex, maker: Option<TxnId>) -> Result<IndexData> {
        let KeptIndex { definition, has_changed_keys } = kept;
        let bad = |why: String| Error::BadIndex { index: definition.name.clone(), why };
        if definition.parts.is_empty() {
            return Err(bad("it has no columns".into()));
        }
        let columns = definition.reads();
        let mut all = columns.iter().chain(&definition.included);
        if let Some(column) = all.find(|column| **column >= schema.columns().len()) {
            return Err(bad(format!("there is no column number {column}")));
        }
        debug_assert!(
            definition.orders.is_empty() || definition.orders.len() == definition.parts.len(),
            "the order of each part is known, or that of none: {definition:?}"
        );
        let key_column = |part: &IndexPart| match part {
            IndexPart::Column(column) => schema.columns()[*column].clone(),
            IndexPart::Expression(expression) => Column::new(&expression.text, expression.data_type),
        };
        let key_columns: Box<[Column]> = definition.parts.iter().map(key_column).collect();
        let types = key_columns.iter().map(|column| column.data_type).collect();
        let method = definition.method;
        let shape = match method {
            IndexMethod::Gist => KeyShape::of_extents(types),
            IndexMethod::Gin => KeyShape::new([DataType::Bytea].into()),
            _ => KeyShape::new(types),
        };
        if method.takes_only_words() && !shape.is_word() {
            let name = method.name();
            return Err(bad(format!("access method \"{name}\" takes one column whose values have 64 bits at most")));
        }
        if !method.may_be_unique() && definition.is_unique() {
            return Err(bad(format!("access method \"{}\" does not support unique indexes", method.name())));
        }
        debug_assert_eq!(key_columns.len(), definition.parts.len(), "a key has a part for each of the definition");
        check_method(&definition, &key_columns).map_err(bad)?;
        let entries = Entries::new(&definition, &shape)
            .map_err(|source| Error::IndexWithoutRoom { index: definition.name.clone(), source })?;
        Ok(IndexData {
            bits: columns.iter().fold(0, |bits, column| bits | 1 << (column % 64)),
            columns: columns.into(),
            key_columns,
            computed: definition.is_computed().then(OnceLock::new),
            shape,
            entries,
            gaps: Gaps::default(),
            filling: Late::nothing(),
            imaged: Imaged::default(),
            residence: Residence::whole(),
            bytes_here: AtomicU64::new(0),
            block_source: OnceLock::new(),
            uncounted: AtomicI64::new(0),
            counted: Mutex::default(),
            has_changed_keys: AtomicBool::new(has_changed_keys),
            excluding: Mutex::new(()),
            standing: maker.map_or_else(TableLock::default, TableLock::of),
            made_at: AtomicU64::new(0),
            from: AtomicU64::new(0),
            definition,
        })
    }

    /// Makes ready what works its keys out, if they have to be.
    ///
    /// # Errors
    /// [`Error::NoExpressions`] without a compiler; [`Error::BadIndex`] if an expression can't be compiled.
    pub(crate) fn compile(&self, schema: &Schema, compiler: Option<&dyn ExpressionCompiler>) -> Result<()> {
        let Some(place) = &self.computed else { return Ok(()) };
        let compiler = compiler.ok_or_else(|| Error::NoExpressions { index: self.definition.name.clone() })?;
        let computed = ComputedExpressions::new(&self.definition, schema.columns(), &self.columns, compiler);
        let computed =
            computed.map_err(|error| Error::BadIndex { index: self.definition.name.clone(), why: error.message })?;
        // An earlier thread that compiled it compiled the same.
        let _ = place.set(computed);
        Ok(())
    }

    /// The compiled keys, where they are not just columns.
    #[inline]
    pub(crate) fn computed(&self) -> Option<&ComputedExpressions> {
        self.computed.as_ref().map(|place| place.get().expect("it was compiled before it was used"))
    }

    /// The entries in memory. Those of all versions are there, or in blocks that are away: the index was made since the database was
    /// opened, or the caller has had `TableData::fill` see to it.
    #[inline]
    pub(crate) fn entries(&self) -> &Entries {
        debug_assert!(self.is_filled(), "invariant 7: \"{}\" is asked before it has its entries", self.definition.name);
        &self.entries
    }

    /// The entries so far, for the thread that enters them.
    pub(crate) fn entries_so_far(&self) -> &Entries {
        &self.entries
    }

    /// The memory that the entries take.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.bytes()
    }

    /// Whether it has the entries of all versions.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.filling.is_done()
    }

    /// Leaves entering what the table has, which is the source of blocks, to the first use of the index. For recovery.
    pub(crate) fn put_off(&self, table: Weak<dyn BlockSource>) {
        let known = self.block_source.set(table);
        debug_assert!(known.is_ok(), "an index is put off twice");
        self.filling.put_off();
    }

    /// Leaves the blocks of its image to those that first need them. To be called before it is filled.
    pub(crate) fn begin_blocks(&self, blocks: Vec<(Entry, BlockPlace)>, counting: Counting) {
        debug_assert!(!self.is_filled() && !blocks.is_empty(), "invariant 7: entries that a reader has missed");
        self.residence.begin(blocks, counting);
        self.imaged.set_served(true);
    }

    /// The blocks, as long as one may be away. Where there are none, none leaves as long as the epoch is pinned.
    #[inline]
    pub(crate) fn blocks<'g>(&'g self, guard: &'g Guard) -> Option<&'g Blocks> {
        self.residence.blocks(guard)
    }

    /// The blocks, as long as one may be away, for a caller that leaves looking at entries to [`IndexData::next`].
    pub(crate) fn shared_blocks(&self) -> Option<Arc<Blocks>> {
        self.residence.shared_blocks()
    }

    /// Charges the memory of blocks that come, or leave, until the index is counted as a whole.
    pub(super) fn charge(&self, budget: &MemoryBudget, bytes: i64) {
        self.uncounted.fetch_add(bytes, Ordering::Relaxed);
        budget.add(bytes);
    }

    /// The memory that the entries take, and what was charged of it meanwhile, which the caller gives back. Counting walks through the
    /// index: it is done again once its table has an eighth more entries for it than last time, or fewer.
    pub(crate) fn count(&self, entries: u64) -> (u64, i64) {
        const PART: u64 = 8;
        let uncounted = self.uncounted.swap(0, Ordering::Relaxed);
        let mut counted = self.counted.lock();
        if uncounted != 0 || entries.abs_diff(counted.entries) > counted.entries / PART {
            // An index is soon filled, and grows by that.
            let entries = if self.is_filled() { entries } else { 0 };
            *counted = Counted { entries, bytes: self.bytes() as u64 };
        }
        (counted.bytes, uncounted)
    }

    /// The memory that the entries took when that was last counted.
    pub(crate) fn counted_bytes(&self) -> u64 {
        self.counted.lock().bytes
    }

    /// Whether readers walk through its entries, from key to key.
    pub(crate) fn is_walked(&self) -> bool {
        self.definition.method.is_ordered()
    }

    /// Whether its entries are in order, so that it has blocks where it has an image.
    pub(crate) fn has_order(&self) -> bool {
        self.entries.is_ordered()
    }

    /// What enters blocks; `None` where the table has gone.
    pub(super) fn block_source(&self) -> Option<Arc<dyn BlockSource>> {
        self.block_source.get().and_then(Weak::upgrade)
    }

    /// Has `enter_all` enter what the table has, unless that is done; waits for a thread that does it.
    #[inline]
    pub(crate) fn fill(&self, enter_all: impl FnOnce() -> Result<()>) -> Result<()> {
        self.filling.ensure(enter_all)
    }

    /// Opens the index for all, as a commit has made it.
    pub(crate) fn publish(&self, at: Timestamp) {
        debug_assert!(matches!(self.standing.standing(), Standing::Locked(_)), "only its maker opens an index");
        self.made_at.store(at.0, Ordering::Relaxed);
        self.standing.unlock();
    }

    /// The form in which the log and checkpoints keep it.
    pub(crate) fn kept(&self) -> KeptIndex {
        KeptIndex { definition: self.definition.clone(), has_changed_keys: self.has_changed_keys() }
    }

    /// The columns that a row's key is made of, or worked out from: of an index of columns alone these, in key order.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Whether one of these columns is one that it reads.
    pub(crate) fn is_among(&self, mut columns: impl Iterator<Item = usize> + Clone) -> bool {
        let bits = columns.clone().fold(0, |bits, column| bits | 1 << (column % 64));
        debug_assert!(
            self.bits & bits != 0 || !columns.clone().any(|column| self.columns().contains(&column)),
            "invariant 7: the bits of {:?} leave out a column",
            self.columns
        );
        self.bits & bits != 0 && columns.any(|column| self.columns().contains(&column))
    }

    /// The key made of the cells of its columns, where it is of nothing else: that of a primary key.
    #[inline]
    pub(crate) fn plain_key(&self, cells: &[Cell<'_>]) -> IndexKey {
        self.shape.key(cells)
    }

    /// Whether it stands for an exclusion constraint.
    pub(crate) fn is_exclusive(&self) -> bool {
        !self.definition.exclusion.is_empty()
    }

    /// Whether rows with these parts of keys exclude each other.
    pub(crate) fn excludes(&self, one: &[Value], other: &[Value]) -> bool {
        debug_assert_eq!(one.len(), other.len(), "keys of one index have as many parts");
        let mut parts = one.iter().zip(other).zip(&self.definition.exclusion);
        !self.definition.exclusion.is_empty() && parts.all(|((one, other), exclusion)| exclusion.holds(one, other))
    }

    /// A key for people.
    pub(crate) fn show(&self, key: &IndexKey) -> String {
        self.shape.show(key)
    }

    /// Whether an update, even one that was rolled back, may have given a record another key.
    pub(crate) fn has_changed_keys(&self) -> bool {
        self.has_changed_keys.load(Ordering::Acquire)
    }

    /// To be called before a record is given another key: a thread that sees its version also sees this.
    pub(crate) fn note_changed_key(&self) {
        if !self.has_changed_keys() {
            self.has_changed_keys.store(true, Ordering::Release);
        }
    }

    /// Notes the oldest snapshot that it serves, before another transaction may use it.
    pub(crate) fn serve_from(&self, from: Timestamp) {
        debug_assert!(!matches!(self.standing.standing(), Standing::Gone(_)), "an index that is gone serves nothing");
        self.from.store(from.0, Ordering::Relaxed);
    }

    /// Whether it serves a snapshot: not one that was held already when the index was made and its table kept less.
    /// A dropped index is no longer maintained, so it does not serve what is written afterwards.
    pub(crate) fn serves(&self, at: Timestamp) -> bool {
        let is_old = at.0 < self.from.load(Ordering::Relaxed);
        match self.standing.standing() {
            Standing::Open | Standing::Locked(_) => !is_old,
            Standing::Gone(gone) => !is_old && at < gone,
        }
    }

    /// Enters a record under a key, whichever other records have it.
    ///
    /// # Errors
    /// [`Error::IndexWithoutRoom`] if the index can't grow; nothing was entered.
    pub(crate) fn enter(&self, key: &IndexKey, rid: Rid) -> Result<()> {
        self.entries.insert(key, rid).map_err(|error| self.without_room(error))?;
        self.note_entered(rid.range(), || std::iter::once((key.clone(), rid)));
        Ok(())
    }

    /// Notes that records of a range were entered under keys, new or again, so that no reader steps over them and no checkpoint leaves
    /// them out. Every way into the index ends here.
    #[inline]
    pub(crate) fn note_entered<I: Iterator<Item = Entry>>(&self, range: usize, entered: impl FnOnce() -> I) {
        self.imaged.note(range);
        if self.entries.is_ordered() {
            self.gaps.entered(std::iter::once_with(entered).flatten());
        }
    }

    /// Enters a record under a key during recovery; returns whether the key has another record.
    ///
    /// # Errors
    /// As [`IndexData::enter`].
    pub(crate) fn enter_again(&self, key: &IndexKey, rid: Rid) -> Result<bool> {
        let mut has_others = false;
        if !self.definition.unique {
            self.enter(key, rid)?;
            return Ok(has_others);
        }
        let entered = self.entries.insert_unique(key, rid, |other| {
            has_others |= other != rid;
            Holder::Past
        });
        match entered {
            Err(InsertError::NoRoom(error)) => return Err(self.without_room(error)),
            Err(InsertError::Present(other)) => debug_assert!(false, "{other:?} is not said to have the key"),
            Ok(()) => {}
        }
        Ok(has_others)
    }

    /// The error of a structure that can't grow.
    pub(crate) fn without_room(&self, source: AddressSpaceError) -> Error {
        Error::IndexWithoutRoom { index: self.definition.name.clone(), source }
    }
}

/// Refuses what an index of space, or of terms, is not.
fn check_method(definition: &IndexDefinition, columns: &[Column]) -> std::result::Result<(), String> {
    let name = definition.method.name();
    match definition.method {
        IndexMethod::Bwd if columns.len() > COLUMNS_MAX => {
            Err(format!("access method \"{name}\" takes one or two columns, and these are {}", columns.len()))
        }
        IndexMethod::Bwd => match columns.iter().find(|column| !is_whole(column.data_type)) {
            Some(column) => Err(format!(
                "access method \"{name}\" takes whole numbers, numerics of up to 18 digits, dates and times, and \"{}\" is {}",
                column.name, column.data_type
            )),
            None => Ok(()),
        },
        _ if !definition.exclusion.is_empty()
            && (definition.method != IndexMethod::Gist || definition.exclusion.len() != columns.len()) =>
        {
            Err("an exclusion constraint is of access method \"gist\", with an operator for each part".into())
        }
        IndexMethod::Brin | IndexMethod::Spgist => {
            Err(format!("access method \"{name}\" is told of an index that another one keeps"))
        }
        IndexMethod::Gin => check_classes(&definition.classes, columns),
        _ if !definition.classes.is_empty() => Err(format!("access method \"{name}\" knows no terms")),
        IndexMethod::Gist => {
            let dimensions: usize = dimensions(columns.iter().map(|column| column.data_type)).into_iter().sum();
            match dimensions > DIMENSIONS_MAX {
                true => Err(format!(
                    "access method \"{name}\" takes {DIMENSIONS_MAX} dimensions at most, and these columns have {dimensions}"
                )),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Refuses parts that do not have the terms of their classes.
fn check_classes(classes: &[TermClass], columns: &[Column]) -> std::result::Result<(), String> {
    if classes.len() != columns.len() {
        return Err(format!("{} parts have {} classes of terms", columns.len(), classes.len()));
    }
    match columns.iter().zip(classes).find(|(column, class)| !class.accepts(column.data_type)) {
        Some((column, class)) => {
            Err(format!("\"{}\" is {}, which has no terms of \"{}\"", column.name, column.data_type, class.name()))
        }
        None => Ok(()),
    }
}

/// The indexes of a table, those that are being made or dropped included: every writer keeps them all.
pub(crate) struct IndexList {
    list: EpochCell<Vec<Arc<IndexData>>>,
    /// held while the list is exchanged
    changing: Mutex<()>,
}

impl Default for IndexList {
    fn default() -> Self {
        IndexList { list: EpochCell::new(Vec::new()), changing: Mutex::new(()) }
    }
}

/// Some indexes.
pub(crate) type Indexes = SmallVec<[Arc<IndexData>; 2]>;

impl IndexList {
    /// All of them.
    pub(crate) fn all(&self) -> Indexes {
        self.which(|_| true)
    }

    /// The indexes for which `is_wanted` holds.
    #[inline]
    pub(crate) fn which(&self, is_wanted: impl Fn(&IndexData) -> bool) -> Indexes {
        let guard = sync::pin();
        self.list.load(&guard).iter().filter(|index| is_wanted(index)).cloned().collect()
    }

    /// Passes on all of them, without a copy of the list.
    pub(crate) fn each(&self, visit: impl FnMut(&Arc<IndexData>)) {
        self.list.load(&sync::pin()).iter().for_each(visit);
    }

    /// Whether one of these columns is one of an index's.
    #[inline(always)]
    pub(crate) fn has_among(&self, guard: &sync::Guard, columns: &[usize]) -> bool {
        let list = self.list.load(guard);
        !list.is_empty() && list.iter().any(|index| index.is_among(columns.iter().copied()))
    }

    /// An index of this column alone that has its entries in order and is open for all.
    pub(crate) fn of_column<'g>(&'g self, guard: &'g sync::Guard, column: usize) -> Option<&'g IndexData> {
        let is_it = |index: &&IndexData| {
            *index.columns == [column]
                && index.definition.method.is_ordered()
                && !index.definition.is_computed()
                && index.standing.standing() == Standing::Open
        };
        self.list.load(guard).iter().map(|index| &**index).find(is_it)
    }

    /// The indexes made at or before a commit, of which everything that committed before it is published. Some that
    /// were dropped later may be missing.
    pub(crate) fn made_by(&self, at: Timestamp) -> Indexes {
        self.which(|index| match index.standing.standing() {
            Standing::Open => index.made_at.load(Ordering::Relaxed) <= at.0,
            Standing::Locked(_) | Standing::Gone(_) => false,
        })
    }

    pub(crate) fn add(&self, index: Arc<IndexData>) {
        self.change(|list| {
            debug_assert!(!list.iter().any(|known| Arc::ptr_eq(known, &index)), "an index is kept twice");
            list.push(index);
        });
    }

    pub(crate) fn remove(&self, index: &Arc<IndexData>) {
        self.change(|list| {
            debug_assert!(
                list.iter().any(|known| Arc::ptr_eq(known, index)),
                "invariant 7: writers had left the index out"
            );
            list.retain(|known| !Arc::ptr_eq(known, index));
        });
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<IndexData>>)) {
        let (_changing, guard) = (self.changing.lock(), sync::pin());
        let mut list = self.list.load(&guard).clone();
        change(&mut list);
        self.list.replace(list, &guard);
    }
}
