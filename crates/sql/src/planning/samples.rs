//! `TABLESAMPLE`: a part of a table's rows, taken by chance.
//!
//! ```text
//! FROM t AS x TABLESAMPLE BERNOULLI (10) REPEATABLE (7)
//! FROM (SELECT t.a, t.b FROM target AS t WHERE "\0sample"(t.rid, 10, 7, false)) AS x
//! ```
//!
//! A row is taken by a number that its id and the seed lead to, which stays as long as the row: so a seed gives the rows that it gave
//! before. `SYSTEM` takes rows by blocks of their ids, as PostgreSQL takes pages.
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, ObjectNamePart, Query, SelectItem, SetExpr, Statement, TableAlias, TableFactor, TableSample,
    TableSampleKind, TableSampleMethod, Value, VisitorMut, visit_expressions,
};
use engine::Table;

use crate::access::table::rid_column;
use crate::error::{Result, SqlError};
use crate::functions::statement::sample::{NAME, check_percentage};
use crate::names::fold;
use crate::names::tables::SCHEMA;
use crate::planning::catalog::Names;
use crate::state::view::{RowTarget, TARGET_SCHEMA, View, target_table};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::walk::WalkMut;
use crate::syntax::with_scope::WithScope;

/// Puts queries in the place of a statement's samples; whether there are any.
pub(crate) fn spell_out(statement: &mut Statement, view: &mut View, source: &Source) -> Result<bool> {
    let before = view.targets.len();
    let names = Names::new(view.clone());
    let mut samples = Samples { view, names, source, scope: WithScope::default() };
    match statement.walk_mut(&mut samples) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(view.targets.len() > before),
    }
}

/// The error of a sample of what has no rows of its own.
pub(crate) fn not_a_table() -> SqlError {
    SqlError::new("0A000", "TABLESAMPLE clause can only be applied to tables and materialized views")
}

struct Samples<'a> {
    view: &'a mut View,
    names: Names,
    source: &'a Source<'a>,
    scope: WithScope,
}

impl VisitorMut for Samples<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.leave();
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        let TableFactor::Table { name, alias, args: None, version: None, sample: Some(sample), .. } = factor else {
            return ControlFlow::Continue(());
        };
        match self.sampled(name, alias.take(), sample) {
            Ok(sampled) => {
                *factor = sampled;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(Box::new(error.at(self.source.find_word("tablesample")))),
        }
    }
}

impl Samples<'_> {
    fn sampled(
        &mut self,
        name: &ObjectName,
        alias: Option<TableAlias>,
        sample: &TableSampleKind,
    ) -> Result<TableFactor> {
        let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample;
        let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(fold)).collect();
        let (schema, local) = match parts.as_deref() {
            _ if self.scope.has(name) => return Err(not_a_table()),
            Some([table]) => (SCHEMA, table),
            Some([.., schema, table]) if !schema.starts_with('\0') => (schema.as_str(), table),
            // Rows that are locked are read from a target.
            Some(_) => return Err(SqlError::unsupported("TABLESAMPLE in a query that locks rows or changes them")),
            None => return Err(not_a_table()),
        };
        let table = self.names.find_in(schema, local)?.filter(|table| table.sequence().is_none());
        let table = table.ok_or_else(not_a_table)?;
        let condition = condition(sample, &local.clone(), self.view.targets.len())?;
        let query = query(&table, local, self.view.targets.len(), condition)?;
        self.view.targets.push(RowTarget::new(table, self.view.moment.clone(), None));
        let plain = || TableAlias { explicit: true, name: quoted(local), columns: Vec::new(), at: None };
        let alias = Some(alias.unwrap_or_else(plain));
        Ok(TableFactor::Derived { lateral: false, subquery: query, alias, sample: None })
    }
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

fn column(label: &str, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![quoted(label), quoted(name)])
}

/// `"\0sample"(rid, percentage, seed, is by blocks)`.
fn condition(sample: &TableSample, label: &str, target: usize) -> Result<Expr> {
    let by_blocks = match sample.name {
        Some(TableSampleMethod::Bernoulli) => false,
        Some(TableSampleMethod::System) => true,
        _ => return Err(no_method(sample)),
    };
    let quantity = sample.quantity.as_ref().filter(|quantity| quantity.unit.is_none() && quantity.parenthesized);
    let Some(quantity) = quantity.filter(|_| sample.bucket.is_none() && sample.offset.is_none()) else {
        return Err(SqlError::unsupported("this form of TABLESAMPLE"));
    };
    if let Expr::Value(value) = &quantity.value {
        match &value.value {
            Value::Number(number, _) => check_percentage(number.parse().ok())?,
            Value::Null => check_percentage(None)?,
            _ => {}
        }
    }
    check_no_columns(&quantity.value)?;
    let seed = match &sample.seed {
        Some(seed) => Expr::Value(seed.value.clone()),
        // Any number that differs from one statement to the next.
        None => Expr::value(Value::Number((RandomState::new().build_hasher().finish() >> 32).to_string(), false)),
    };
    let args = [
        column(label, &rid_column(target)),
        cast_to(cast_to(quantity.value.clone(), DataType::Real), DataType::DoublePrecision),
        cast_to(seed, DataType::DoublePrecision),
        Expr::value(Value::Boolean(by_blocks)),
    ];
    let args = args.map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).into();
    Ok(Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(quoted(NAME))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }))
}

/// The error of a method that there is not. What is read of one is a call of its name.
fn no_method(sample: &TableSample) -> SqlError {
    match sample.quantity.as_ref().map(|quantity| &quantity.value) {
        Some(Expr::Function(call)) => {
            let name = last_part(&call.name).unwrap_or_default();
            SqlError::new("42704", format!("tablesample method {name} does not exist"))
        }
        _ => SqlError::unsupported("TABLESAMPLE by a method but BERNOULLI and SYSTEM"),
    }
}

/// Refuses a percentage that is made of columns: it is one number for the whole sample.
fn check_no_columns(percentage: &Expr) -> Result<()> {
    let mut named = None;
    let _: ControlFlow<()> = visit_expressions(percentage, |expr| match expr {
        Expr::Identifier(name) => {
            named = Some(format!("\"{}\"", fold(name)));
            ControlFlow::Break(())
        }
        Expr::CompoundIdentifier(_) => {
            named = Some(expr.to_string());
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    let missing = |name| SqlError::new("42703", format!("column {name} does not exist"));
    named.map_or(Ok(()), |name| Err(missing(name)))
}

fn cast_to(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// `SELECT columns FROM target AS label WHERE condition`.
fn query(table: &Table, label: &str, target: usize, condition: Expr) -> Result<Box<Query>> {
    let mut query = template("SELECT 1 FROM s.t AS t")?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(SqlError::new("XX000", "the template is no SELECT"));
    };
    let columns = table.schema().columns().iter();
    select.projection = columns.map(|known| SelectItem::UnnamedExpr(column(label, &known.name))).collect();
    if let Some(TableFactor::Table { name, alias: Some(alias), .. }) =
        select.from.first_mut().map(|table| &mut table.relation)
    {
        *name = ObjectName::from(vec![quoted(TARGET_SCHEMA), quoted(&target_table(target))]);
        alias.name = quoted(label);
    }
    select.selection = Some(condition);
    Ok(query)
}
