//! Running a query of a few tables that are joined by their keys.
//!
//! ```text
//! the table with the fewest rows ──▶ its rows ──▶ values of the linked columns ──▶ ranges of the next table's index ──▶ its rows ──▶ ...
//!
//! combinations: for each table the batch of its rows that were read, and for each combination the place of its row there
//! ```
//!
//! All ranges of a step are read at once. A row of a `LEFT JOIN`'s table that is missing has a place that no row has.
use arrow_array::{Array, RecordBatch, UInt32Array};
use arrow_schema::{Field, Schema as ArrowSchema};
use arrow_select::take::take;
use engine::{Comparison, Direction, Few, Index, IndexPart, IndexRange, ScanOptions, Table, Test, Value};

use crate::access::index_path::plain_ranges;
use crate::error::{Result, SqlError};
use crate::names::moment::Moment;
use crate::point::Point;
use crate::point::bound::Bound;
use crate::point::exact::exact;
use crate::point::join::{Join, Joined, Link};
use crate::point::search::answer::Answer;
use crate::point::search::path::{Asked, Counting, Path};
use crate::session::Session;
use crate::state::outcome::{Outcome, Rows};
use crate::state::target::batch;
use crate::statements::search::{cut_off, there};
use crate::values::single::value_at;

/// The most entries of an index that are looked at in one step.
const ENTRIES_MAX: usize = 4096;
/// The most combinations of rows.
const COMBINATIONS_MAX: usize = 8192;
/// The place of a row that is missing.
const MISSING: u32 = u32::MAX;

/// The tests of a table.
type Tests = Vec<(usize, Test)>;

impl Point {
    /// Runs it; `None` if it has to go the long way.
    pub(super) fn join(&self, session: &mut Session, bound: &Bound<'_>, join: &Join) -> Result<Option<Outcome>> {
        let tests = join.tables.iter().map(|table| bound.tests(&table.conditions)).collect::<Option<Vec<Tests>>>();
        let (Some(tests), Some(cut)) = (tests, join.limits.cut(bound)) else { return Ok(None) };
        session.token.check()?;
        // The moment first: the tables are to be those that their rows belong to.
        let moment = session.moment()?;
        let tables = session.with_seen(|seen| {
            let find = |joined: &Joined| {
                let table = session.db.table_seen_again(seen, moment.view(), &joined.name).ok();
                table.filter(|table| joined.is(table)).cloned()
            };
            join.tables.iter().map(find).collect::<Option<Vec<_>>>()
        });
        let Some(tables) = tables else { return Ok(None) };
        let running = Running { session, join, tables: &tables, tests: &tests, moment: &moment };
        let Some(rows) = running.rows()? else { return Ok(None) };
        let Some(answer) = join.answer.of_rows(&rows, &join.order, false)? else { return Ok(None) };
        let answer = match &join.answer {
            Answer::Columns { .. } | Answer::Items { .. } => cut_off(&answer, cut),
            Answer::Totals { .. } => answer,
        };
        Ok(Some(Outcome::Rows(Rows::ready(answer))))
    }
}

/// A query in one execution.
struct Running<'a> {
    session: &'a Session,
    join: &'a Join,
    tables: &'a [Table],
    tests: &'a [Tests],
    moment: &'a Moment,
}

/// The next table, and the index that leads to its rows.
struct Step {
    table: usize,
    index: Index,
    /// Its links to tables before it.
    links: Vec<Link>,
}

/// How well an index leads on: whether to one row, and by how many columns.
type Rank = (bool, usize);

/// Rows of some tables side by side.
struct Combinations {
    /// The rows that were read, of each table that is among them.
    rows: Vec<Option<RecordBatch>>,
    /// Where the row of each combination stands among them.
    places: Vec<Vec<u32>>,
    count: usize,
}

