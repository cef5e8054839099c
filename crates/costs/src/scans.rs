//! The four scans: in order, through an index, through a bitmap of an index, by row ids (the paper's Sections A.1 to A.5).
//!
//! How many pages an index scan reads is Mackert and Lohman's estimate (TODS 1989, equations 7 to 10): of `t` rows anywhere in a
//! relation, the first ones find each a page of its own, later ones a page that was read before, if the cache still has it.
//!
//! ```text
//! pages read   │            ____ ‖R‖_p, where all of it fits the cache
//!              │      ___---
//!              │   _--
//!              │ _-
//!              └──────────────── rows asked for
//! ```
//!
//! The text of the paper that we have is damaged in equations 12 and 16; there we follow the program that it transcribes,
//! PostgreSQL 9.0, and the functions say so.
use crate::coefficients::Coefficient;
use crate::model::{CostModel, Relation};

/// How an index scan is asked for rows.
#[derive(Clone, Copy, Debug)]
pub struct IndexAccess<'a> {
    /// `‖O‖_t`: how often it runs, once for each row of the outer relation of a nested loop
    pub outer_tuples: f64,
    /// `ŝ`: the share of rows that the index's conditions leave
    pub selectivity: f64,
    /// `ŝ_B`: the share that those conditions leave which bound the part of the index that is read
    pub boundary_selectivity: f64,
    /// `r̂`: the correlation of the order of the index with that of the rows, -1 to 1
    pub correlation: f64,
    /// `‖R‖_p` over all tables of the query
    pub all_pages: f64,
    /// `‖a‖_1` of each condition with a list of values
    pub arrays: &'a [f64],
    /// those of them that bound the part of the index that is read
    pub boundary_arrays: &'a [f64],
    /// whether all conditions are equalities, without a list and without a test for NULL
    pub has_equalities_only: bool,
}

/// An index as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct IndexShape {
    /// `‖I‖_p` and `‖I‖_t`
    pub size: Relation,
    /// whether no two rows have the same key
    pub is_unique: bool,
}

/// The conditions of a scan by row ids (equations 27 to 30).
#[derive(Clone, Copy, Debug)]
pub struct RowIdQuals<'a> {
    /// `Q_sa`: the length of each list of row ids
    pub arrays: &'a [f64],
    /// `Q_co` and `Q_ctid`: how many conditions ask for one row
    pub singles: f64,
}

/// How much of a relation is in memory: 0 for nothing, 1 for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residency(f64);

impl Residency {
    /// This share of it; what is no share is brought into the bounds.
    pub fn new(share: f64) -> Residency {
        Residency(if share.is_nan() { 1.0 } else { share.clamp(0.0, 1.0) })
    }

    /// So many bytes of it are in memory, so many are not.
    pub fn of_bytes(here: f64, away: f64) -> Residency {
        Residency::new(if away > 0.0 { here / (here + away) } else { 1.0 })
    }
}

impl CostModel {
    /// The model for a relation of which a share is in memory: reading costs as from memory for that share, and as from the device
    /// for the rest. This is ours: the paper's system reads through the caches of PostgreSQL and of the operating system and can't
    /// tell what is there, while a database that evicts its own pages can.
    #[must_use]
    pub fn at(&self, residency: Residency) -> CostModel {
        let mixed = |device, memory| {
            let (device, memory) = (self.coefficients.get(device), self.coefficients.get(memory));
            residency.0 * memory + (1.0 - residency.0) * device
        };
        let coefficients = self
            .coefficients
            .with(Coefficient::SequentialRead, mixed(Coefficient::SequentialRead, Coefficient::SequentialMemory))
            .with(Coefficient::RandomRead, mixed(Coefficient::RandomRead, Coefficient::RandomMemory));
        CostModel { coefficients, ..*self }
    }

    /// Equation 1: a scan of all pages in order.
    pub fn seqscan_eq1(&self, relation: Relation) -> f64 {
        self.sequential_read() * relation.pages
    }

