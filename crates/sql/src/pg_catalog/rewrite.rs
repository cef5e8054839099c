//! Brings queries about the catalog into words that the planner knows.
use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, CaseWhen, DataType as SqlType, Expr, Function, FunctionArgumentClause,
    FunctionArguments, GroupByExpr, Ident, ObjectName, ObjectNamePart, OrderBy, OrderByExpr, OrderByKind, Query,
    Select, SelectItem, SetExpr, Statement, TableAlias, TableFactor, TableWithJoins, Value, VisitorMut,
};

use super::calls::{arguments, call, catalog_name, quoted_text, take, text};
use super::columns::{INFORMATION_PREFIX, columns};
use super::fields::{fields_of, letter_of_name};
use super::functions::NAME_LIST;
use super::given_names::{bare_sequence_name, gives_name, is_number, lists_names, number_of_given, number_of_type};
use super::nothing::{empty_query, has_aggregate, nothing};
use super::oids::{CATALOG_SCHEMA, OWNER, relation_oid, schema_oid, type_oid};
use super::routines;
use super::row_places;
use super::sequence_json;
use super::tableoid;
use crate::error::{Result, SqlError};
use crate::functions::arrays::lists;
use crate::functions::{SUBSCRIPTS, is_set_returning};
use crate::names::schemas;
use crate::names::tables::{CATALOG, Tables};
use crate::semantics::naming::columns::label;
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::walk::{WalkMut, walk_expressions};
use crate::values::built_in::built_in;

/// See [`super::rewrite`].
pub(super) fn rewrite(statement: &mut Statement, tables: &Tables, source: &Source) -> Result<bool> {
    let mut rewrite = Rewrite { tables, source, depth: 0, queries: HashSet::new(), is_about_catalog: false };
    match statement.walk_mut(&mut rewrite) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(rewrite.is_about_catalog),
    }
}

struct Rewrite<'a> {
    tables: &'a Tables,
    source: &'a Source<'a>,
    /// How many queries are around.
    depth: usize,
    /// The names of queries of WITH.
    queries: HashSet<String>,
    is_about_catalog: bool,
}

/// A function of the catalog or, under the name that it has there, of `information_schema`.
fn function_name(name: &ObjectName) -> Option<String> {
    match &name.0[..] {
        [schema, _] if schema.as_ident().is_some_and(|schema| fold(schema) == "information_schema") => {
            name.0[1].as_ident().map(fold)
        }
        _ => catalog_name(name),
    }
}

/// The type that a cast is to, if its values stand for numbers of the catalog.
fn reg_type(data_type: &SqlType) -> Option<String> {
    match data_type {
        SqlType::Custom(name, _) => catalog_name(name).filter(|name| name.starts_with("reg")),
        SqlType::Regclass => Some("regclass".to_owned()),
        _ => None,
    }
}

/// Has a name that an expression gives, and that is cast to one of the types of such names, looked up; where that is cast to a number,
/// it is the number.
fn look_up_given(inner: &mut Expr, data_type: &SqlType) -> Result<()> {
    if gives_name(inner) {
        if let Some(number) = reg_type(data_type).as_deref().and_then(number_of_given) {
            *inner = call(number, vec![take(inner)])?;
        }
    } else if let Expr::Cast { expr: name, data_type, .. } = inner
        && gives_name(name)
        && let Some(number) = reg_type(data_type).as_deref().and_then(number_of_given)
    {
        *inner = call(number, vec![take(name)])?;
    }
    Ok(())
}

/// `ARRAY(query)` as a query that makes one array, of no rows an empty one. A query that does more than read rows stands in
/// FROM, where its order is kept.
fn array_of(query: Box<Query>) -> Result<Expr> {
    let is_plain = query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.with.is_none()
        && matches!(query.body.as_ref(), SetExpr::Select(select) if reads_only(select, query.order_by.as_ref()));
    let array = if is_plain { array_over_rows(query)? } else { array_from(query)? };
    call(&format!("\"{}\"", lists::FILLED), vec![array])
}

fn array_over_rows(mut query: Box<Query>) -> Result<Expr> {
    let order = query.order_by.take();
    if let SetExpr::Select(select) = query.body.as_mut()
        && let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] =
            &mut select.projection[..]
    {
        let mut array = call("array_agg", vec![take(item)])?;
        if let Expr::Function(function) = &mut array
            && let FunctionArguments::List(list) = &mut function.args
            && let Some(OrderByKind::Expressions(keys)) = order.map(|order| order.kind)
        {
            list.clauses.push(FunctionArgumentClause::OrderBy(keys));
        }
        *item = array;
    }
    Ok(Expr::Subquery(query))
}

