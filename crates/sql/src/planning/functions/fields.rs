//! Fields of rows that functions give, in a select list:
//!
//! ```text
//! (jsonb_each(j)).key         ->  unnest(keys of j)                             a set in step with the others of the list
//! (f(x)).a                    ->  unnest(ARRAY(SELECT a FROM f(x)))             f gives rows, and one field is asked for
//! SELECT (f(x)).a, (f(x)).b   ->  SELECT r.a, r.b FROM ..., LATERAL f(x) AS r   several fields of one row belong together
//! (g(x)).a                    ->  (SELECT a FROM g(x))                          g gives one row
//! (f(x)).*, f(x)              ->  a field for each column;  ROW of them
//! ```
//!
//! In the third case the hidden table r has names that no statement can spell, so that no other name means anything else.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Ident, Join, JoinConstraint, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, VisitorMut,
};
use engine::{FunctionResult, name_in_schema};

use super::{Calls, Place, build};
use crate::error::{Result, SqlError};
use crate::functions::{columns_of, is_set_returning};
use crate::names::tables::Tables;
use crate::semantics::naming::columns::constraint;
use crate::semantics::spelling::spellings::{calling, calling_quoted};
use crate::syntax::identifiers::fold;
use crate::syntax::template::template;
use crate::syntax::walk::{WalkMut, walk_expressions};

/// The hidden table.
const BESIDE: &str = "\0rows";

/// What is known of a call that gives rows of several columns.
struct Rows {
    columns: Vec<String>,
    /// The functions that give the columns as arrays, of one that is made of such.
    arrays: &'static [&'static str],
    /// Whether it gives any number of rows.
    is_set: bool,
}

/// Writes the fields of a SELECT out.
///
/// # Errors
/// A row has no such field.
pub(in crate::planning) fn spell_out(
    select: &mut Select,
    calls: Option<&Calls<'_>>,
    tables: &Tables,
    place: Place<'_>,
) -> Result<()> {
    let mut sight = Sight { calls, tables, place, beside: None, clause: None };
    sight.beside = sight.brought_beside(select)?;
    let mut items = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        sight.item(item, &mut items)?;
    }
    select.projection = items;
    for (expr, clause) in [(&mut select.selection, "WHERE"), (&mut select.having, "HAVING")] {
        if let Some(expr) = expr {
            sight.clause = Some(clause);
            sight.within(expr)?;
        }
    }
    Ok(())
}

struct Sight<'a> {
    calls: Option<&'a Calls<'a>>,
    tables: &'a Tables,
    place: Place<'a>,
    /// The text of the call whose rows stand in FROM, if one does.
    beside: Option<String>,
    /// The clause that is looked at, if it is not the select list.
    clause: Option<&'static str>,
}

/// A call that gives rows, and the fields that are asked for.
struct Asked {
    call: Function,
    rows: Rows,
    fields: Vec<String>,
}

