//! Functions in FROM whose arguments are no constants, and what of them the planner does not know: each becomes a query.
//!
//! ```text
//! FROM t, generate_series(1, t.k) AS g(x)   ->   FROM t, LATERAL (SELECT generate_series(1, t.k)) AS g(x)
//! FROM unnest(a) WITH ORDINALITY            ->   FROM (SELECT *, row_number() OVER () FROM (SELECT unnest(a))) ...
//! FROM length('abc') AS n                   ->   FROM (SELECT length('abc')) AS n(n)
//! FROM jsonb_each(j) AS e                    ->   FROM (SELECT unnest(keys of j), unnest(values of j)) AS e(key, value)
//! ```
use std::ops::ControlFlow;

use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Query, Select, SelectItem, SetExpr, Statement, TableAlias, TableAliasColumnDef, TableFactor,
    TableWithJoins, VisitorMut,
};

use super::json_rows::columns_of;
use super::{generate, json_records, named_values, time_constants};
use crate::error::{Result, SqlError};
use crate::names::tables::Tables;
use crate::syntax::identifiers::{fold, hidden};
use crate::syntax::template::template;
use crate::syntax::walk::WalkMut;

/// Functions that give rows, under PostgreSQL's names.
const GIVE_ROWS: [&str; 7] = [
    generate::NAME,
    "unnest",
    "regexp_matches",
    "regexp_split_to_table",
    "string_to_table",
    "pg_listening_channels",
    "pg_options_to_table",
];

/// The function of the positions in an array.
pub(crate) const SUBSCRIPTS: &str = "generate_subscripts";

/// Whether a function gives several rows for one.
pub(crate) fn is_set_returning(name: &str) -> bool {
    GIVE_ROWS.contains(&name) || columns_of(name).is_some()
}

/// Rewrites such calls of a statement.
pub(crate) fn spell_out(statement: &mut Statement, state: &SessionState, tables: &Tables) -> Result<()> {
    match statement.walk_mut(&mut Selects { state, tables }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Selects<'s> {
    state: &'s SessionState,
    tables: &'s Tables,
}

impl VisitorMut for Selects<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        let (mut is_first, mut named) = (true, Vec::new());
        for table in &mut select.from {
            named_values::replace_in_calls(table, &named);
            if let Err(error) = self.joined(table, is_first) {
                return ControlFlow::Break(Box::new(error));
            }
            is_first = false;
            named_values::collect(table, &mut named);
        }
        named_values::replace(select, &named);
        ControlFlow::Continue(())
    }
}

impl Selects<'_> {
    fn joined(&self, table: &mut TableWithJoins, is_first: bool) -> Result<()> {
        self.factor(&mut table.relation, is_first)?;
        table.joins.iter_mut().try_for_each(|join| self.factor(&mut join.relation, false))
    }

    fn factor(&self, factor: &mut TableFactor, is_first: bool) -> Result<()> {
        if let Some(query) = json_records::query(factor, is_first, self.tables)? {
            *factor = query;
            return Ok(());
        }
        let call = match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => return self.joined(table_with_joins, is_first),
            TableFactor::UNNEST { array_exprs, alias, with_ordinality, with_offset: false, .. } => {
                let arg = |expr: &Expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr.clone()));
                let name = ObjectName::from(vec![Ident::new("unnest")]);
                Call {
                    name,
                    args: array_exprs.iter().map(arg).collect(),
                    alias: alias.clone(),
                    is_numbered: *with_ordinality,
                }
            }
            _ => match Call::of(factor) {
                Some(call) => call,
                None => return Ok(()),
            },
        };
        if let Some(name) = self.spelled_out(&call) {
            *factor = call.query(&name, is_first)?;
        } else if let TableFactor::Table { args: Some(args), .. } = factor {
            time_constants::spell_out(&mut args.args);
        }
        Ok(())
    }

    /// The name of the function, if its call becomes a query.
    fn spelled_out(&self, call: &Call) -> Option<String> {
        let name = call.plain_name()?;
        if name == generate::NAME {
            return (call.is_numbered || !call.args.iter().all(is_constant)).then_some(name);
        }
        let is_known = is_set_returning(&name) || self.state.scalar_functions().contains_key(&name);
        (is_known && !self.state.table_functions().contains_key(&name)).then_some(name)
    }
}

/// Whether an argument is one of which the value is known before any row.
fn is_constant(arg: &FunctionArg) -> bool {
    fn is_literal(expr: &Expr) -> bool {
        match expr {
            Expr::Value(_) | Expr::TypedString(_) | Expr::Interval(_) => true,
            Expr::UnaryOp { expr, .. } | Expr::Nested(expr) | Expr::Cast { expr, .. } => is_literal(expr),
            Expr::BinaryOp { left, right, .. } => is_literal(left) && is_literal(right),
            _ => false,
        }
    }
    matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) if is_literal(expr))
}