    /// The work of the processor in a scan that tests so many conditions on each row (PostgreSQL's).
    pub fn cpu_scan(&self, tuples: f64, conditions: f64) -> f64 {
        (self.tuple() + self.operator() * conditions) * tuples
    }

    /// Equation 2: an index scan, between its worst case and its best by the square of the correlation.
    pub fn indexscan_eq2(&self, relation: Relation, index: IndexShape, access: &IndexAccess<'_>) -> f64 {
        let worst = self.indexscan_uncorrelated_eq3(relation, index, access);
        let best = self.indexscan_correlated_eq4(relation, index, access);
        self.index_eq16(relation, index, access) + worst + access.correlation.powi(2) * (best - worst)
    }

    /// Equation 3: the rows of each run of the scan are anywhere.
    pub fn indexscan_uncorrelated_eq3(&self, relation: Relation, index: IndexShape, access: &IndexAccess<'_>) -> f64 {
        let (loops, rows) = (loops_eq6(access), tuples_eq5(relation, access));
        self.random_read() * self.pages_fetched_eq7(loops * rows, relation, index, access) / loops
    }

    /// Equation 4: the rows of each run of the scan stand side by side.
    pub fn indexscan_correlated_eq4(&self, relation: Relation, index: IndexShape, access: &IndexAccess<'_>) -> f64 {
        let loops = loops_eq6(access);
        if loops > 1.0 {
            let tuples = (loops * access.selectivity * relation.pages).ceil();
            self.random_read() * self.pages_fetched_eq7(tuples, relation, index, access) / loops
        } else {
            let pages = (access.selectivity * relation.pages).ceil().max(1.0);
            self.random_read() + self.sequential_read() * (pages - 1.0)
        }
    }

    /// Equation 7: the pages that are read for so many rows anywhere in a relation.
    pub fn pages_fetched_eq7(
        &self,
        tuples: f64,
        relation: Relation,
        index: IndexShape,
        access: &IndexAccess<'_>,
    ) -> f64 {
        let (pages, fetched) = (relation.pages.max(1.0), distinct_pages_eq8(relation, tuples));
        let cached = self.cached_pages_eq10(relation, index, access);
        if pages <= cached {
            return fetched.min(pages);
        }
        let until_full = tuples_until_full_eq9(relation, cached);
        if tuples <= until_full { fetched } else { cached + (tuples - until_full) * (pages - cached) / pages }
    }

    /// Equation 10: the part of the cache that is this relation's, `e_R`.
    pub fn cached_pages_eq10(&self, relation: Relation, index: IndexShape, access: &IndexAccess<'_>) -> f64 {
        let all = (access.all_pages + index.size.pages).max(1.0);
        self.cache_pages.map_or(f64::INFINITY, |cache| cache * relation.pages.max(1.0) / all)
    }

    /// Equation 11: a bitmap is made of the index, and the pages in it are read in order.
    pub fn bitmapscan_eq11(&self, relation: Relation, index: IndexShape, access: &IndexAccess<'_>) -> f64 {
        let pages = self.bitmap_pages_eq12(relation, index, access);
        self.index_eq16(relation, index, access) + pages * self.bitmap_page_eq13(pages, relation)
    }

    /// Equation 12: the pages of a bitmap, for each of its runs. The number of rows that is asked for in all runs is `t ‖O‖_t`.
    pub fn bitmap_pages_eq12(&self, relation: Relation, index: IndexShape, access: &IndexAccess<'_>) -> f64 {
        let (most, tuples) = (bitmap_pages_most_eq14(relation), tuples_eq15(relation, access));
        let pages = if access.outer_tuples > 1.0 {
            self.pages_fetched_eq7(tuples * access.outer_tuples, relation, index, access) / access.outer_tuples
        } else {
            2.0 * most * tuples / (2.0 * most + tuples)
        };
        pages.min(most)
    }

    /// Equation 13: what a page of a bitmap costs, between a random and a sequential read by the share of pages in it.
    pub fn bitmap_page_eq13(&self, pages: f64, relation: Relation) -> f64 {
        let (random, sequential) = (self.random_read(), self.sequential_read());
        match pages >= 2.0 {
            true => random - (random - sequential) * (pages / bitmap_pages_most_eq14(relation)).sqrt(),
            false => random,
        }
    }

