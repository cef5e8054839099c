//! Brings queries about the catalog into words that the planner knows.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    JoinOperator, ObjectName, ObjectNamePart, Query, SelectItem, SetExpr, Statement, TableFactor, TableWithJoins,
    Value, VisitMut, VisitorMut,
};

use super::{CATALOG_SCHEMA, OWNER, TYPES, oids_of};
use crate::catalog::{CATALOG, SCHEMA, Tables};
use crate::error::{Result, SqlError};
use crate::headings::heading;
use crate::names::fold;
use crate::parse::Source;
use crate::values_list::template;

/// Relations that PostgreSQL has and that never have a row here.
const EMPTY: [&str; 27] = [
    "pg_attrdef",
    "pg_auth_members",
    "pg_cast",
    "pg_collation",
    "pg_db_role_setting",
    "pg_default_acl",
    "pg_depend",
    "pg_description",
    "pg_enum",
    "pg_event_trigger",
    "pg_extension",
    "pg_foreign_data_wrapper",
    "pg_foreign_server",
    "pg_foreign_table",
    "pg_inherits",
    "pg_partitioned_table",
    "pg_policy",
    "pg_publication",
    "pg_publication_namespace",
    "pg_publication_rel",
    "pg_range",
    "pg_rewrite",
    "pg_shdescription",
    "pg_statistic_ext",
    "pg_subscription",
    "pg_trigger",
    "pg_user_mapping",
];

/// Functions that make one row of many.
const AGGREGATES: [&str; 9] = ["count", "sum", "min", "max", "avg", "array_agg", "string_agg", "bool_and", "bool_or"];

/// See [`super::rewrite`].
pub(super) fn rewrite(statement: &mut Statement, tables: &Tables, source: &Source) -> Result<bool> {
    let mut rewrite = Rewrite { tables, source, is_about_catalog: false };
    match statement.visit(&mut rewrite) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(rewrite.is_about_catalog),
    }
}

struct Rewrite<'a> {
    tables: &'a Tables,
    source: &'a Source<'a>,
    is_about_catalog: bool,
}

/// The last part of a name that is one of the catalog's, or has no schema.
fn catalog_name(name: &ObjectName) -> Option<String> {
    let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    match &parts[..] {
        [name] => Some(name.clone()),
        [schema, name] if schema == CATALOG_SCHEMA => Some(name.clone()),
        _ => None,
    }
}

fn is_empty(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Table { name, args: None, .. } => {
            catalog_name(name).is_some_and(|name| EMPTY.contains(&name.as_str()))
        }
        _ => false,
    }
}

/// Whether a part of FROM can't give a row: it is empty itself, or joined to what is.
fn gives_nothing(table: &TableWithJoins) -> bool {
    let needs_right = |operator: &JoinOperator| {
        matches!(operator, JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_))
    };
    let keeps_left = |operator: &JoinOperator| {
        needs_right(operator) || matches!(operator, JoinOperator::Left(_) | JoinOperator::LeftOuter(_))
    };
    let joins = &table.joins;
    let is_plain = joins.iter().all(|join| keeps_left(&join.join_operator));
    is_plain
        && (is_empty(&table.relation)
            || joins.iter().any(|join| needs_right(&join.join_operator) && is_empty(&join.relation)))
}

fn has_aggregate(item: &SelectItem) -> bool {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return false };
    match expr {
        Expr::Function(function) => {
            catalog_name(&function.name).is_some_and(|name| AGGREGATES.contains(&name.as_str()))
        }
        Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Cast { .. } | Expr::Case { .. } => {
            false
        }
        _ => false,
    }
}

/// The names of the columns of a query that can't give a row.
fn nothing(body: &SetExpr) -> Option<Vec<Ident>> {
    match body {
        SetExpr::Select(select)
            if select.from.iter().any(gives_nothing) && !select.projection.iter().any(has_aggregate) =>
        {
            let name = |item: &SelectItem| match item {
                SelectItem::UnnamedExpr(expr) => Some(heading(expr).unwrap_or_else(|| "?column?".to_owned())),
                SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
                _ => None,
            };
            let names: Option<Vec<String>> = select.projection.iter().map(name).collect();
            Some(names?.into_iter().map(|name| Ident::with_quote('"', name)).collect())
        }
        SetExpr::SetOperation { left, right, .. } => nothing(right).and(nothing(left)),
        SetExpr::Query(query) => nothing(&query.body),
        _ => None,
    }
}

/// A query of these columns and no rows.
fn empty_query(names: Vec<Ident>) -> Result<Query> {
    let mut query = *template("SELECT CAST(NULL AS TEXT) WHERE FALSE")?;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(SelectItem::UnnamedExpr(null)) = select.projection.pop()
    {
        let item = |(at, mut alias): (usize, Ident)| {
            // Two columns of one name are no matter to who asks, but to the planner.
            alias.value = format!("{}\0{at}", alias.value);
            SelectItem::ExprWithAlias { expr: null.clone(), alias }
        };
        select.projection = names.into_iter().enumerate().map(item).collect();
    }
    Ok(query)
}

