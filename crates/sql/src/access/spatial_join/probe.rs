//! Pairs of a join by an index, some rows of the outer side at a time.
//!
//! The windows of a stretch of outer rows go through the index together. A stretch gets longer while few pairs are found and shorter
//! where there are many, so that what is in memory stays bounded by the pairs of a few rows.
use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow_schema::{Schema, SchemaRef};
use datafusion::arrow::compute::{concat_batches, filter, filter_record_batch, take};
use datafusion::common::{JoinSide, JoinType};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter, build_join_schema};
use engine::{IndexPairs, IndexWindow, SearchDevice};

use super::{Asked, Inner};
use crate::access::scan::external;
use crate::coprocessor::Searches;

/// So many pairs make a batch.
const PAIRS: usize = 8192;
/// Outer rows that go through the index together: at first, and at most.
const ROWS_FIRST: usize = 64;
const ROWS_MAX: usize = 1024;
/// Those where a device may search the index, which a batch has to keep busy.
const ROWS_MAX_ON_DEVICE: usize = 8192;

/// What is made of pairs.
pub(super) struct Joined {
    kind: JoinType,
    outer: JoinSide,
    condition: JoinFilter,
    /// for each column of the result, where it comes from
    columns: Vec<ColumnIndex>,
    schema: SchemaRef,
}

impl Joined {
    /// As a nested loop makes it.
    pub(super) fn of(join: &NestedLoopJoinExec, outer: JoinSide) -> Result<Joined> {
        let Some(condition) = join.filter().cloned() else {
            return Err(DataFusionError::Internal("a spatial join has a condition".into()));
        };
        let (_, all) = build_join_schema(&join.left().schema(), &join.right().schema(), join.join_type());
        let columns = match join.projection() {
            Some(kept) => kept.iter().map(|at| all[*at].clone()).collect(),
            None => all,
        };
        Ok(Joined { kind: *join.join_type(), outer, condition, columns, schema: join.schema() })
    }

    pub(super) fn kind(&self) -> JoinType {
        self.kind
    }

    pub(super) fn condition(&self) -> String {
        self.condition.expression().to_string()
    }

    /// The columns of pairs that `columns` name; where there are no inner rows, NULL.
    fn rows(
        &self,
        columns: &[ColumnIndex],
        schema: &SchemaRef,
        (outer, outer_at): (&RecordBatch, &UInt32Array),
        inner: Option<(&RecordBatch, &UInt32Array)>,
    ) -> Result<RecordBatch> {
        let column = |(column, field): (&ColumnIndex, &arrow_schema::FieldRef)| match inner {
            _ if column.side == self.outer => take(outer.column(column.index), outer_at, None),
            Some((inner, inner_at)) => take(inner.column(column.index), inner_at, None),
            None => Ok(new_null_array(field.data_type(), outer_at.len())),
        };
        let arrays = columns.iter().zip(schema.fields()).map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(outer_at.len()));
        Ok(RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?)
    }

    /// Whether each of some pairs matches.
    fn matches(
        &self,
        outer: (&RecordBatch, &UInt32Array),
        inner: (&RecordBatch, &UInt32Array),
    ) -> Result<BooleanArray> {
        let pairs = self.rows(self.condition.column_indices(), self.condition.schema(), outer, Some(inner))?;
        let matched = self.condition.expression().evaluate(&pairs)?.into_array(pairs.num_rows())?;
        match matched.as_boolean_opt() {
            Some(matched) => Ok(matched.iter().map(|matched| Some(matched == Some(true))).collect()),
            None => Err(DataFusionError::Internal("a condition is no truth".into())),
        }
    }
}

impl Inner {
    /// The columns that this side of the join has.
    pub(super) fn schema(&self) -> SchemaRef {
        let schema = self.scan.schema();
        match &self.kept {
            Some(kept) => Arc::new(Schema::new(kept.iter().map(|at| schema.field(*at).clone()).collect::<Vec<_>>())),
            None => schema,
        }
    }

    /// The rows that windows may find, and the pairs.
    fn find(
        &self,
        windows: &[IndexWindow],
        device: Option<&dyn SearchDevice>,
    ) -> Result<(RecordBatch, Vec<(u32, u32)>)> {
        let view = self.scan.moment().view();
        match self.scan.table().index_pairs_on(device, view, &self.index, windows, self.scan.options()) {
            Ok(IndexPairs { rows, pairs }) => self.passing(self.scan.arranged(&rows)?, pairs),
            // It was dropped after the statement was planned.
            Err(engine::Error::NoSuchIndex(_)) => {
                let rows = self.scan.again().whole().collect::<Result<Vec<_>>>()?;
                let rows = concat_batches(&self.scan.schema(), &rows)?;
                let places = 0..rows.num_rows() as u32;
                let pairs = (0..windows.len() as u32).flat_map(|window| places.clone().map(move |row| (window, row)));
                let pairs = pairs.collect();
                self.passing(rows, pairs)
            }
            Err(error) => Err(external(error)),
        }
    }