/// Whether a query is in an order of expressions that its rows have, and not of columns that it gives.
fn reads_only(select: &Select, order: Option<&OrderBy>) -> bool {
    let is_of_rows = |key: &OrderByExpr| matches!(key.expr, Expr::CompoundIdentifier(_) | Expr::Identifier(_));
    let is_named = !matches!(&select.projection[..], [SelectItem::UnnamedExpr(_)]);
    let is_ordered_by_rows = match order.map(|order| &order.kind) {
        None => true,
        Some(OrderByKind::Expressions(keys)) => !is_named && keys.iter().all(is_of_rows),
        Some(OrderByKind::All(_)) => false,
    };
    let is_grouped = match &select.group_by {
        GroupByExpr::Expressions(keys, modifiers) => !keys.is_empty() || !modifiers.is_empty(),
        GroupByExpr::All(_) => true,
    };
    is_ordered_by_rows
        && !is_grouped
        && !select.projection.iter().any(|item| is_of_outer_row(item, &select.from))
        && select.distinct.is_none()
        && select.having.is_none()
        && !select.projection.iter().any(|item| has_aggregate(item) || gives_rows(item))
}

/// Whether a column is told to be one of the query around it: an aggregate of it would be one of that query.
fn is_of_outer_row(item: &SelectItem, from: &[TableWithJoins]) -> bool {
    let SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) = item else { return from.is_empty() };
    let own = from
        .iter()
        .flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)));
    let is_meant =
        |factor: &TableFactor| label(factor).is_none_or(|label| fold(&label) == fold(&parts[parts.len() - 2]));
    !own.into_iter().any(is_meant)
}