impl Rewrite<'_> {
    fn function(&mut self, function: &mut Function) -> Option<Value> {
        let name = catalog_name(&function.name)?;
        let text = |text: &str| Some(Value::SingleQuotedString(text.to_owned()));
        let answer = match name.as_str() {
            "version" => text(concat!("PostgreSQL 16.0 (lstore ", env!("CARGO_PKG_VERSION"), ")")),
            "current_database" | "current_catalog" => text(CATALOG),
            "current_schema" => text(SCHEMA),
            "current_user" | "session_user" | "user" | "current_role" => text(OWNER),
            _ => None,
        };
        self.is_about_catalog |= name.starts_with("pg_")
            || name.starts_with("has_")
            || matches!(name.as_str(), "format_type" | "obj_description" | "col_description" | "shobj_description");
        if answer.is_none() && function.name.0.len() == 2 {
            function.name.0.remove(0);
        }
        answer
    }

    /// A cast to one of the types that stand for numbers of the catalog: a text becomes the number that it names, a number a
    /// text.
    fn cast(&mut self, expr: &Expr, to: &str) -> Result<Option<Expr>> {
        let Expr::Value(value) = expr else { return Ok(None) };
        let Value::SingleQuotedString(text) = &value.value else { return Ok(None) };
        let bare = text.strip_prefix("public.").or_else(|| text.strip_prefix("pg_catalog.")).unwrap_or(text);
        let bare = bare.trim_matches('"');
        let oid = match to {
            _ if text.parse::<u32>().is_ok() => text.parse().ok(),
            "regclass" => {
                let table = self.tables.find(bare).map_err(SqlError::from);
                Some(table.map(|table| oids_of(&table).0).map_err(|e| e.at(self.source.start(value.span)))?)
            }
            "regtype" => TYPES.iter().find(|known| known.name == bare || known.shown == bare).map(|known| known.oid),
            "regnamespace" => (bare == SCHEMA).then_some(super::PUBLIC_OID),
            _ => None,
        };
        Ok(oid.map(|oid| Expr::value(Value::Number(oid.to_string(), false))))
    }

    fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        match expr {
            Expr::Function(function) => {
                if let Some(answer) = self.function(function) {
                    *expr = Expr::value(answer);
                }
            }
            Expr::Collate { expr: inner, collation }
                if catalog_name(collation).is_some_and(|name| name == "default") =>
            {
                *expr = std::mem::replace(inner, Expr::value(Value::Null));
            }
            Expr::BinaryOp { op, .. } => {
                if let BinaryOperator::PGCustomBinaryOperator(parts) = op
                    && let Some(plain) = plain_operator(parts.last().map_or("", String::as_str))
                {
                    *op = plain;
                }
            }
            Expr::Cast { expr: inner, data_type, .. } => {
                let name = match &*data_type {
                    SqlType::Custom(name, _) => catalog_name(name),
                    SqlType::Regclass => Some("regclass".to_owned()),
                    _ => None,
                };
                let Some(name) = name else { return Ok(()) };
                if name.starts_with("reg")
                    && let Some(number) = self.cast(inner, &name)?
                {
                    *expr = number;
                    return Ok(());
                }
                let plain = match name.as_str() {
                    "oid" => SqlType::BigInt(None),
                    "int2" => SqlType::SmallInt(None),
                    "int4" => SqlType::Integer(None),
                    "int8" => SqlType::BigInt(None),
                    "bool" => SqlType::Boolean,
                    "text" | "name" | "char" | "regclass" | "regtype" | "regproc" | "regnamespace" | "regrole" => {
                        SqlType::Text
                    }
                    _ => return Ok(()),
                };
                *data_type = plain;
            }
            _ => {}
        }
        Ok(())
    }
}

fn plain_operator(sign: &str) -> Option<BinaryOperator> {
    Some(match sign {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        _ => return None,
    })
}

/// Takes the cast off the name of a sequence, as in `nextval('s'::regclass)`: the functions take the name.
fn bare_sequence_name(function: &mut Function) {
    let is_of_sequences = matches!(catalog_name(&function.name).as_deref(), Some("nextval" | "currval" | "setval"));
    let FunctionArguments::List(list) = &mut function.args else { return };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(name))) = list.args.first_mut() else { return };
    if is_of_sequences && let Expr::Cast { expr, data_type: SqlType::Regclass, .. } = name {
        *name = std::mem::replace(&mut **expr, Expr::value(Value::Null));
    }
}

impl VisitorMut for Rewrite<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        let Some(names) = nothing(&query.body) else { return ControlFlow::Continue(()) };
        match empty_query(names) {
            Ok(empty) => {
                *query = empty;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Expr::Function(function) = expr {
            bare_sequence_name(function);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match self.expr(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}