    /// Those that pass the filter, with the columns that the side has.
    fn passing(&self, rows: RecordBatch, mut pairs: Vec<(u32, u32)>) -> Result<(RecordBatch, Vec<(u32, u32)>)> {
        let mut rows = rows;
        if let Some(filter) = &self.filter {
            let passed = filter.evaluate(&rows)?.into_array(rows.num_rows())?;
            let Some(passed) = passed.as_boolean_opt() else {
                return Err(DataFusionError::Internal("a condition is no truth".into()));
            };
            let is_passed = |at: usize| passed.is_valid(at) && passed.value(at);
            let mut next = 0;
            let places: Vec<u32> = (0..rows.num_rows())
                .map(|at| {
                    next += u32::from(is_passed(at));
                    next - u32::from(is_passed(at))
                })
                .collect();
            pairs.retain(|(_, row)| is_passed(*row as usize));
            pairs.iter_mut().for_each(|(_, row)| *row = places[*row as usize]);
            rows = filter_record_batch(&rows, passed)?;
        }
        Ok((self.kept.as_ref().map_or_else(|| Ok(rows.clone()), |kept| rows.project(kept))?, pairs))
    }
}

/// Joins batches of the outer side: an iterator over what their rows give, one batch after the other.
pub(super) struct Probe {
    inner: Arc<Inner>,
    asked: Asked,
    joined: Arc<Joined>,
    /// what is left of the batch that was taken last
    left: Option<RecordBatch>,
    /// what may search the index beside the processor
    device: Option<Searches>,
    stretch: usize,
    ready: VecDeque<RecordBatch>,
}

impl Probe {
    pub(super) fn new(inner: Arc<Inner>, asked: Asked, joined: Arc<Joined>, device: Option<Searches>) -> Probe {
        Probe { inner, asked, joined, left: None, device, stretch: ROWS_FIRST, ready: VecDeque::new() }
    }

    /// Takes a batch of outer rows, once all before are joined.
    pub(super) fn begin(&mut self, outer: RecordBatch) {
        debug_assert!(self.left.is_none(), "a batch would be lost");
        self.left = Some(outer).filter(|outer| outer.num_rows() > 0);
    }

    /// Joins the next stretch of rows.
    fn advance(&mut self, outer: RecordBatch) -> Result<()> {
        let (rows, length) = (outer.num_rows(), self.stretch.min(outer.num_rows()));
        self.left = (length < rows).then(|| outer.slice(length, rows - length));
        let outer = outer.slice(0, length);
        let (places, windows) = self.asked.windows(&self.inner.index, &outer)?;
        let device = self.device.as_ref().map(|device| device as &dyn SearchDevice);
        let (inner, pairs) = self.inner.find(&windows, device)?;
        let most = if device.is_some() { ROWS_MAX_ON_DEVICE } else { ROWS_MAX };
        self.stretch = match pairs.len() {
            many if many > 8 * PAIRS => (self.stretch / 2).max(1),
            few if few < PAIRS => (self.stretch * 2).min(most),
            _ => self.stretch,
        };
        let mut has_partner = vec![false; length];
        for pairs in pairs.chunks(PAIRS) {
            let outer_at: UInt32Array = pairs.iter().map(|(window, _)| Some(places[*window as usize])).collect();
            let inner_at: UInt32Array = pairs.iter().map(|(_, row)| Some(*row)).collect();
            let matched = self.joined.matches((&outer, &outer_at), (&inner, &inner_at))?;
            let (outer_at, inner_at) = (filter(&outer_at, &matched)?, filter(&inner_at, &matched)?);
            let (outer_at, inner_at) = (outer_at.as_primitive(), inner_at.as_primitive());
            outer_at.values().iter().for_each(|at: &u32| has_partner[*at as usize] = true);
            if matches!(self.joined.kind, JoinType::Inner | JoinType::Left | JoinType::Right) {
                let (columns, schema) = (&self.joined.columns, &self.joined.schema);
                let joined = self.joined.rows(columns, schema, (&outer, outer_at), Some((&inner, inner_at)))?;
                self.ready.push_back(joined);
            }
        }
        self.alone(&outer, &has_partner)
    }

    /// The rows of the outer side that stand alone in the result, by whether they have a partner.
    fn alone(&mut self, outer: &RecordBatch, has_partner: &[bool]) -> Result<()> {
        let wanted = match self.joined.kind {
            JoinType::LeftSemi | JoinType::RightSemi => true,
            JoinType::Left | JoinType::Right | JoinType::LeftAnti | JoinType::RightAnti => false,
            _ => return Ok(()),
        };
        let alone = (0..).zip(has_partner).filter(|(_, has)| **has == wanted).map(|(at, _)| at);
        let alone: UInt32Array = alone.collect::<Vec<u32>>().into();
        let rows = self.joined.rows(&self.joined.columns, &self.joined.schema, (outer, &alone), None)?;
        self.ready.push_back(rows);
        Ok(())
    }
}

impl Iterator for Probe {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        if let Some(ready) = self.ready.pop_front() {
            return Some(Ok(ready));
        }
        let outer = self.left.take()?;
        match self.advance(outer) {
            Ok(()) => {
                Some(Ok(self.ready.pop_front().unwrap_or_else(|| RecordBatch::new_empty(self.joined.schema.clone()))))
            }
            Err(error) => Some(Err(error)),
        }
    }
}
