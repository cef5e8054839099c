//! An Arrow array of ranges, shapes or addresses, and the rows of a table that meet them.
//!
//! ```text
//! values, by number     portions                        batches
//! 0  (1,1),(3,3)    ┐   their windows go through the    query | columns of the row
//! 1  NULL           ├─▶ index together, each row is     0     | ...
//! 2  (5,5),(9,9)    ┘   read once, and each pair is     0     | ...
//! 3  ...                looked at as a whole            2     | ...
//! ```
//!
//! A portion gets longer while few pairs are found and shorter where there are many, so that what is in memory stays bounded by the
//! pairs of a few values. All portions are read at one snapshot.
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, RecordBatch, RecordBatchOptions, UInt32Array, UInt64Array};
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema, SchemaRef};
use arrow_select::take::take;
use index::SearchDevice;
use lineage::{ArrayCells, Cell, value_of_cell};
use types::geometry::{GeometryFault, Relation};
use types::{DataType, Geometry, Value};

use crate::error::Result;
use crate::keys::data::Index;
use crate::keys::definition::IndexMethod;
use crate::keys::range::IndexRange;
use crate::keys::space::{Asked, IndexWindow};
use crate::state::table_data::ScanOptions;
use crate::table::Table;
use crate::table::index_pairs::IndexPairs;
use crate::table::read_view::{ReadView, Sight};

/// Values that go through the index together: at first, and at most.
const VALUES_FIRST: usize = 64;
const VALUES_MAX: usize = 1024;
/// So many pairs make a batch.
const PAIRS: usize = 8192;

/// How the value of a row stands to one that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpaceRelation {
    /// `&&`: they have something in common.
    Overlaps,
    /// `@>`: the row's value contains the one that is asked for.
    Contains,
    /// `<@`: the row's value lies within the one that is asked for.
    Within,
}

