//! The keys that `ON CONFLICT` is about: which index a target means, the key of a row in it, and the row that has a key.
//!
//! A target means the first index of exactly its columns and expressions whose predicate, if there is one, follows from the target's
//! condition. Of a constraint for exclusion no row is found by a key: its conflicts show as rows are put in.
use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr as PlanExpr;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::sql::sqlparser::ast::{ConflictTarget, Expr, Ident};
use datafusion::sql::sqlparser::parser::Parser;
use engine::{
    DataType, Direction, Index, IndexMethod, IndexPart, IndexRange, RowExpression, ScanOptions, Table, Value,
};

use crate::access::folded_parts;
use crate::access::implied::is_implied;
use crate::access::index_expressions::compiled::CompiledExpression;
use crate::access::index_expressions::text::parsed;
use crate::error::{Result, SqlError};
use crate::names::schemas::local;
use crate::names::{find_column, fold};
use crate::planning::functions::kept::inlined;
use crate::planning::index_compile::{Kind, compile};
use crate::session::transactions::Write;
use crate::statements::operator_classes;
use crate::syntax::conflict_tokens::{CLASS, CONDITION, EXPRESSION};
use crate::syntax::dialect::SqlDialect;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::values::single::{value_at, value_of_scalar};
use crate::values::stored::rows_as_stored;

/// A key that no two rows may have.
pub(super) struct Arbiter {
    index: Index,
    pub(super) constraint: String,
    /// Whether it stands for a constraint, be it the primary key.
    is_constraint: bool,
}

/// The keys of a table that no two rows may have.
pub(super) fn keys(write: &Write<'_>, table: &Table) -> Vec<Arbiter> {
    let primary = table.primary_index().map(|index| Arbiter {
        index,
        constraint: write.transaction.settings(table).name_of_key(table.name()),
        is_constraint: true,
    });
    let others = write.transaction.indexes(table).into_iter();
    let others = others.filter(|index| index.definition().is_unique() || !index.definition().exclusion.is_empty());
    let others = others.map(|index| {
        let definition = index.definition();
        Arbiter { constraint: definition.name.clone(), is_constraint: definition.is_constraint, index }
    });
    primary.into_iter().chain(others).collect()
}

/// What a target says of the index that it means.
struct Inference {
    columns: HashSet<usize>,
    expressions: Vec<PlanExpr>,
    /// the parts of its condition
    conditions: Vec<PlanExpr>,
    /// whether its operator classes are those of its types
    is_matching: bool,
}

/// Whether an operator class is for a type; an index of another class has none of its values.
fn is_of_class(class: &str, data_type: DataType) -> Result<bool> {
    let dialect = SqlDialect::default();
    let name = Parser::new(&dialect).try_with_sql(class).and_then(|mut parser| parser.parse_object_name(false));
    let name = name.map_err(|error| Source::new(class).parser_error(error))?;
    match operator_classes::check(&name, data_type, IndexMethod::Btree, &Source::new("")) {
        Err(error) if error.sqlstate == "42704" => Err(error),
        checked => Ok(checked.is_ok()),
    }
}