    /// Equation 16: reading the index itself, and a little more for a larger one. Where it is read several times, pages that
    /// were read before are found in the cache; as in PostgreSQL these pages are counted by equation 7 over the index.
    pub fn index_eq16(&self, relation: Relation, index: IndexShape, access: &IndexAccess<'_>) -> f64 {
        let (loops, scans) = (index_loops_eq17(access), index_scans_eq18(access));
        let pages = index_pages_eq21(relation, index, access);
        let read =
            if scans > 1.0 { self.pages_fetched_eq7(pages * scans, index.size, index, access) / loops } else { pages };
        self.random_read() * (read + index.size.pages / 100_000.0)
    }

    /// The work of the processor in an index scan (PostgreSQL's): entries, and rows with so many conditions beside the index's.
    pub fn cpu_index_scan(&self, tuples: f64, conditions: f64) -> f64 {
        (self.index_tuple() + self.operator()) * tuples + self.cpu_scan(tuples, conditions)
    }

    /// Equation 25: a scan by row ids, each of which is taken for a page of its own.
    pub fn tidscan_eq25(&self, quals: &RowIdQuals<'_>) -> f64 {
        row_ids_eq26(quals) * self.random_read()
    }
}

/// Equation 5: the rows of one run, `t`.
pub(crate) fn tuples_eq5(relation: Relation, access: &IndexAccess<'_>) -> f64 {
    (access.selectivity * relation.tuples).max(1.0).round()
}

/// Equation 6: the runs of the scan, `i_o`.
pub(crate) fn loops_eq6(access: &IndexAccess<'_>) -> f64 {
    access.outer_tuples.max(1.0)
}

/// Equation 8: the pages of so many rows, where no page is read twice, `p_t`.
pub(crate) fn distinct_pages_eq8(relation: Relation, tuples: f64) -> f64 {
    let pages = relation.pages.max(1.0);
    2.0 * pages * tuples / (2.0 * pages + tuples)
}

/// Equation 9: the rows after which the cache is full, `p_e`.
pub(crate) fn tuples_until_full_eq9(relation: Relation, cached: f64) -> f64 {
    let pages = relation.pages.max(1.0);
    2.0 * pages * cached / (2.0 * pages - cached)
}

/// Equation 14: `p_R`.
pub(crate) fn bitmap_pages_most_eq14(relation: Relation) -> f64 {
    relation.pages.max(1.0)
}

/// Equation 15: the rows of a bitmap, as in equation 5.
pub(crate) fn tuples_eq15(relation: Relation, access: &IndexAccess<'_>) -> f64 {
    tuples_eq5(relation, access)
}

/// Equation 17: as equation 6.
pub(crate) fn index_loops_eq17(access: &IndexAccess<'_>) -> f64 {
    loops_eq6(access)
}

/// Equation 18: how often the index is searched, for all values of lists in all runs, `i`.
pub(crate) fn index_scans_eq18(access: &IndexAccess<'_>) -> f64 {
    array_scans_eq19(access) * index_loops_eq17(access)
}

/// Equation 19: the searches of one run, `i_sa`. The conditions with a list, equation 20, are `access.arrays`.
pub(crate) fn array_scans_eq19(access: &IndexAccess<'_>) -> f64 {
    access.arrays.iter().map(|length| length.max(1.0)).product()
}

/// Equation 21: the pages of the index for one search, `p_I`.
pub(crate) fn index_pages_eq21(relation: Relation, index: IndexShape, access: &IndexAccess<'_>) -> f64 {
    match index.size.pages > 1.0 && index.size.tuples > 1.0 {
        true => index_tuples_eq22(relation, index, access) * index.size.pages / index.size.tuples,
        false => 1.0,
    }
}