impl Sight<'_> {
    /// Brings the call into FROM of which a list asks for several fields; its text.
    ///
    /// # Errors
    /// The list is of groups, or has other sets, which would be in step with it.
    fn brought_beside(&self, select: &mut Select) -> Result<Option<String>> {
        let mut asked: Vec<Asked> = Vec::new();
        for item in &select.projection {
            self.collect(item, &mut asked)?;
        }
        let Some(at) = asked.iter().position(|asked| asked.fields.len() > 1) else { return Ok(None) };
        let is_alone = asked.len() == 1;
        let Asked { call, rows, .. } = asked.swap_remove(at);
        let is_plain = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty())
            && select.having.is_none()
            && !build::has_aggregate_or_window(&select.projection, |name| self.is_aggregate(name))
            && is_alone
            && !self.has_other_sets(&select.projection, &call);
        let FunctionArguments::List(list) = &call.args else { return Ok(None) };
        if !is_plain || !write_out_wildcards(select) {
            let what = format!("several fields of function {} beside other sets, groups or *", call.name);
            return Err(SqlError::unsupported(what).hint("Call it in FROM."));
        }
        let column = |name: &String| TableAliasColumnDef { name: hidden(name), data_type: None };
        let columns = rows.columns.iter().map(column).collect();
        let alias = Some(TableAlias { explicit: true, name: quoted(BESIDE), columns, at: None });
        let (name, args) = (call.name.clone(), list.args.clone());
        let relation = TableFactor::Function { lateral: true, name, args, with_ordinality: false, alias };
        select.from.push(TableWithJoins { relation, joins: Vec::new() });
        Ok(Some(call.to_string()))
    }

    fn is_aggregate(&self, name: &str) -> bool {
        self.calls.is_some_and(|calls| (calls.library.is_aggregate)(name))
    }

    /// Whether a list has sets besides those of a call.
    fn has_other_sets(&self, items: &[SelectItem], call: &Function) -> bool {
        let found = walk_expressions(&items.to_vec(), |expr| match expr {
            Expr::Function(other) if other != call => {
                let name = other.name.0.last().and_then(ObjectNamePart::as_ident).map(fold).unwrap_or_default();
                let is_set_of_user = self.calls.is_some_and(|calls| calls.gives_set(&other.name));
                if is_set_returning(&name) || is_set_of_user {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            }
            _ => ControlFlow::Continue(()),
        });
        found.is_break()
    }

    /// Notes the fields that a column of the list asks for.
    fn collect(&self, item: &SelectItem, asked: &mut Vec<Asked>) -> Result<()> {
        let mut note = |call: &Function, field: Option<String>| -> Result<()> {
            let Some(rows) = self.rows(call)?.filter(|rows| rows.is_set && rows.arrays.is_empty()) else {
                return Ok(());
            };
            let fields = field.map_or_else(|| rows.columns.clone(), |field| vec![field]);
            match asked.iter_mut().find(|known| known.call == *call) {
                Some(known) => known.fields.extend(fields),
                None => asked.push(Asked { call: call.clone(), rows, fields }),
            }
            Ok(())
        };
        let expr = match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr,
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(root), _) => {
                return call_of(root).map_or(Ok(()), |call| note(call, None));
            }
            _ => return Ok(()),
        };
        if let Expr::Function(call) = expr {
            note(call, None)?;
        }
        let found = walk_expressions(expr, |expr| match field_of(expr) {
            Some((call, field)) => match note(call, Some(field)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(Box::new(error)),
            },
            None => ControlFlow::Continue(()),
        });
        match found {
            ControlFlow::Break(error) => Err(*error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// A column of the list, or those that stand for it.
    fn item(&self, item: SelectItem, items: &mut Vec<SelectItem>) -> Result<()> {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(root), _) = &item {
            let rows = match call_of(root) {
                Some(call) => self.rows(call)?.map(|rows| (call, rows)),
                None => None,
            };
            let unknown = || SqlError::unsupported("all fields of what is no function's row and no table");
            let (call, rows) = rows.ok_or_else(unknown)?;
            for name in &rows.columns {
                items.push(SelectItem::ExprWithAlias { expr: self.one(call, &rows, name)?, alias: quoted(name) });
            }
            return Ok(());
        }
        let SelectItem::UnnamedExpr(mut expr) = item else {
            let mut item = item;
            if let SelectItem::ExprWithAlias { expr, .. } = &mut item {
                self.whole(expr)?;
                self.within(expr)?;
            }
            items.push(item);
            return Ok(());
        };
        if let Some((call, field)) = field_of(&expr)
            && let Some(rows) = self.rows(call)?
        {
            items.push(SelectItem::ExprWithAlias { expr: self.one(call, &rows, &field)?, alias: quoted(&field) });
            return Ok(());
        }
        let name = match &expr {
            Expr::Function(call) => call.name.0.last().and_then(ObjectNamePart::as_ident).map(fold),
            _ => None,
        };
        if let Some(name) = name
            && self.whole(&mut expr)?
        {
            items.push(SelectItem::ExprWithAlias { expr, alias: quoted(&name) });
            return Ok(());
        }
        self.within(&mut expr)?;
        items.push(SelectItem::UnnamedExpr(expr));
        Ok(())
    }

    /// Makes a call that is a column of the list a row; whether it gives rows.
    fn whole(&self, expr: &mut Expr) -> Result<bool> {
        let Expr::Function(call) = &*expr else { return Ok(false) };
        let Some(rows) = self.rows(call)? else { return Ok(false) };
        let fields = rows.columns.iter().map(|name| self.one(call, &rows, name)).collect::<Result<_>>()?;
        *expr = calling("row", fields);
        Ok(true)
    }

    /// Writes the fields within an expression out, but not those of the queries in it, which see more.
    fn within(&self, expr: &mut Expr) -> Result<()> {
        match expr.walk_mut(&mut Within { sight: self, depth: 0 }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(*error),
        }
    }

    /// A field of a call's rows.
    fn one(&self, call: &Function, rows: &Rows, field: &str) -> Result<Expr> {
        let is_there = rows.columns.iter().any(|name| name == field);
        match &self.beside {
            Some(text) if is_there && *text == call.to_string() => {
                Ok(Expr::CompoundIdentifier(vec![quoted(BESIDE), hidden(field)]))
            }
            _ => field_alone(call, rows, field),
        }
    }

    /// What is known of a call, if it gives rows of several columns.
    fn rows(&self, call: &Function) -> Result<Option<Rows>> {
        let FunctionArguments::List(list) = &call.args else { return Ok(None) };
        let parts: Vec<String> = call.name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
        let built_in = match &parts[..] {
            [name] => Some(name),
            [schema, name] if schema == "pg_catalog" => Some(name),
            _ => None,
        };
        let found = match self.calls {
            Some(calls) => calls.find(&call.name, &list.args, self.place)?,
            None => None,
        };
        if let Some(called) = found {
            let definition = &called.function.definition;
            let columns = match &definition.result {
                _ if called.function.value_type().is_some() => return Ok(None),
                FunctionResult::Table(columns) | FunctionResult::Out(columns) => {
                    columns.iter().map(|(name, _)| name.clone()).collect()
                }
                FunctionResult::RowOf(table) => self.columns_of_table(table),
                FunctionResult::Value(_) | FunctionResult::Nothing => return Ok(None),
            };
            return Ok(Some(Rows { columns, arrays: &[], is_set: definition.returns_set }));
        }
        let Some(name) = built_in else { return Ok(None) };
        if let Some((arrays @ [_, _, ..], names)) = columns_of(name) {
            let columns = names.iter().map(|name| (*name).to_owned()).collect();
            return Ok(Some(Rows { columns, arrays, is_set: true }));
        }
        let Some((kind, rest)) = name.split_once('_') else { return Ok(None) };
        let is_set = match (kind, rest) {
            ("json" | "jsonb", "populate_record") => false,
            ("json" | "jsonb", "populate_recordset") => true,
            _ => return Ok(None),
        };
        let columns = match list.args.first() {
            Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Cast {
                data_type: SqlType::Custom(of, _), ..
            }))) => {
                let parts: Vec<String> = of.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
                self.columns_of_type(&parts)
            }
            _ => return Ok(None),
        };
        Ok(Some(Rows { columns, arrays: &[], is_set }))
    }

    /// The columns of a table that a statement names as a type.
    fn columns_of_type(&self, parts: &[String]) -> Vec<String> {
        let path = self.tables.path();
        match parts {
            [schema, local] => self.columns_of_table(&name_in_schema(path.spelled(schema), local)),
            [local] => {
                let schemas = path.schemas(self.tables);
                let columns = schemas.iter().map(|schema| self.columns_of_table(&name_in_schema(schema, local)));
                columns.into_iter().find(|columns| !columns.is_empty()).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn columns_of_table(&self, name: &str) -> Vec<String> {
        let found = self.tables.find(name).ok();
        let names = found.map(|table| table.schema().columns().iter().map(|column| column.name.clone()).collect());
        names.unwrap_or_default()
    }
}

/// A walk through an expression.
struct Within<'a> {
    sight: &'a Sight<'a>,
    depth: usize,
}

impl VisitorMut for Within<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let Some((call, field)) = field_of(expr) else { return ControlFlow::Continue(()) };
        let made = self.sight.rows(call).and_then(|rows| match rows {
            Some(Rows { is_set: true, .. }) if let Some(clause) = self.sight.clause => {
                let message = format!("set-returning functions are not allowed in {clause}");
                Err(SqlError::new("0A000", message))
            }
            Some(rows) => self.sight.one(call, &rows, &field).map(Some),
            None => Ok(None),
        });
        match made {
            Ok(Some(made)) => *expr = made,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(Box::new(error)),
        }
        ControlFlow::Continue(())
    }
}