impl Inference {
    fn read(names: &[Ident], table: &Table, source: &Source) -> Result<Inference> {
        let (expressions, conditions) = (Vec::new(), Vec::new());
        let mut read = Inference { columns: HashSet::new(), expressions, conditions, is_matching: true };
        let columns = table.schema().columns();
        for name in names {
            let at = source.start(name.span);
            let of = |text: &str, kind: Kind| -> Result<(Expr, CompiledExpression)> {
                let mut expr = parsed(text)?;
                while let Expr::Nested(inner) = expr {
                    expr = *inner;
                }
                let expr = inlined(expr, columns, &Source::new(text))?;
                let compiled = compile(&expr, columns, kind, &Source::new(text))?;
                Ok((expr, compiled))
            };
            let place = |name: &Ident| {
                let missing =
                    |error| SqlError { message: format!("column \"{}\" does not exist", fold(name)), ..error };
                find_column(table, &fold(name), at).map_err(missing)
            };
            let elsewhere = |error: SqlError| SqlError { position: None, ..error }.at(at);
            if let Some(text) = name.value.strip_prefix(CONDITION) {
                let (_, condition) = of(text, Kind::Predicate).map_err(elsewhere)?;
                read.conditions.extend(split_conjunction(condition.logical()).into_iter().cloned());
            } else if let Some(text) = name.value.strip_prefix(EXPRESSION) {
                let (text, class) = text.split_once(CLASS).map_or((text, None), |(text, class)| (text, Some(class)));
                let data_type = match of(text, Kind::Expression).map_err(elsewhere)? {
                    (Expr::Identifier(column), _) => {
                        let column = place(&column)?;
                        read.columns.insert(column);
                        columns[column].data_type
                    }
                    (_, compiled) => {
                        read.expressions.push(compiled.logical().clone());
                        compiled.data_type
                    }
                };
                read.is_matching &= class.map_or(Ok(true), |class| is_of_class(class, data_type))?;
            } else {
                read.columns.insert(place(name)?);
            }
        }
        Ok(read)
    }

    /// Whether it means this key.
    fn means(&self, key: &Arbiter, table: &Table) -> bool {
        let definition = key.index.definition();
        let (mut columns, mut expressions) = (HashSet::new(), Vec::new());
        for (at, part) in definition.parts.iter().enumerate() {
            match part {
                part if let Some(column) = folded_parts::column_of(part) => {
                    columns.insert(column);
                }
                _ => expressions.push(key.index.expression(at)),
            }
        }
        let logical = |known: &Option<Arc<dyn RowExpression>>| {
            known.as_deref().and_then(CompiledExpression::of).map(|known| known.logical().clone())
        };
        let Some(expressions) = expressions.iter().map(logical).collect::<Option<Vec<PlanExpr>>>() else {
            return false;
        };
        let is_of_these = columns == self.columns
            && expressions.iter().all(|known| self.expressions.contains(known))
            && self.expressions.iter().all(|asked| expressions.contains(asked));
        let is_within = || match key.index.predicate() {
            None => definition.predicate.is_none(),
            Some(predicate) => CompiledExpression::of(&*predicate)
                .is_some_and(|known| is_implied(known.logical(), &self.conditions, table.schema())),
        };
        definition.exclusion.is_empty() && self.is_matching && is_of_these && is_within()
    }
}