/// Equation 22: the entries that one search reads, `t_I`.
pub(crate) fn index_tuples_eq22(relation: Relation, index: IndexShape, access: &IndexAccess<'_>) -> f64 {
    match index.is_unique && access.has_equalities_only && access.arrays.is_empty() {
        true => 1.0,
        false => (access.boundary_selectivity * relation.tuples / boundary_scans_eq23(access)).round(),
    }
}

/// Equation 23: the searches by lists that bound what is read, `i_sa,B`. These conditions, equation 24, are
/// `access.boundary_arrays`.
pub(crate) fn boundary_scans_eq23(access: &IndexAccess<'_>) -> f64 {
    access.boundary_arrays.iter().map(|length| length.max(1.0)).product()
}

/// Equation 26: the rows that the conditions on row ids ask for, `t`.
pub(crate) fn row_ids_eq26(quals: &RowIdQuals<'_>) -> f64 {
    quals.arrays.iter().sum::<f64>() + quals.singles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Coefficients, Model, Random};

    const TABLE: Relation = Relation { pages: 1_000.0, tuples: 100_000.0 };
    const INDEX: IndexShape = IndexShape { size: Relation { pages: 200.0, tuples: 100_000.0 }, is_unique: false };

    fn postgresql() -> CostModel {
        CostModel { coefficients: Coefficients::POSTGRESQL, cache_pages: Some(524_288.0), ..CostModel::default() }
    }

    fn access(selectivity: f64) -> IndexAccess<'static> {
        IndexAccess {
            outer_tuples: 1.0,
            selectivity,
            boundary_selectivity: selectivity,
            correlation: 0.0,
            all_pages: 1_000.0,
            arrays: &[],
            boundary_arrays: &[],
            has_equalities_only: false,
        }
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
    }

    #[test]
    fn worked_examples_of_scans_have_the_values_of_the_equations() {
        let model = postgresql();
        assert!(near(model.seqscan_eq1(TABLE) + model.cpu_scan(TABLE.tuples, 1.0), 1_000.0 + 1_250.0));
        // 1% of 100,000 rows: 2 * 1000 * 1000 / 3000 pages.
        let asked = access(0.01);
        assert!(near(tuples_eq5(TABLE, &asked), 1_000.0));
        assert!(near(distinct_pages_eq8(TABLE, 1_000.0), 2_000.0 / 3.0));
        assert!(near(model.indexscan_uncorrelated_eq3(TABLE, INDEX, &asked), 4.0 * 2_000.0 / 3.0));
        assert!(near(model.indexscan_correlated_eq4(TABLE, INDEX, &asked), 4.0 + 9.0));
        assert!(near(index_tuples_eq22(TABLE, INDEX, &asked), 1_000.0));
        assert!(near(model.index_eq16(TABLE, INDEX, &asked), 4.0 * (2.0 + 0.002)));
        let half = IndexAccess { correlation: 0.5, ..asked };
        let (worst, best) = (4.0 * 2_000.0 / 3.0, 13.0);
        assert!(near(model.indexscan_eq2(TABLE, INDEX, &half), 8.008 + worst + 0.25 * (best - worst)));
        let pages = 2_000.0 / 3.0;
        assert!(near(model.bitmap_pages_eq12(TABLE, INDEX, &asked), pages));
        let page = 4.0 - 3.0 * (2.0f64 / 3.0).sqrt();
        assert!(near(model.bitmapscan_eq11(TABLE, INDEX, &asked), 8.008 + pages * page));
        let quals = RowIdQuals { arrays: &[3.0, 5.0], singles: 2.0 };
        assert!(near(model.tidscan_eq25(&quals), 40.0));
    }

    #[test]
    fn a_small_cache_has_pages_read_again() {
        // A tenth of 1,200 pages in all is cached: 100 of this table's.
        let model = CostModel { cache_pages: Some(120.0), ..postgresql() };
        let asked = access(0.1);
        assert!(near(model.cached_pages_eq10(TABLE, INDEX, &asked), 100.0));
        let full = tuples_until_full_eq9(TABLE, 100.0);
        assert!(near(full, 200_000.0 / 1_900.0));
        assert!(near(model.pages_fetched_eq7(full, TABLE, INDEX, &asked), distinct_pages_eq8(TABLE, full)));
        assert!(near(distinct_pages_eq8(TABLE, full), 100.0), "the cache is full then");
        let read = model.pages_fetched_eq7(10_000.0, TABLE, INDEX, &asked);
        assert!(near(read, 100.0 + (10_000.0 - full) * 0.9) && read > TABLE.pages);
        assert!(postgresql().pages_fetched_eq7(10_000.0, TABLE, INDEX, &asked) <= TABLE.pages);
    }

    #[test]
    fn loops_and_lists_share_the_pages_of_their_searches() {
        let model = postgresql();
        let once = access(0.001);
        let often = IndexAccess { outer_tuples: 1_000.0, ..once };
        let (one, many) = (model.indexscan_eq2(TABLE, INDEX, &once), model.indexscan_eq2(TABLE, INDEX, &often));
        assert!(many < one, "a run costs {many}, not {one}: later runs find pages in the cache");
        let listed = IndexAccess { arrays: &[10.0], boundary_arrays: &[10.0], ..once };
        assert!(near(index_scans_eq18(&listed), 10.0) && near(index_tuples_eq22(TABLE, INDEX, &listed), 10.0));
        let key = IndexShape { is_unique: true, ..INDEX };
        let equal = IndexAccess { has_equalities_only: true, ..once };
        assert!(near(index_tuples_eq22(TABLE, key, &equal), 1.0));
        assert!(near(index_tuples_eq22(TABLE, key, &IndexAccess { arrays: &[10.0], ..equal }), 100.0));
    }

    #[test]
    fn more_rows_never_cost_less_in_any_scan() {
        let mut random = Random::new(5);
        for _ in 0..500 {
            let table = Relation { pages: 1.0 + 5_000.0 * random.uniform(), tuples: 500_000.0 * random.uniform() };
            let cache_pages = (random.uniform() < 0.5).then(|| 1.0 + 2_000.0 * random.uniform());
            let model = CostModel { cache_pages, ..postgresql() };
            let (few, many) = (0.5 * random.uniform(), 0.5);
            let of = |share: f64| IndexAccess { correlation: 0.3, ..access(few + share * many) };
            let (few, many) = (of(0.0), of(random.uniform()));
            let cost = |asked| model.indexscan_eq2(table, INDEX, asked);
            assert!(cost(&few) <= cost(&many) + 1e-9, "{table:?} {few:?} {many:?}");
            let wider = Relation { pages: table.pages * 1.5, ..table };
            assert!(model.seqscan_eq1(table) < model.seqscan_eq1(wider));
        }
    }

    #[test]
    fn both_models_scan_at_the_same_cost_and_neither_looks_at_writes() {
        let written =
            Coefficients::POSTGRESQL.with(Coefficient::SequentialWrite, 50.0).with(Coefficient::RandomWrite, 90.0);
        let asymmetric = CostModel { coefficients: written, ..postgresql() };
        let original = CostModel { model: Model::Original, ..postgresql() };
        let asked = access(0.02);
        assert!(near(asymmetric.indexscan_eq2(TABLE, INDEX, &asked), original.indexscan_eq2(TABLE, INDEX, &asked)));
        assert!(near(asymmetric.bitmapscan_eq11(TABLE, INDEX, &asked), original.bitmapscan_eq11(TABLE, INDEX, &asked)));
        assert!(near(asymmetric.seqscan_eq1(TABLE), original.seqscan_eq1(TABLE)));
    }

    #[test]
    fn the_more_of_a_relation_is_in_memory_the_less_it_costs() {
        let cost = |share| postgresql().at(Residency::new(share)).seqscan_eq1(TABLE);
        assert!(near(cost(0.0), 1_000.0) && near(cost(1.0), 10.0) && near(cost(0.5), 505.0));
        assert_eq!(Residency::of_bytes(30.0, 10.0), Residency::new(0.75));
        assert_eq!(
            (Residency::of_bytes(0.0, 0.0), Residency::new(f64::NAN)),
            (Residency::new(1.0), Residency::new(2.0))
        );
    }
}