impl SpaceRelation {
    /// Whether values of these types may be so related.
    fn takes(self, of_rows: DataType, asked: DataType) -> bool {
        use SpaceRelation::{Contains, Overlaps, Within};
        use types::GeometryKind::{Box, Circle, Point};
        match (of_rows, asked) {
            (DataType::Range(rows), DataType::Range(asked)) => rows == asked,
            (DataType::Network(_), DataType::Network(_)) => true,
            (DataType::Geometry(rows), DataType::Geometry(asked)) => match (rows, asked) {
                (Box, Box) | (Circle, Circle) => matches!(self, Overlaps | Contains | Within),
                (Box | Circle, Point) => self == Contains,
                (Point, Box | Circle) => self == Within,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the value of a row is so related to another one, as PostgreSQL answers it; NULL is to none.
    fn holds(self, row: &Value, asked: &Value) -> std::result::Result<bool, GeometryFault> {
        let relation = match self {
            SpaceRelation::Overlaps => Relation::Overlaps,
            SpaceRelation::Contains => Relation::Contains,
            SpaceRelation::Within => Relation::Within,
        };
        Ok(match (row, asked) {
            (Value::Range(row), Value::Range(asked)) => match self {
                SpaceRelation::Overlaps => row.overlaps(asked),
                SpaceRelation::Contains => row.contains(asked),
                SpaceRelation::Within => asked.contains(row),
            },
            (Value::Network(row), Value::Network(asked)) => match self {
                SpaceRelation::Overlaps => row.overlaps(*asked),
                SpaceRelation::Contains => asked.is_within(*row, true),
                SpaceRelation::Within => row.is_within(*asked, true),
            },
            (Value::Geometry(row), Value::Geometry(asked)) => match (row, asked) {
                (Geometry::Box(row), Geometry::Box(asked)) => row.is(relation, asked),
                (Geometry::Circle(row), Geometry::Circle(asked)) => row.is(relation, asked)?,
                (Geometry::Box(area), Geometry::Point(at)) | (Geometry::Point(at), Geometry::Box(area)) => {
                    area.has(*at)
                }
                (Geometry::Circle(area), Geometry::Point(at)) | (Geometry::Point(at), Geometry::Circle(area)) => {
                    area.has(*at)?
                }
                _ => false,
            },
            _ => false,
        })
    }
}

impl IndexWindow {
    /// Where all rows are whose part of the key of a `gist` index, given by its number, is so related to a value; `None` if there are
    /// none. There may be others among them: ask each row.
    ///
    /// # Panics
    /// If the index has no such part.
    pub fn meeting(index: &Index, part: usize, relation: SpaceRelation, value: &Value) -> Option<IndexWindow> {
        let parts = index.key_columns();
        if value.is_null() {
            return None;
        }
        let extent = index.extent_of(part, value);
        // What lies nowhere overlaps nothing, and is within all.
        if extent.is_none() && relation == SpaceRelation::Overlaps {
            return None;
        }
        let extents = (0..parts.len()).map(|at| extent.filter(|_| at == part)).collect();
        let takes_others = extent.is_none() || parts.len() > 1 || relation == SpaceRelation::Within;
        Some(IndexWindow::Overlapping { extents, takes_others })
    }
}

/// Ranges, shapes or addresses of one type as an Arrow array, in the form in which queries give them; [`Value::Null`] is NULL. `None` if
/// one is of another type, or the type is none of these.
pub fn space_array<'v>(data_type: DataType, values: impl IntoIterator<Item = &'v Value>) -> Option<ArrayRef> {
    let ArrowType::FixedSizeBinary(width) = data_type.to_arrow() else { return None };
    let bytes = |value: &Value| match (value, data_type) {
        (Value::Null, _) => Some(None),
        (Value::Range(range), DataType::Range(kind)) if range.kind() == kind => Some(Some(range.to_bytes())),
        (Value::Geometry(shape), DataType::Geometry(kind)) if shape.kind() == kind => Some(Some(shape.to_bytes())),
        (Value::Network(of), DataType::Network(kind)) if of.kind() == kind => Some(Some(of.to_bytes())),
        _ => None,
    };
    let bytes: Option<Vec<Option<Vec<u8>>>> = values.into_iter().map(bytes).collect();
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes?.into_iter(), width).ok()?;
    Some(Arc::new(array))
}

/// A search for the rows that meet any of many values, in progress: an iterator over batches of pairs.
pub struct BatchSearch {
    table: Table,
    index: Index,
    /// which part of the key is asked for, and of which type the values are
    part: usize,
    asked_type: DataType,
    asked: ArrayRef,
    relation: SpaceRelation,
    view: ReadView,
    /// what is read of rows: what the caller wants, and then what keys are made of
    options: ScanOptions,
    wanted: usize,
    schema: SchemaRef,
    /// what may search the index beside the processor
    device: Option<Arc<dyn SearchDevice>>,
    next: usize,
    stretch: usize,
    /// what was found last, and how much of it was handed out
    found: Option<(IndexPairs, usize)>,
}

impl Table {
    /// The rows that the view sees, that pass the tests, and whose value stands in a relation to one of many: the value of the first
    /// part of the index that is a range or a shape. A batch has a pair a row: a column `query` (uint64) with the place of the value
    /// in `asked`, and then the columns of a scan with these options. Pairs come by their values, in the order of these.
    ///
    /// `asked` holds ranges or shapes as queries give them (fixed-size binary, see [`space_array`]) or as scans do (binary views of
    /// the part's own type). NULL meets nothing. A range may be asked for the like; a box or a circle for the like or, as what contains
    /// it, for a point; a point for a box or a circle that it lies within.
    ///
    /// ```
    /// use arrow_array::UInt64Array;
    /// use engine::geometry::{Geometry, GeometryKind, Point, Rectangle};
    /// use engine::{Column, DataType, Database, IndexDefinition, IndexMethod, ScanOptions, Schema, SpaceRelation, Value, space_array};
    ///
    /// let (db, area) = (Database::in_memory(), DataType::Geometry(GeometryKind::Box));
    /// let columns = vec![Column::new("id", DataType::BigInt), Column::new("area", area)];
    /// let shops = db.create_table("shops", Schema::new(columns, &["id"])?)?;
    /// let index = db.create_index("shops", IndexDefinition::new("shops_area", &[1]).using(IndexMethod::Gist))?;
    /// let square = |x: f64| {
    ///     Value::Geometry(Geometry::Box(Rectangle::of_corners(Point::new(x, 0.0), Point::new(x + 1.0, 1.0))))
    /// };
    /// let mut transaction = db.begin()?;
    /// for id in 0..100 {
    ///     transaction.insert(&shops, &[Value::from(id), square(2.0 * id as f64)])?;
    /// }
    /// transaction.commit()?;
    ///
    /// let asked = space_array(area, &[square(4.5), Value::Null, square(7.0)]).expect("boxes and NULL");
    /// let (view, options) = (db.read_view()?, ScanOptions { columns: vec![0], ..ScanOptions::default() });
    /// for pairs in shops.search_batch(&view, &index, &asked, SpaceRelation::Overlaps, &options)? {
    ///     let pairs = pairs?;                          // query | id
    ///     assert_eq!(**pairs.column(0), UInt64Array::from(vec![0, 2, 2]));
    ///     assert_eq!(pairs.num_columns(), 2);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::NoSuchIndex`](crate::Error::NoSuchIndex) if the index was dropped before the view was taken, or made so late that what
    ///   the view holds was given up but for the view.
    /// - [`Error::BadIndexRange`](crate::Error::BadIndexRange) if it is no `gist` index of all rows with such a part, or has no such
    ///   relation to values of this type.
    /// - [`Error::SnapshotTooOld`](crate::Error::SnapshotTooOld) if the table does not keep what the view sees.
    /// - [`Error::TooManyTransactions`](crate::Error::TooManyTransactions) if as many run as there may be.
    pub fn search_batch<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        index: &Index,
        asked: &ArrayRef,
        relation: SpaceRelation,
        options: &ScanOptions,
    ) -> Result<BatchSearch> {
        self.data.check_no_array("reading by an index", "Read it by scans.")?;
        let (definition, parts) = (&index.data.definition, index.key_columns());
        if definition.method != IndexMethod::Gist || definition.predicate.is_some() {
            return Err(index
                .data
                .refuse_range("is asked for many values, for which there are gist indexes of all rows"));
        }
        let is_space = |of: DataType| matches!(of, DataType::Range(_) | DataType::Geometry(_) | DataType::Network(_));
        let Some(part) = parts.iter().position(|part| is_space(part.data_type)) else {
            return Err(index.data.refuse_range("is asked for ranges or shapes, and has none"));
        };
        let of_rows = parts[part].data_type;
        let asked_type = match asked.data_type() {
            ArrowType::BinaryView => Some(of_rows),
            other => DataType::from_arrow(other).filter(|of| is_space(*of)),
        };
        let Some(asked_type) = asked_type.filter(|asked| relation.takes(of_rows, *asked)) else {
            let why =
                format!("is of {of_rows}, which is not related so to values of the array's type {}", asked.data_type());
            return Err(index.data.refuse_range(&why));
        };
        let sight = view.into();
        let (reads, held) = (sight.reads, self.hold(sight.snapshot)?);
        let mut read = options.clone();
        read.columns.extend(index.data.columns());
        let pairs_schema = |schema: SchemaRef| {
            let query = Arc::new(Field::new("query", ArrowType::UInt64, false));
            Arc::new(ArrowSchema::new([query].into_iter().chain(schema.fields().iter().cloned()).collect::<Vec<_>>()))
        };
        let search = BatchSearch {
            table: self.clone(),
            index: index.clone(),
            part,
            asked_type,
            asked: asked.clone(),
            relation,
            view: held,
            options: read,
            wanted: options.columns.len(),
            schema: pairs_schema(self.data.projection(options).schema),
            device: None,
            next: 0,
            stretch: VALUES_FIRST,
            found: None,
        };
        if let Some(reads) = reads {
            for (_, window) in search.windows(0..asked.len())? {
                if let Some(Asked::Space(window)) = self.data.index_bounds(&index.data, &IndexRange::within(window))? {
                    reads.note_entries(&self.data, &index.data, &Asked::Space(window));
                }
            }
        }
        Ok(search)
    }
}