/// Whether a column is made of several rows for one.
fn gives_rows(item: &SelectItem) -> bool {
    let visited = walk_expressions(item, |expr| match expr {
        Expr::Function(call) if catalog_name(&call.name).is_some_and(|name| is_set_returning(&name)) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    visited.is_break()
}

fn array_from(query: Box<Query>) -> Result<Expr> {
    let mut outer = template("SELECT array_agg(\"v\") FROM (SELECT 1) AS \"q\"(\"v\")")?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|table| &mut table.relation)
    {
        *subquery = query;
    }
    Ok(Expr::Subquery(outer))
}

impl Rewrite<'_> {
    fn function(&mut self, function: &mut Function) -> Result<Option<Expr>> {
        let Some(name) = function_name(&function.name) else { return Ok(None) };
        let answer = match name.as_str() {
            "version" => Some(text(concat!("PostgreSQL 15.6 (lstore ", env!("CARGO_PKG_VERSION"), ")"))),
            "current_database" | "current_catalog" => Some(text(CATALOG)),
            "current_schema" => {
                let first = self.tables.path().schemas(self.tables).into_iter().next();
                Some(first.map_or_else(|| Expr::value(Value::Null), |schema| text(&schema)))
            }
            "current_user" | "session_user" | "user" | "current_role" => Some(text(OWNER)),
            "current_schemas" => {
                let with_catalog = arguments(function).first().is_some_and(|arg| arg.to_string() == "true");
                let path = self.tables.path();
                let implied = path.temporary().into_iter().chain([CATALOG_SCHEMA]).map(str::to_owned);
                let implied = implied.filter(|_| with_catalog);
                let names: Vec<Expr> = implied.chain(path.schemas(self.tables)).map(|name| text(&name)).collect();
                Some(call("make_array", names)?)
            }
            "pg_my_temp_schema" => {
                let number = self.tables.path().temporary().map_or(0, schema_oid);
                Some(Expr::value(Value::Number(number.to_string(), false)))
            }
            "_pg_expandarray" | SUBSCRIPTS => {
                let arg = arguments(function).into_iter().next().map(take);
                Some(call("unnest", vec![call(&name, arg.into_iter().collect())?])?)
            }
            _ => None,
        };
        let is_of_session = [
            "pg_advisory_",
            "pg_try_advisory_",
            "pg_sleep",
            "pg_backend_pid",
            "pg_current_xact_id",
            "pg_cancel_backend",
            "pg_terminate_backend",
        ];
        let is_of_session = is_of_session.iter().any(|prefix| name.starts_with(prefix));
        let prefixes = ["pg_", "has_", "to_reg", "_pg_", "generate_sub"];
        self.is_about_catalog |= prefixes.iter().any(|prefix| name.starts_with(prefix)) && !is_of_session
            || matches!(
                name.as_str(),
                "format_type"
                    | "acldefault"
                    | "oidvectortypes"
                    | "obj_description"
                    | "col_description"
                    | "shobj_description"
                    | "current_setting"
                    | "getdatabaseencoding"
            );
        if name.starts_with("pg_")
            && name.ends_with("_size")
            && name != "pg_database_size"
            && let Some(relation) = arguments(function).into_iter().next()
            && let Some(number) = self.number(relation, "regclass")?
        {
            *relation = number;
        }
        if answer.is_none() && function.name.0.len() == 2 {
            function.name.0.remove(0);
        }
        Ok(answer)
    }

    /// The number that a text stands for as one of the types of such numbers.
    fn number(&self, expr: &Expr, to: &str) -> Result<Option<Expr>> {
        let Some(text) = quoted_text(expr) else { return Ok(None) };
        let Expr::Value(value) = expr else { return Ok(None) };
        let oid = match to {
            _ if text.parse::<u32>().is_ok() => text.parse().ok(),
            "regclass" => {
                let oid = relation_oid(self.tables, text);
                Some(oid.map_err(|error| error.at(self.source.start(value.span)))?)
            }
            "regtype" => {
                let missing = || SqlError::new("42704", format!("type \"{text}\" does not exist"));
                Some(type_oid(text).ok_or_else(|| missing().at(self.source.start(value.span)))?)
            }
            "regproc" | "regprocedure" => {
                let oid = routines::function_oid(self.tables, text, to == "regprocedure");
                oid.map_err(|error| error.at(self.source.start(value.span)))?
            }
            "regnamespace" => {
                if !schemas::exists(self.tables, text) {
                    let error = SqlError::new("3F000", format!("schema \"{text}\" does not exist"));
                    return Err(error.at(self.source.start(value.span)));
                }
                Some(schema_oid(text))
            }
            _ => None,
        };
        Ok(oid.map(|oid| Expr::value(Value::Number(oid.to_string(), false))))
    }

    /// A list of names as one of numbers: `'{int,int8}'::regtype[]`.
    fn list_of_numbers(&self, expr: &mut Expr) -> Result<()> {
        let Expr::Cast { expr: names, data_type: SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _)), .. } = expr
        else {
            return Ok(());
        };
        let (Some(names), Some(to)) = (quoted_text(names), reg_type(item)) else { return Ok(()) };
        let names = names.trim().trim_start_matches('{').trim_end_matches('}').split(',').map(str::trim);
        let number = |name: &str| self.number(&text(name.trim_matches('"')), &to).transpose();
        let elem = names.filter(|name| !name.is_empty()).filter_map(number).collect::<Result<_>>()?;
        *expr = Expr::Array(Array { elem, named: true });
        Ok(())
    }

    /// A number of the catalog as its name, for a cast to one of those types.
    fn name(&mut self, expr: Expr, to: &str) -> Result<Expr> {
        self.is_about_catalog = true;
        match to {
            "regclass" => call("regclassout", vec![expr]),
            "regtype" => call("format_type", vec![expr]),
            "regnamespace" => call("regnamespaceout", vec![expr]),
            "regrole" => call("pg_get_userbyid", vec![expr]),
            "regprocedure" => call("regprocedureout", vec![expr]),
            _ => Ok(expr),
        }
    }

    /// The type that `pg_typeof` tells of a number of the catalog, whose cast does not stay.
    fn typed_number(&self, function: &mut Function) -> Result<Option<String>> {
        if catalog_name(&function.name).is_none_or(|name| name != "pg_typeof") {
            return Ok(None);
        }
        let [Expr::Cast { expr, data_type, .. }] = &arguments(function)[..] else { return Ok(None) };
        let to = reg_type(data_type);
        to.iter().try_for_each(|to| self.number(expr, to).map(|_| ()))?;
        Ok(to)
    }

    /// Casts, before what is within them is looked at.
    fn outer_cast(&mut self, expr: &mut Expr) -> Result<()> {
        match expr {
            // The text of a relation's or type's name is the name.
            Expr::Cast { expr: inner, data_type: SqlType::Text | SqlType::Varchar(None), .. } => {
                if let Expr::Cast { expr: name, data_type, .. } = inner.as_mut()
                    && let Some(to) = reg_type(data_type)
                    && let Some(number) = self.number(name, &to)?
                {
                    *expr = if to == "regtype" { self.name(number, &to)? } else { take(name) };
                }
            }
            Expr::Cast { expr: inner, data_type, .. } if reg_type(data_type).as_deref() == Some("regprocedure") => {
                if let Some(name) = quoted_text(inner).and_then(routines::support_function) {
                    *expr = text(name);
                }
            }
            Expr::Cast { expr: inner, data_type, .. } if is_number(data_type) && is_type_of(inner) => {
                self.is_about_catalog = true;
                number_of_type(inner)?;
            }
            Expr::Cast { expr: inner, data_type, .. } if is_number(data_type) || gives_name(inner) => {
                look_up_given(inner, data_type)?;
            }
            // Numbers are compared as such.
            Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right } => {
                self.compared_types(left, right)?;
                for side in [left, right] {
                    if let Expr::Cast { expr: inner, data_type, .. } = side.as_mut()
                        && reg_type(data_type).is_some_and(|to| to != "regproc")
                        && quoted_text(inner).is_none()
                        && !gives_name(inner)
                    {
                        let inner = take(inner);
                        **side = inner;
                    }
                }
            }
            // There are no domains and no types of rows.
            Expr::Case { operand: None, conditions, else_result, .. } if asks_for_rare_types(conditions) => {
                *expr = else_result.as_mut().map_or_else(|| Expr::value(Value::Null), |other| take(other));
            }
            Expr::Exists { subquery, negated } if nothing(&subquery.body).is_some() => {
                *expr = Expr::value(Value::Boolean(*negated));
            }
            // Its type is that of what stands beside it.
            Expr::Subquery(query) if nothing(&query.body).is_some() => *expr = Expr::value(Value::Null),
            Expr::Subquery(query) => match sequence_json::of_a_column(query)? {
                Some(json) => *expr = json,
                None => one_row(query)?,
            },
            Expr::Function(function) => {
                if let Some(name) = self.typed_number(function)? {
                    *expr = text(&name);
                    return Ok(());
                }
                bare_sequence_name(function);
                let is_array = function.name.0.len() == 1 && catalog_name(&function.name).is_some_and(|n| n == "array");
                if is_array && let FunctionArguments::Subquery(query) = &mut function.args {
                    *expr = match nothing(&query.body) {
                        Some(_) => no_texts()?,
                        None => array_of(query.clone())?,
                    };
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What `pg_typeof` tells beside a type: the numbers of both.
    fn compared_types(&self, left: &mut Expr, right: &mut Expr) -> Result<()> {
        let is_type = |expr: &Expr| match expr {
            Expr::Cast { data_type, .. } => reg_type(data_type).as_deref() == Some("regtype"),
            other => is_type_of(other),
        };
        if !(is_type_of(left) && is_type(right) || is_type(left) && is_type_of(right)) {
            return Ok(());
        }
        for side in [left, right] {
            let inner = match side {
                Expr::Cast { expr, .. } => take(expr),
                _ => take(side),
            };
            *side = match self.number(&inner, "regtype")? {
                Some(number) => number,
                None => call("to_regtype", vec![inner])?,
            };
        }
        Ok(())
    }

    fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        match expr {
            Expr::Function(function) => {
                if let Some(answer) = self.function(function)? {
                    *expr = answer;
                } else if lists_names(function) {
                    self.is_about_catalog = true;
                    *expr = call(&format!("\"{NAME_LIST}\""), vec![take(expr)])?;
                }
            }
            Expr::CompoundIdentifier(parts) => {
                let is_of_information = parts.len() == 3 && fold(&parts[0]) == "information_schema";
                if is_of_information {
                    parts.remove(0);
                }
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                fields_of(root, access_chain);
                if let Some(letter) = letter_of_name(root, access_chain)? {
                    *expr = letter;
                }
            }
            Expr::Cast { .. } => return self.cast(expr),
            _ => {}
        }
        Ok(())
    }

    fn cast(&mut self, expr: &mut Expr) -> Result<()> {
        let Expr::Cast { expr: inner, data_type, .. } = expr else { return Ok(()) };
        if let Some(to) = reg_type(data_type) {
            *expr = match self.number(inner, &to)? {
                Some(number) => number,
                None => {
                    let inner = take(inner);
                    self.name(inner, &to)?
                }
            };
            return Ok(());
        }
        let plain = match data_type {
            SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => item.as_mut(),
            plain => plain,
        };
        if let SqlType::Custom(custom, modifiers) = &*plain
            && let Some(name) = catalog_name(custom)
        {
            *plain = match name.as_str() {
                "oid" | "int8" | "xid" => SqlType::BigInt(None),
                "int2" => SqlType::SmallInt(None),
                "int4" => SqlType::Integer(None),
                "bool" => SqlType::Boolean,
                "text" | "name" | "char" => SqlType::Text,
                _ => match built_in(custom, modifiers) {
                    Some(found) => found,
                    None => return Ok(()),
                },
            };
        }
        Ok(())
    }

    /// A name that a query as a whole shows is shown as such, not as the number that it stands for.
    fn shown(&mut self, select: &mut Select) -> Result<()> {
        for item in &mut select.projection {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
            if let Expr::Cast { expr: inner, data_type, .. } = expr
                && let Some(to) = reg_type(data_type)
                && let Some(number) = self.number(inner, &to)?
            {
                *expr = self.name(number, &to)?;
            }
            if let Expr::Function(function) = &*expr
                && catalog_name(&function.name).is_some_and(|name| name == "to_regclass")
            {
                *expr = self.name(take(expr), "regclass")?;
            }
        }
        Ok(())
    }

    /// Names in FROM: one schema holds the relations of both.
    fn factor(&mut self, factor: &mut TableFactor) {
        if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } = factor {
            self.is_about_catalog |= catalog_name(name).is_some_and(|name| name == SUBSCRIPTS);
        }
        let TableFactor::Table { name, args, alias, .. } = factor else { return };
        let [schema, relation] = &name.0[..] else { return };
        let (Some(schema), Some(relation)) = (schema.as_ident().map(fold), relation.as_ident().cloned()) else {
            return;
        };
        let own = format!("{INFORMATION_PREFIX}{}", fold(&relation));
        match schema.as_str() {
            CATALOG_SCHEMA if args.is_some() => name.0 = vec![ObjectNamePart::Identifier(relation)],
            "information_schema" if args.is_none() && columns(&own).is_some() => {
                self.is_about_catalog = true;
                alias.get_or_insert_with(|| TableAlias {
                    explicit: true,
                    name: Ident::with_quote('"', fold(&relation)),
                    columns: Vec::new(),
                    at: None,
                });
                let own = Ident { span: relation.span, ..Ident::with_quote('"', own) };
                name.0 = [Ident::new(CATALOG_SCHEMA), own].map(ObjectNamePart::Identifier).into();
            }
            _ => {}
        }
    }
}