impl Arbiter {
    /// The key that a target means.
    ///
    /// # Errors
    /// PostgreSQL's, where there is none, and where rows are to be changed that another constraint than one of uniqueness excludes.
    fn of(
        target: &ConflictTarget,
        (write, table): (&Write<'_>, &Table),
        changes: bool,
        source: &Source,
    ) -> Result<Arbiter> {
        let mut keys = keys(write, table).into_iter();
        match target {
            ConflictTarget::Columns(names) => {
                let asked = Inference::read(names, table, source)?;
                let found = keys.find(|key| asked.means(key, table));
                found.map(Arbiter::check_at_once).unwrap_or_else(|| {
                    let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
                    Err(SqlError::new("42P10", message))
                })
            }
            ConflictTarget::OnConstraint(name) => {
                let name = last_part(name).unwrap_or_default();
                let is_it = |key: &Arbiter| local(&key.constraint) == name && key.is_constraint;
                let found = keys.find(is_it).ok_or_else(|| {
                    let message = format!("constraint \"{name}\" for table \"{}\" does not exist", table.name());
                    SqlError::new("42704", message)
                })?;
                match found.excludes() && changes {
                    true => {
                        let message = "ON CONFLICT DO UPDATE not supported with exclusion constraints";
                        Err(SqlError::new("42809", message))
                    }
                    false => found.check_at_once(),
                }
            }
        }
    }

    /// The key that a clause goes by; any that there is where it names none.
    ///
    /// # Errors
    /// As [`of`](Self::of), and where a transaction may put one off.
    pub(super) fn asked(
        target: Option<&ConflictTarget>,
        of: (&Write<'_>, &Table),
        changes: bool,
        source: &Source,
    ) -> Result<Option<Arbiter>> {
        match target {
            Some(target) => Arbiter::of(target, of, changes, source).map(Some),
            None => {
                keys(of.0, of.1).into_iter().try_for_each(|key| key.check_at_once().map(drop))?;
                Ok(None)
            }
        }
    }

    /// Refuses a key that a transaction may put off.
    fn check_at_once(self) -> Result<Arbiter> {
        match self.index.definition().deferral {
            None => Ok(self),
            Some(_) => {
                let message =
                    "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
                Err(SqlError::new("55000", message))
            }
        }
    }

    /// Whether it is one for exclusion.
    fn excludes(&self) -> bool {
        !self.index.definition().exclusion.is_empty()
    }

    /// The key of a row; `None` where NULL is in it, which no other row is the same as unless NULL equals NULL there, and of a row
    /// that the index does not have.
    pub(super) fn key(&self, table: &Table, rows: &RecordBatch, row: usize) -> Result<Option<Vec<Value>>> {
        if self.excludes() {
            return Ok(None);
        }
        let one = rows_as_stored(&rows.slice(row, 1));
        let worked_out = |expression: &dyn RowExpression| -> Result<ArrayRef> {
            let failed = |error: engine::ExpressionError| SqlError::new(error.sqlstate, error.message);
            let columns = self.index.reads();
            let read = one.project(&columns).map_err(|error| SqlError::new("XX000", error.to_string()))?;
            expression.evaluate(&read).map_err(failed)
        };
        if let Some(predicate) = self.index.predicate() {
            let holds = worked_out(&*predicate)?;
            if !holds.as_boolean_opt().is_some_and(|holds| holds.is_valid(0) && holds.value(0)) {
                return Ok(None);
            }
        }
        let mut key = Vec::new();
        for (at, part) in self.index.definition().parts.iter().enumerate() {
            let value = match part {
                IndexPart::Column(column) => {
                    let scalar = ScalarValue::try_from_array(rows.column(*column), row);
                    let scalar = scalar.map_err(|error| SqlError::new("XX000", error.to_string()))?;
                    match scalar.is_null() {
                        true => Some(Value::Null),
                        false => value_of_scalar(&scalar, table.schema().columns()[*column].data_type),
                    }
                }
                IndexPart::Expression(expression) => match self.index.expression(at) {
                    Some(known) => {
                        let value = worked_out(&*known)?;
                        match value.is_null(0) {
                            true => Some(Value::Null),
                            false => value_at(&*value, 0, expression.data_type),
                        }
                    }
                    None => None,
                },
            };
            match value {
                Some(Value::Null) if self.index.definition().nulls_equal => key.push(Value::Null),
                Some(Value::Null) | None => return Ok(None),
                Some(value) => key.push(value),
            }
        }
        Ok(Some(key))
    }

    /// The row that has a key.
    pub(super) fn find(&self, write: &mut Write<'_>, table: &Table, key: Vec<Value>) -> Result<Option<u64>> {
        let moment = write.moment()?;
        let options = ScanOptions { with_rid: true, ..ScanOptions::default() };
        let first = |batch: &RecordBatch| {
            let rids = batch.column(0).as_primitive_opt::<UInt64Type>().filter(|rids| !rids.is_empty());
            rids.map(|rids| rids.value(0))
        };
        if table.is_array() {
            return Ok(first(&table.lookup(moment.view(), &key, &options)?));
        }
        let range = IndexRange::equal(key);
        let found = table.index_scan(moment.view(), &self.index, &range, Direction::Upward, options)?;
        for batch in found {
            if let Some(rid) = first(&batch?) {
                return Ok(Some(rid));
            }
        }
        Ok(None)
    }
}