impl BatchSearch {
    /// The Arrow schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// This search, with a device beside the processor that may search the index.
    pub fn on(self, device: Arc<dyn SearchDevice>) -> BatchSearch {
        BatchSearch { device: Some(device), ..self }
    }

    /// The value that is asked for at a place.
    fn value(&self, at: usize) -> Result<Value> {
        if self.asked.is_null(at) {
            return Ok(Value::Null);
        }
        let bytes = match self.asked.as_fixed_size_binary_opt() {
            Some(fixed) => fixed.value(at),
            None => self.asked.as_binary_view().value(at),
        };
        let width = match self.asked_type {
            DataType::Range(kind) => kind.width(),
            DataType::Geometry(kind) => kind.width(),
            DataType::Network(kind) => kind.width(),
            _ => 0,
        };
        debug_assert!(width > 0, "{} is no type of ranges or shapes", self.asked_type);
        match bytes.len() == width {
            true => Ok(value_of_cell(Cell::Bytes(bytes), self.asked_type)),
            false => {
                let why = format!("is asked for the value at {at}, whose bytes are none of {}", self.asked_type);
                Err(self.index.data.refuse_range(&why))
            }
        }
    }

    /// The windows of some values, with their places; values that no row can meet have none.
    fn windows(&self, places: Range<usize>) -> Result<Vec<(usize, IndexWindow)>> {
        debug_assert!(places.end <= self.asked.len(), "{places:?} are places of values");
        let mut windows = Vec::with_capacity(places.len());
        for at in places {
            let window = IndexWindow::meeting(&self.index, self.part, self.relation, &self.value(at)?);
            windows.extend(window.map(|window| (at, window)));
        }
        Ok(windows)
    }