/// Whether a `CASE` asks whether a type is a domain or one of rows, and for nothing else.
fn asks_for_rare_types(conditions: &[CaseWhen]) -> bool {
    let [CaseWhen { condition: Expr::BinaryOp { left, op: BinaryOperator::Eq, right }, .. }] = conditions else {
        return false;
    };
    let is_kind =
        matches!(&**left, Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|l| fold(l) == "typtype"));
    is_kind && quoted_text(right).is_some_and(|kind| kind == "d" || kind == "c")
}

/// Whether an expression asks for the type of a value.
fn is_type_of(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { expr, data_type, .. } => reg_type(data_type).as_deref() == Some("regtype") && is_type_of(expr),
        Expr::Function(function) => catalog_name(&function.name).is_some_and(|name| name == "pg_typeof"),
        _ => false,
    }
}

/// A query that is a value and reads a relation of the catalog gives one row at most, which the planner does not know.
pub(super) fn one_row(query: &mut Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    let is_of_catalog = select.from.iter().all(|from| match &from.relation {
        TableFactor::Table { name, args: None, .. } => catalog_name(name).is_some_and(|name| columns(&name).is_some()),
        _ => false,
    });
    if let [item] = &mut select.projection[..]
        && is_of_catalog
        && !select.from.is_empty()
        && query.limit_clause.is_none()
        && !has_aggregate(item)
        && let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
    {
        *expr = call("first_value", vec![take(expr)])?;
    }
    Ok(())
}

/// An array of texts without any.
fn no_texts() -> Result<Expr> {
    let query = template("SELECT CAST(make_array() AS TEXT[])")?;
    let SetExpr::Select(mut select) = *query.body else { return Ok(Expr::value(Value::Null)) };
    match select.projection.pop() {
        Some(SelectItem::UnnamedExpr(expr)) => Ok(expr),
        _ => Ok(Expr::value(Value::Null)),
    }
}

fn flow(done: Result<()>) -> ControlFlow<SqlError> {
    match done {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl VisitorMut for Rewrite<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        self.depth += 1;
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.queries.extend(with.map(|cte| fold(&cte.alias.name)));
        if let Some(names) = nothing(&query.body) {
            return flow(empty_query(names).map(|empty| *query = empty));
        }
        match query.body.as_mut() {
            SetExpr::Select(select) if self.depth == 1 => flow(self.shown(select)),
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        tableoid::spell_out(select, catalog_name, (self.tables, self.source), &self.queries);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        self.factor(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        row_places::spell_out(expr, self.tables, self.source);
        flow(self.list_of_numbers(expr).and_then(|()| self.outer_cast(expr)))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        flow(self.expr(expr))
    }
}
