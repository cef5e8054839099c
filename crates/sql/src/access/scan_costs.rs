//! What it costs to read a table, by the model of crate `costs` and by what of the table is in memory.
//!
//! An index leads to single rows, but what comes in from disk is a page of a whole range and column: an index scan of a table with
//! evicted pages reads, for each range that it meets, its pages as one access to another place and others in order behind it. How many
//! ranges it meets is the model's equation 7, with ranges in the place of pages.
use costs::{CostModel, IndexAccess, IndexShape, PAGE_BYTES, Relation, Residency};
use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};
use engine::Table;

/// The session's model of costs among the options of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanCosts(CostModel);

impl PlanCosts {
    /// The model among all options; the default where a plan is made without a session.
    pub(crate) fn of(options: &ConfigOptions) -> CostModel {
        options.extensions.get::<PlanCosts>().map(|costs| costs.0).unwrap_or_default()
    }

    /// Puts a model among all options.
    pub(crate) fn put(model: CostModel, options: &mut ConfigOptions) {
        options.extensions.insert(PlanCosts(model));
    }
}

impl ConfigExtension for PlanCosts {
    const PREFIX: &'static str = "lstore_costs";
}

/// They are set by the settings of the session alone, and not listed among the library's.
impl ExtensionOptions for PlanCosts {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        Err(DataFusionError::Configuration(format!("{key} is a setting of the session")))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// The costs of reading a table.
pub(crate) struct ScanCosts {
    /// by what is in memory
    model: CostModel,
    pages: f64,
    rows: f64,
    ranges: f64,
    /// whether a part of the table is not in memory
    pub(crate) is_away: bool,
}

impl ScanCosts {
    /// Those of a table as it is now, of which this share of the columns is read.
    pub(crate) fn of(table: &Table, share: f64, model: &CostModel) -> ScanCosts {
        let ((here, away), stats) = (table.page_bytes(), table.stats());
        ScanCosts::new(here as f64, away as f64, (stats.records as f64, stats.ranges as f64), share, model)
    }

    fn new(here: f64, away: f64, (rows, ranges): (f64, f64), share: f64, model: &CostModel) -> ScanCosts {
        let pages = ((here + away) * share / PAGE_BYTES).ceil().max(1.0);
        let ranges = ranges.max(1.0);
        // What is cached is counted in ranges, as what is read is.
        let cache_pages = model.cache_pages.map(|cached| cached * ranges / pages);
        let model = CostModel { cache_pages, ..model.at(Residency::of_bytes(here, away)) };
        ScanCosts { model, pages, rows, ranges, is_away: away > 0.0 }
    }

    /// Reading all of it, with so many conditions on each row.
    pub(crate) fn whole(&self, conditions: usize) -> f64 {
        let relation = Relation { pages: self.pages, tuples: self.rows };
        self.model.seqscan_eq1(relation) + self.model.cpu_scan(self.rows, conditions as f64)
    }

    /// Reading so many rows of it through an index. Indexes are in memory.
    pub(crate) fn by_index(&self, rows: f64, conditions: usize) -> f64 {
        let ranges = Relation { pages: self.ranges, tuples: self.rows };
        let index = IndexShape { size: Relation { pages: 0.0, tuples: self.rows }, is_unique: false };
        let access = IndexAccess {
            outer_tuples: 1.0,
            selectivity: rows / self.rows.max(1.0),
            boundary_selectivity: rows / self.rows.max(1.0),
            correlation: 0.0,
            all_pages: self.ranges,
            arrays: &[],
            boundary_arrays: &[],
            has_equalities_only: false,
        };
        let met = self.model.pages_fetched_eq7(rows, ranges, index, &access);
        let range = self.model.indexscan_correlated_eq4(
            Relation { pages: self.pages / self.ranges, tuples: 1.0 },
            index,
            &IndexAccess { selectivity: 1.0, ..access },
        );
        met * range + self.model.cpu_index_scan(rows, conditions as f64)
    }

    /// The most rows, up to a limit, that cost less through an index than the whole table does.
    pub(crate) fn rows_by_index(&self, limit: usize) -> usize {
        let whole = self.whole(1);
        let (mut cheap, mut dear) = (0, limit + 1);
        while cheap + 1 < dear {
            let middle = cheap.midpoint(dear);
            if self.by_index(middle as f64, 1) < whole { cheap = middle } else { dear = middle }
        }
        cheap
    }
}

#[cfg(test)]
mod tests {
    use costs::{Coefficient, Coefficients};

    use super::*;

    fn away(random: f64, share: f64) -> ScanCosts {
        let coefficients = Coefficients::default().with(Coefficient::RandomRead, random);
        let model = CostModel { coefficients, ..CostModel::default() };
        let (bytes, rows, ranges) = (64_000_000.0, 1_000_000.0, 16.0);
        ScanCosts::new(bytes * (1.0 - share), bytes * share, (rows, ranges), 1.0, &model)
    }

    #[test]
    fn the_dearer_it_is_to_read_anywhere_the_fewer_rows_are_read_through_an_index() {
        let most = |random, share| away(random, share).rows_by_index(1 << 20);
        assert!(most(1.0, 1.0) > most(400.0, 1.0), "{} {}", most(1.0, 1.0), most(400.0, 1.0));
        assert!(most(400.0, 1.0) < most(400.0, 0.1), "less of it has to be read");
        assert_eq!(away(1.0, 1.0).rows_by_index(7), 7);
        assert!(away(1e9, 1.0).rows_by_index(4096) == 0, "one row is dearer than the whole table in order");
    }

    #[test]
    fn what_is_evicted_costs_more_to_read() {
        assert!(away(4.0, 0.5).whole(1) > away(4.0, 0.0).whole(1));
        assert!(away(4.0, 0.5).by_index(10.0, 0) > away(4.0, 0.0).by_index(10.0, 0));
        assert!(!away(4.0, 0.0).is_away && away(4.0, 0.5).is_away);
    }
}