/// A call in FROM.
pub(super) struct Call {
    name: ObjectName,
    args: Vec<FunctionArg>,
    alias: Option<TableAlias>,
    is_numbered: bool,
}

impl Call {
    /// The call that a part of FROM is.
    pub(super) fn of(factor: &TableFactor) -> Option<Call> {
        let (name, args, alias, is_numbered) = match factor {
            TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. } => {
                (name, &args.args, alias, *with_ordinality)
            }
            TableFactor::Function { name, args, alias, with_ordinality, .. } => (name, args, alias, *with_ordinality),
            _ => return None,
        };
        Some(Call { name: name.clone(), args: args.clone(), alias: alias.clone(), is_numbered })
    }

    /// The function's name, unless a schema other than the catalog's is told.
    pub(super) fn plain_name(&self) -> Option<String> {
        let parts: Vec<String> = self.name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
        match &parts[..] {
            [name] => Some(name.clone()),
            [schema, name] if schema == "pg_catalog" => Some(name.clone()),
            _ => None,
        }
    }

    pub(super) fn query(self, name: &str, is_first: bool) -> Result<TableFactor> {
        // Each argument of `unnest` is a list of its own, of which the rows stand side by side.
        let calls: Vec<Expr> = match name == "unnest" && self.args.len() > 1 {
            true => self.args.iter().map(|arg| call(&self.name, vec![arg.clone()])).collect(),
            // It is one list where it is called.
            false if name == SUBSCRIPTS => {
                let list = FunctionArg::Unnamed(FunctionArgExpr::Expr(call(&self.name, self.args.clone())));
                vec![call(&ObjectName::from(vec![Ident::new("unnest")]), vec![list])]
            }
            false => vec![call(&self.name, self.args.clone())],
        };
        let of_json = columns_of(name);
        let calls = match of_json {
            Some((functions, _)) => {
                let list = |function: &&str| {
                    call(&ObjectName::from(vec![Ident::with_quote('"', *function)]), self.args.clone())
                };
                let unnest = ObjectName::from(vec![Ident::new("unnest")]);
                let rows = |list| call(&unnest, vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(list))]);
                functions.iter().map(list).map(rows).collect()
            }
            None => calls,
        };
        // All lists are called after the function, and the planner wants each name once.
        let called = |at| if at == 0 { Ident::with_quote('"', name) } else { hidden(at, name) };
        let mut names: Vec<Ident> = (0..calls.len()).map(called).collect();
        if let Some((_, own)) = of_json.filter(|(_, own)| !own.contains(&name)) {
            names = own.iter().map(|name| Ident::with_quote('"', *name)).collect();
        } else if let ([only], Some(alias)) = (&mut names[..], &self.alias) {
            *only = alias.name.clone();
        }
        let mut query = select_of(calls)?;
        if self.is_numbered {
            names.push(Ident::new("ordinality"));
            query = numbered(query)?;
        }
        let (label, given) = match self.alias {
            Some(alias) => (alias.name, alias.columns),
            None => (Ident::with_quote('"', name), Vec::new()),
        };
        if given.len() > names.len() {
            let message = format!(
                "table \"{}\" has {} columns available but {} columns specified",
                fold(&label),
                names.len(),
                given.len()
            );
            return Err(SqlError::new("42P10", message));
        }
        let rest = names.into_iter().skip(given.len()).map(|name| TableAliasColumnDef { name, data_type: None });
        let columns = given.clone().into_iter().chain(rest).collect();
        let alias = TableAlias { explicit: true, name: label, columns, at: None };
        Ok(TableFactor::Derived { lateral: !is_first, subquery: query, alias: Some(alias), sample: None })
    }
}

pub(super) fn call(name: &ObjectName, args: Vec<FunctionArg>) -> Expr {
    Expr::Function(Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn select_of(exprs: Vec<Expr>) -> Result<Box<Query>> {
    let mut query = template("SELECT 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        let item =
            |(at, expr)| SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', format!("\0item {at}")) };
        select.projection = exprs.into_iter().enumerate().map(item).collect();
    }
    Ok(query)
}

/// The query with a column that counts its rows.
pub(crate) fn numbered(query: Box<Query>) -> Result<Box<Query>> {
    let counting = "SELECT *, row_number() OVER ()::bigint AS \"\0number\" FROM (SELECT 1) AS \"\0rows\"";
    let mut outer = template(counting)?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|table| &mut table.relation)
    {
        *subquery = query;
    }
    Ok(outer)
}