impl Running<'_> {
    /// The rows of the query; `None` if they are the planner's to find.
    fn rows(&self) -> Result<Option<RecordBatch>> {
        let is_first = |at: &usize| !self.join.tables[*at].is_left && !self.tests[*at].is_empty();
        let asked = |at: usize| Asked::of(&self.tests[at]);
        let path = |at: usize| Path::find(&self.tables[at], asked(at), (&[], &[]), usize::MAX, Counting::Always);
        let find = |at: usize| Some((at, path(at)?));
        let mut firsts: Vec<(usize, Path)> = (0..self.tables.len()).filter(is_first).filter_map(find).collect();
        firsts.sort_by_key(|(_, path)| path.count);
        let way = firsts.into_iter().find_map(|(at, path)| Some((self.steps(at)?, at, path)));
        let Some((steps, first, path)) = way else { return Ok(None) };
        let options = self.options(first);
        let ranges = (&path.index, &path.ranges[..]);
        let few = path.few(usize::MAX);
        let found = self.tables[first].index_rows(self.moment.view(), ranges, path.direction(), &options, few);
        let Some(Some(found)) = there(found)? else { return Ok(None) };
        let mut combinations = Combinations::of(found, first, self.tables.len());
        for step in &steps {
            self.session.token.check()?;
            match self.extend(combinations, step)? {
                Some(longer) => combinations = longer,
                None => return Ok(None),
            }
        }
        combinations.side_by_side(self.join).map(Some)
    }

    fn options(&self, table: usize) -> ScanOptions {
        let (columns, tests) = (self.join.tables[table].reads.clone(), self.tests[table].clone());
        ScanOptions { columns, tests, ..ScanOptions::default() }
    }

    /// The way from the first table through all others, if indexes lead on from each.
    fn steps(&self, first: usize) -> Option<Vec<Step>> {
        let mut is_there = vec![false; self.tables.len()];
        is_there[first] = true;
        let mut steps = Vec::with_capacity(self.tables.len() - 1);
        while steps.len() + 1 < self.tables.len() {
            let others = (0..self.tables.len()).filter(|at| !is_there[*at]);
            let (_, step) = others.filter_map(|at| self.step(at, &is_there)).max_by_key(|(rank, _)| *rank)?;
            is_there[step.table] = true;
            steps.push(step);
        }
        Some(steps)
    }

    /// The best index to a table's rows from the tables that are there.
    fn step(&self, at: usize, is_there: &[bool]) -> Option<(Rank, Step)> {
        let joined = &self.join.tables[at];
        let links = || joined.links.iter().filter(|link| is_there[link.other.table]).copied();
        if joined.is_left && joined.links.iter().any(|link| !is_there[link.other.table]) {
            return None;
        }
        let is_pinned = |column: usize| {
            let is_equal =
                |test: &(usize, Test)| test.0 == column && matches!(test.1, Test::Compare(Comparison::Eq, _));
            links().any(|link| link.column == column) || self.tests[at].iter().any(is_equal)
        };
        let rank = |index: &Index| -> Rank {
            let parts = &index.definition().parts;
            let pinned =
                parts.iter().take_while(|part| matches!(part, IndexPart::Column(at) if is_pinned(*at))).count();
            let finds_keys = index.definition().method.finds_keys();
            let is_usable = (pinned == parts.len() && finds_keys) || (index.is_ordered() && pinned > 0);
            (index.definition().unique && pinned == parts.len(), if is_usable { pinned } else { 0 })
        };
        let table = &self.tables[at];
        let indexes = table.primary_index().into_iter().chain(table.indexes()).filter(|_| !table.is_array());
        let ranked = indexes.filter(|index| !index.definition().is_computed()).map(|index| (rank(&index), index));
        let (rank, index) = ranked.filter(|(rank, _)| rank.1 > 0).max_by_key(|(rank, _)| *rank)?;
        Some((rank, Step { table: at, index, links: links().collect() }))
    }

    /// The combinations with the rows of one more table; `None` if there are too many.
    fn extend(&self, combinations: Combinations, step: &Step) -> Result<Option<Combinations>> {
        let joined = &self.join.tables[step.table];
        let keys = Keys::of(&combinations, &step.links);
        let Some(ranges) = self.ranges(step, &keys) else { return Ok(None) };
        let options = self.options(step.table);
        let few = Few { rows: usize::MAX, entries: ENTRIES_MAX };
        let way = (&step.index, &ranges.all[..]);
        let table = &self.tables[step.table];
        let found = table.index_rows_by_range(self.moment.view(), way, Direction::Upward, &options, few);
        let Some(Some((rows, ends))) = there(found)? else { return Ok(None) };
        let has_nulls = |row: usize| joined.nulls.iter().all(|place| rows.column(*place).is_null(row));
        let mut longer: Vec<(usize, u32)> = Vec::with_capacity(combinations.count);
        for (at, key) in keys.of_combinations.iter().enumerate() {
            let known = longer.len();
            let mut has_partner = false;
            for row in key.map_or(0..0, |key| ranges.rows_of(key, &ends)) {
                let key = &keys.all[key.unwrap_or_default()];
                if ranges.open.iter().all(|link| step.links[*link].holds(&rows, row, &key[*link])) {
                    has_partner = true;
                    longer.extend(has_nulls(row).then_some((at, row as u32)));
                }
            }
            if joined.is_left && !has_partner {
                debug_assert_eq!(longer.len(), known, "no partner, and no row of one");
                longer.push((at, MISSING));
            }
            if longer.len() > COMBINATIONS_MAX {
                return Ok(None);
            }
        }
        Ok(Some(combinations.with(step.table, rows, &longer)))
    }

    /// The ranges of an index for all keys.
    fn ranges(&self, step: &Step, keys: &Keys) -> Option<Ranges> {
        let all_links = (0..step.links.len()).collect();
        let Some(first) = keys.all.first() else { return Some(Ranges { all: Vec::new(), of_key: 0, open: all_links }) };
        // What is said besides of a linked column is tested of each row.
        let is_linked = |column: usize| step.links.iter().any(|link| link.column == column);
        let other = self.tests[step.table].iter().filter(|(column, _)| !is_linked(*column)).cloned();
        let equal = |(link, value): (&Link, &Value)| (link.column, Test::Compare(Comparison::Eq, value.clone()));
        let tests: Tests = step.links.iter().zip(first).map(equal).chain(other).collect();
        let template = plain_ranges(&step.index, &tests, &[])?;
        let width = template.first()?.equal.len();
        let link_of = |part: &IndexPart| match part {
            IndexPart::Column(column) => step.links.iter().position(|link| link.column == *column),
            IndexPart::Expression(_) => None,
        };
        let parts = step.index.definition().parts.iter().take(width).enumerate();
        let taken: Vec<(usize, usize)> = parts.filter_map(|(at, part)| Some((at, link_of(part)?))).collect();
        let mut all: Vec<IndexRange> = Vec::with_capacity(keys.all.len() * template.len());
        for key in &keys.all {
            for range in &template {
                let mut range = range.clone();
                taken.iter().for_each(|(at, link)| range.equal[*at].clone_from(&key[*link]));
                all.push(range);
            }
        }
        let open = (0..step.links.len()).filter(|link| !taken.iter().any(|(_, known)| known == link)).collect();
        Some(Ranges { all, of_key: template.len(), open })
    }
}