    /// The pairs of the next stretch of values, with their places in the array.
    fn advance(&mut self) -> Result<IndexPairs> {
        let end = self.asked.len().min(self.next + self.stretch);
        let (places, windows): (Vec<usize>, Vec<IndexWindow>) = self.windows(self.next..end)?.into_iter().unzip();
        let IndexPairs { rows, mut pairs } =
            self.table.index_pairs_on(self.device.as_deref(), &self.view, &self.index, &windows, &self.options)?;
        self.stretch = match pairs.len() {
            many if many > 8 * PAIRS => (self.stretch / 2).max(1),
            few if few < PAIRS => (self.stretch * 2).min(VALUES_MAX),
            _ => self.stretch,
        };
        let asked = places.iter().map(|at| self.value(*at)).collect::<Result<Vec<_>>>()?;
        let of_rows = self.values_of(&rows);
        let mut fault = false;
        pairs.retain(|(window, row)| {
            let held = self.relation.holds(&of_rows[*row as usize], &asked[*window as usize]);
            fault |= held.is_err();
            held.unwrap_or(false)
        });
        if fault {
            return Err(self.index.data.refuse_range("is asked for circles that are too large to be compared"));
        }
        pairs.iter_mut().for_each(|(window, _)| *window = places[*window as usize] as u32);
        debug_assert!(pairs.is_sorted(), "pairs come by the places of their values");
        self.next = end;
        Ok(IndexPairs { rows, pairs })
    }

    /// The value of each row that is compared.
    fn values_of(&self, rows: &RecordBatch) -> Vec<Value> {
        let columns = self.index.data.columns().iter().zip(&rows.columns()[self.wanted..]);
        let columns: Vec<ArrayCells<'_>> = columns
            .map(|(column, array)| ArrayCells::new(array, self.table.schema().columns()[*column].data_type))
            .collect();
        let value = |row: usize| {
            let cells: Vec<Cell<'_>> = columns.iter().map(|column| column.get(row)).collect();
            let parts = self.index.data.part_values(&cells);
            parts.map_or(Value::Null, |mut parts| parts.swap_remove(self.part))
        };
        (0..rows.num_rows()).map(value).collect()
    }

    /// The batch of some pairs.
    fn batch(&self, rows: &RecordBatch, pairs: &[(u32, u32)]) -> RecordBatch {
        debug_assert!(
            pairs.iter().all(|(_, row)| (*row as usize) < rows.num_rows()),
            "a pair is of a row that was read"
        );
        let places: UInt32Array = pairs.iter().map(|(_, row)| Some(*row)).collect();
        let queries: UInt64Array = pairs.iter().map(|(query, _)| Some(u64::from(*query))).collect();
        // Behind what the caller wants stands what keys are made of, and then the Rid.
        let kept = (0..self.wanted).chain(self.wanted + self.index.data.columns().len()..rows.num_columns());
        let columns = kept.map(|at| take(rows.column(at), &places, None).expect("the rows are there"));
        let columns = std::iter::once(Arc::new(queries) as ArrayRef).chain(columns).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(pairs.len()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).expect("the columns of the schema")
    }
}

impl Iterator for BatchSearch {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            if let Some((found, done)) = self.found.take_if(|(found, done)| *done < found.pairs.len()) {
                let end = found.pairs.len().min(done + PAIRS);
                let batch = self.batch(&found.rows, &found.pairs[done..end]);
                self.found = Some((found, end));
                return Some(Ok(batch));
            }
            if self.next >= self.asked.len() {
                return None;
            }
            match self.advance() {
                Ok(found) => self.found = Some((found, 0)),
                Err(error) => {
                    self.next = self.asked.len();
                    return Some(Err(error));
                }
            }
        }
    }
}