/// The call in `(f(x)).field`, and the field.
fn field_of(expr: &Expr) -> Option<(&Function, String)> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return None };
    let [AccessExpr::Dot(Expr::Identifier(field))] = &access_chain[..] else { return None };
    Some((call_of(root)?, fold(field)))
}

/// The call that an expression is, within parentheses.
fn call_of(expr: &Expr) -> Option<&Function> {
    match expr {
        Expr::Nested(inner) => call_of(inner),
        Expr::Function(call) => Some(call),
        _ => None,
    }
}

/// The name of a column in the hidden table.
fn hidden(name: &str) -> Ident {
    quoted(&format!("\0{name}"))
}

/// Writes `*` out as the columns of each table in FROM, which is to have one more; whether it could.
fn write_out_wildcards(select: &mut Select) -> bool {
    let is_wildcard = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
    if !select.projection.iter().any(is_wildcard) {
        return true;
    }
    let mut labels = Vec::new();
    for table in &select.from {
        let merges = |join: &Join| {
            matches!(constraint(&join.join_operator), Some(JoinConstraint::Using(_) | JoinConstraint::Natural))
        };
        if table.joins.iter().any(merges) {
            return false;
        }
        for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
            let label = match factor {
                TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
                    Some(alias.name.clone())
                }
                TableFactor::Table { name, .. } => name.0.last().and_then(ObjectNamePart::as_ident).cloned(),
                _ => None,
            };
            let Some(label) = label else { return false };
            labels.push(label);
        }
    }
    let items = std::mem::take(&mut select.projection);
    for item in items {
        match item {
            SelectItem::Wildcard(options) => {
                select.projection.extend(labels.iter().map(|label| {
                    let of = SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(vec![label.clone()]));
                    SelectItem::QualifiedWildcard(of, options.clone())
                }));
            }
            other => select.projection.push(other),
        }
    }
    true
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// A field of a call's rows.
fn field_alone(call: &Function, rows: &Rows, field: &str) -> Result<Expr> {
    let missing = || SqlError::new("42703", format!("could not identify column \"{field}\" in record data type"));
    let at = rows.columns.iter().position(|name| name == field).ok_or_else(missing)?;
    let FunctionArguments::List(list) = &call.args else { return Err(missing()) };
    if let Some(array) = rows.arrays.get(at) {
        let value = |arg: &FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
            _ => None,
        };
        let args = list.args.iter().map(value).collect::<Option<Vec<_>>>().ok_or_else(missing)?;
        return Ok(calling("unnest", vec![calling_quoted(array, args)]));
    }
    let mut query = template("SELECT 1 FROM f(1)")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(Expr::Identifier(quoted(field)))];
        if let Some(TableFactor::Table { name, args: Some(args), .. }) =
            select.from.first_mut().map(|from| &mut from.relation)
        {
            *name = ObjectName(call.name.0.clone());
            args.args = list.args.clone();
        }
    }
    match rows.is_set {
        true => build::spread(query),
        false => Ok(Expr::Subquery(query)),
    }
}