/// The ranges of an index, as many for each key.
struct Ranges {
    all: Vec<IndexRange>,
    of_key: usize,
    /// The links that they do not see to.
    open: Vec<usize>,
}

impl Ranges {
    /// The rows of a key, where the rows of each range end.
    fn rows_of(&self, key: usize, ends: &[usize]) -> std::ops::Range<usize> {
        let first = key * self.of_key;
        let begin = first.checked_sub(1).map_or(0, |before| ends[before]);
        begin..(first + self.of_key).checked_sub(1).map_or(0, |last| ends[last])
    }
}

/// The values of the linked columns that rows are looked for by.
struct Keys {
    /// One beside another is not the same.
    all: Vec<Vec<Value>>,
    /// The key of each combination; none where no row can equal it.
    of_combinations: Vec<Option<usize>>,
}

impl Keys {
    fn of(combinations: &Combinations, links: &[Link]) -> Keys {
        let mut keys = Keys { all: Vec::new(), of_combinations: Vec::with_capacity(combinations.count) };
        for at in 0..combinations.count {
            let key = links.iter().map(|link| combinations.value(at, link)).collect::<Option<Vec<Value>>>();
            if let Some(key) = key {
                keys.all.extend(Some(key).filter(|key| keys.all.last() != Some(key)));
                keys.of_combinations.push(Some(keys.all.len() - 1));
            } else {
                keys.of_combinations.push(None);
            }
        }
        keys
    }
}

impl Link {
    /// Whether a row has this value in the linked column.
    fn holds(&self, rows: &RecordBatch, row: usize, value: &Value) -> bool {
        value_at(rows.column(self.place), row, self.data_type).as_ref() == Some(value)
    }
}

impl Combinations {
    /// Those of the rows of one table.
    fn of(rows: RecordBatch, table: usize, tables: usize) -> Combinations {
        let count = rows.num_rows();
        let mut combinations = Combinations { rows: vec![None; tables], places: vec![Vec::new(); tables], count };
        combinations.places[table] = (0..count as u32).collect();
        combinations.rows[table] = Some(rows);
        combinations
    }

    /// The value that a linked column has to have beside a combination, if any can.
    fn value(&self, at: usize, link: &Link) -> Option<Value> {
        let (rows, place) = (self.rows[link.other.table].as_ref()?, self.places[link.other.table][at]);
        if place == MISSING {
            return None;
        }
        let value = value_at(rows.column(link.other.place), place as usize, link.other.data_type)?;
        if value.is_null() || link.data_type.whole() == link.other.data_type.whole() {
            return Some(value).filter(|value| !value.is_null());
        }
        exact(&value, link.data_type)
    }

    /// These with the rows of one more table, each beside its row there.
    fn with(mut self, table: usize, rows: RecordBatch, longer: &[(usize, u32)]) -> Combinations {
        for places in self.places.iter_mut().filter(|places| !places.is_empty()) {
            *places = longer.iter().map(|(at, _)| places[*at]).collect();
        }
        self.places[table] = longer.iter().map(|(_, place)| *place).collect();
        self.rows[table] = Some(rows);
        Combinations { count: longer.len(), ..self }
    }

    /// The columns that are read, of all tables.
    fn side_by_side(&self, join: &Join) -> Result<RecordBatch> {
        let place = |place: &u32| Some(*place).filter(|place| *place != MISSING);
        let places: Vec<UInt32Array> = self.places.iter().map(|places| places.iter().map(place).collect()).collect();
        let mut arrays = Vec::with_capacity(join.reads.len());
        let mut fields = Vec::with_capacity(join.reads.len());
        for (table, at) in &join.reads {
            let Some(rows) = &self.rows[*table] else { return Err(SqlError::new("XX000", "a table was not joined")) };
            let array = take(rows.column(*at), &places[*table], None);
            let array = array.map_err(|error| SqlError::new("XX000", error.to_string()))?;
            fields.push(Field::new("", array.data_type().clone(), true));
            arrays.push(array);
        }
        batch(ArrowSchema::new(fields).into(), arrays, self.count)
    }
}
