//! The rules for the rows of a table: its constraints, made ready to be applied.
//!
//! ```text
//! settings (text) ──first row that is written──> compiled conditions ──each row──> met, or the first that is false, by name
//! ```
//!
//! A condition that is NULL for a row is met, as in SQL. Conditions are looked at in the order of their names, so that of several that
//! are false the same one is told every time; PostgreSQL does so, too.
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use types::{Column, DataType};

use crate::error::{ExpressionError, Result};
use crate::keys::computed::{ComputedExpressions, ExpressionCompiler};
use crate::keys::definition::{IndexDefinition, IndexExpression, IndexPart};
use crate::terms::constraints::{Check, ForeignKey, Referrer};
use crate::terms::settings::TableSettings;

/// The rules for the rows of a table.
#[derive(Default)]
pub(crate) struct Rules {
    /// in the order of their names
    checks: Vec<Check>,
    compiled: OnceLock<Vec<ComputedExpressions>>,
    foreign_keys: Vec<Arc<ForeignKey>>,
    referrers: Vec<Arc<Referrer>>,
    are_references_off: bool,
}

impl Rules {
    /// Those that a table's settings ask for.
    pub(crate) fn of(settings: &TableSettings) -> Rules {
        let mut checks = settings.checks.clone();
        checks.sort_by(|left, right| left.name.cmp(&right.name));
        debug_assert!(checks.windows(2).all(|pair| pair[0].name < pair[1].name), "two constraints have one name");
        debug_assert!(
            settings.foreign_keys.iter().all(|key| key.columns.len() == key.referenced.len()),
            "a foreign key refers to fewer columns than it has, or to more"
        );
        Rules {
            checks,
            compiled: OnceLock::new(),
            foreign_keys: settings.foreign_keys.iter().cloned().map(Arc::new).collect(),
            referrers: settings.referrers.iter().cloned().map(Arc::new).collect(),
            are_references_off: settings.references_off,
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.foreign_keys.is_empty() && self.referrers.is_empty()
    }

    /// The rows of other tables that rows refer to, as far as what changes rows looks at them.
    pub(crate) fn foreign_keys(&self) -> &[Arc<ForeignKey>] {
        if self.are_references_off { &[] } else { &self.foreign_keys }
    }

    /// The foreign key of this name.
    pub(crate) fn foreign_key(&self, name: &str) -> Option<Arc<ForeignKey>> {
        self.foreign_keys.iter().find(|key| key.name == name).cloned()
    }

    /// The tables that refer to this one, as far as what changes rows looks at them.
    pub(crate) fn referrers(&self) -> &[Arc<Referrer>] {
        if self.are_references_off { &[] } else { &self.referrers }
    }

    /// Makes the conditions ready, which is done once.
    ///
    /// # Errors
    /// What is wrong with one of them, or that there is nothing to compile it with.
    pub(crate) fn compile(&self, table: &[Column], compiler: Option<&dyn ExpressionCompiler>) -> Result<()> {
        if self.compiled.get().is_some() || self.checks.is_empty() {
            return Ok(());
        }
        let missing = || {
            let why = "the table has CHECK constraints, which need SQL, and the database was opened without: open it with the lstore \
                       program, or with sql::open";
            ExpressionError::new("55000", why)
        };
        let compiler = compiler.ok_or_else(missing)?;
        let compiled = |check: &Check| {
            let (text, columns) = (check.condition.clone(), check.columns.clone());
            let part = IndexPart::Expression(IndexExpression { text, columns, data_type: DataType::Boolean });
            let definition = IndexDefinition::of(check.name.clone(), vec![part]);
            ComputedExpressions::new(&definition, table, &check.columns, compiler)
        };
        let compiled = self.checks.iter().map(compiled).collect::<Result<Vec<_>, _>>()?;
        debug_assert_eq!(compiled.len(), self.checks.len(), "each condition is compiled");
        // An earlier thread that compiled them compiled the same.
        let _ = self.compiled.set(compiled);
        Ok(())
    }

    fn pairs(&self) -> impl Iterator<Item = (&Check, &ComputedExpressions)> {
        debug_assert!(self.checks.is_empty() || self.compiled.get().is_some(), "conditions are compiled before use");
        self.checks.iter().zip(self.compiled.get().into_iter().flatten())
    }

    /// The first condition that is false for a row, among those that a change of some columns may make false; `truth` works one out from
    /// the row's cells in the columns that it is given.
    pub(crate) fn broken(
        &self,
        changed: Option<&[usize]>,
        mut truth: impl FnMut(&[usize], &ComputedExpressions) -> Result<Option<bool>>,
    ) -> Result<Option<&str>> {
        // What is known of the version before needs no look unless a column of it has changed.
        let matters = |check: &Check| match changed {
            Some(changed) if check.validated => check.columns.iter().any(|column| changed.contains(column)),
            _ => true,
        };
        for (check, computed) in self.pairs().filter(|(check, _)| matters(check)) {
            if truth(&check.columns, computed)? == Some(false) {
                return Ok(Some(&check.name));
            }
        }
        Ok(None)
    }

    /// Whether all rows of a batch of all columns are known to be right. Where one may be wrong, they are to be looked at one by one,
    /// so that what is wrong is told in their order.
    pub(crate) fn are_right(&self, rows: &RecordBatch) -> bool {
        let is_right = |(check, computed): (&Check, &ComputedExpressions)| {
            let arrays = check.columns.iter().map(|column| rows.column(*column).clone()).collect();
            computed.is_nowhere_false(arrays, rows.num_rows()) == Ok(true)
        };
        self.pairs().all(is_right)
    }
}
