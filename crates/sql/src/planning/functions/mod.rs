//! Calls of functions that users have made in SQL: which function each means, and what stands in its place.
//!
//! ```text
//! a call ──(sight: types of arguments)──▶ (choose: one of its name) ──▶ (body: its query) ──▶ (build: in place of the call)
//! ```
//!
//! So the planner sees no such function: its body is planned with the statement. The bodies' own views and functions are written out
//! by `views`, which walks through statements and asks here.
pub(crate) mod body;
pub(crate) mod build;
pub(crate) mod changing;
mod choose;
pub(super) mod fields;
pub(crate) mod kept;
mod names;
pub(crate) mod reading;
mod sight;
pub(crate) mod users;

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, Value, Visit,
};
use engine::{DataType, FunctionResult, PUBLIC_SCHEMA};

use crate::error::{Result, SqlError};
use crate::functions::numbered;
use crate::interrupt::made_types::{self, MadeFunction};
use crate::names::headings::heading;
use crate::names::made_functions::entry;
use crate::names::schemas::spelled;
use crate::names::tables::{CATALOG, Tables};
use crate::parsing::parse::{Places, parse_query};
use crate::state::view::RowTarget;
use crate::syntax::identifiers::fold;
use crate::syntax::template::template;
use crate::syntax::walk::walk_expressions;
use crate::values::pg_types::shown_name;
pub(crate) use build::Library;
use build::Written;
use choose::{Candidate, Given, Miss, Sight, choose};
pub(super) use sight::Columns;
use sight::Seen;

/// The functions that a statement may call, and where it stands.
pub(super) struct Calls<'a> {
    functions: Vec<MadeFunction>,
    tables: Option<&'a Tables>,
    /// The tables of which rows are changed or given back.
    targets: &'a [RowTarget],
    library: Library<'a>,
}

/// A call that means a function, with its arguments in the order of the parameters.
pub(super) struct Called<'a> {
    pub(super) function: &'a MadeFunction,
    arguments: Vec<Expr>,
    /// Of each argument that the call gives the type of its parameter, if it is not of that.
    casts: Vec<Option<DataType>>,
}

impl Called<'_> {
    /// See [`key`].
    pub(super) fn key(&self) -> String {
        key(self.function)
    }

    /// Of each argument that the call gives the type that it is to be cast to, if it is not of that.
    fn casts(&self) -> Vec<Option<DataType>> {
        self.casts.clone()
    }
}

/// What no other function, view or table is called.
pub(super) fn key(function: &MadeFunction) -> String {
    entry(&function.schema, &function.name, &function.types())
}

/// What stands around a call.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub(super) columns: &'p Columns<'p>,
    /// The types of the arguments of the function whose body it is.
    pub(super) parameters: &'p [DataType],
    /// Whether names without a schema are those of `public` alone, as in a view.
    pub(super) is_in_view: bool,
}

impl<'a> Calls<'a> {
    /// The functions that there are; `None` where there is none.
    pub(super) fn of(tables: &'a Tables, library: Library<'a>) -> Option<Calls<'a>> {
        let functions = made_types::functions();
        (!functions.is_empty()).then_some(Calls { functions, tables: Some(tables), targets: &[], library })
    }

    /// Those of a statement that changes rows of these tables, or gives them back.
    pub(super) fn with_targets(self, targets: &'a [RowTarget]) -> Calls<'a> {
        Calls { targets, ..self }
    }

    /// What calls see before a query is entered.
    pub(super) fn columns(&self) -> Columns<'a> {
        Columns::over(self.tables, self.targets)
    }

    /// Those that read no table.
    fn without_tables(library: Library<'a>) -> Option<Calls<'a>> {
        let functions = made_types::functions();
        (!functions.is_empty()).then_some(Calls { functions, tables: None, targets: &[], library })
    }

    /// Whether a part of a statement calls what may be one of the functions.
    pub(super) fn has_call(&self, part: &impl Visit) -> bool {
        let found = walk_expressions(part, |expr| match expr {
            Expr::Function(function) if !self.named(&function.name, false).is_empty() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        found.is_break()
    }

    /// The functions that a name may mean, those of schemas that are searched first in front.
    fn named(&self, name: &ObjectName, is_in_view: bool) -> Vec<&MadeFunction> {
        let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
        let (schema, local) = match &parts[..] {
            [local] => (None, local),
            [schema, local] => (Some(schema), local),
            [catalog, schema, local] if catalog == CATALOG => (Some(schema), local),
            _ => return Vec::new(),
        };
        let of = |schema: &str| {
            let functions = self.functions.iter();
            functions.filter(|function| function.name == *local && function.schema == schema).collect::<Vec<_>>()
        };
        match (schema, self.tables) {
            (Some(schema), Some(tables)) => of(tables.path().spelled(schema)),
            (Some(schema), None) => of(schema),
            (None, Some(tables)) if !is_in_view => {
                tables.path().schemas(tables).iter().flat_map(|schema| of(schema)).collect()
            }
            (None, _) => of(PUBLIC_SCHEMA),
        }
    }

    /// The function that a call means; `None` where it means none of a user's.
    ///
    /// # Errors
    /// PostgreSQL's, where functions of this name take no such call, or several do.
    pub(super) fn find(&self, name: &ObjectName, args: &[FunctionArg], place: Place<'_>) -> Result<Option<Called<'_>>> {
        let functions = self.named(name, place.is_in_view);
        if functions.is_empty() {
            return Ok(None);
        }
        let seen = Seen { columns: place.columns, parameters: place.parameters };
        let mut given = Vec::with_capacity(args.len());
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            let (name, value) = match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (None, value),
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => (Some(fold(name)), value),
                FunctionArg::ExprNamed { name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
                    (Some(fold(name)), value)
                }
                _ => return Ok(None),
            };
            given.push(Given { name, sight: seen.sight(value) });
            values.push(value);
        }
        let of_name = fold_last(name);
        match choose(functions.into_iter(), &given) {
            Ok(candidate) => Ok(Some(called(candidate, &given, &values)?)),
            Err(_) if (self.library.is_built_in)(&of_name) && name.0.len() == 1 => Ok(None),
            Err(miss) => Err(missed(miss, name, &given)),
        }
    }

    /// Whether a name may be that of a function which gives rows.
    fn gives_set(&self, name: &ObjectName) -> bool {
        self.named(name, false).iter().any(|function| function.definition.returns_set)
    }

    /// Whether an unqualified call may mean a function of our own instead.
    pub(super) fn is_built_in(&self, name: &ObjectName) -> bool {
        name.0.len() == 1 && (self.library.is_built_in)(&fold_last(name))
    }

    /// The query that a function's body is, with its arguments by number.
    pub(super) fn query_of(&self, function: &MadeFunction) -> Result<Box<Query>> {
        match changing::is_run(&function.definition) {
            true => Err(changing::elsewhere(function)),
            false => body::query_of(&function.name, &function.definition, self.tables),
        }
    }

    /// Whether a call has another value each time.
    pub(super) fn is_volatile(&self, called: &Called<'_>, query: &Query) -> bool {
        build::is_volatile(query, self.library)
            || called.arguments.iter().any(|of| build::is_volatile(of, self.library))
    }

    /// What stands in the place of a call in an expression.
    pub(super) fn value(
        &self,
        called: Called<'_>,
        query: Box<Query>,
        number: usize,
        around: &Columns<'_>,
    ) -> Result<Expr> {
        let definition = &called.function.definition;
        let is_strict = definition.is_strict;
        let types = called.function.types();
        let written = Written { query, arguments: called.arguments, types, is_strict, number };
        let of_value = called.function.value_type();
        match (of_value, definition.returns_set) {
            (Some(data_type), false) => written.value(data_type, self.library, around),
            (Some(data_type), true) => {
                let columns = [(called.function.name.clone(), Some(data_type))];
                let is_each_row = written.is_each_row(self.library);
                build::spread(written.rows(&columns, true, is_each_row, self.library)?.0)
            }
            (None, _) => {
                let what = format!("function {}, which gives rows, outside of FROM", called.function.signature());
                Err(SqlError::unsupported(what).hint("Call it in FROM."))
            }
        }
    }

    /// What stands in the place of a call in FROM.
    pub(super) fn rows(
        &self,
        called: Called<'_>,
        query: Box<Query>,
        number: usize,
        (alias, is_numbered): (Option<TableAlias>, bool),
    ) -> Result<TableFactor> {
        let function = called.function;
        let definition = &function.definition;
        let own = alias.as_ref().map_or_else(|| function.name.clone(), |alias| fold(&alias.name));
        let typed = |columns: &[(String, DataType)]| {
            columns.iter().map(|(name, data_type)| (name.clone(), Some(*data_type))).collect::<Vec<_>>()
        };
        let columns = match &definition.result {
            FunctionResult::Value(data_type) => vec![(own.clone(), Some(*data_type))],
            FunctionResult::Table(columns) | FunctionResult::Out(columns) => typed(columns),
            FunctionResult::Nothing => return Err(changing::elsewhere(function)),
            FunctionResult::RowOf(table) => {
                let missing = || SqlError::new("42704", format!("type \"{}\" does not exist", spelled(table)));
                let found = self.tables.and_then(|tables| tables.find(table).ok());
                let table = found.ok_or_else(missing)?;
                table.schema().columns().iter().map(|column| (column.name.clone(), None)).collect()
            }
        };
        let (is_strict, types) = (definition.is_strict, function.types());
        let written = Written { query, arguments: called.arguments, types, is_strict, number };
        let (mut query, lateral) = match function.value_type().filter(|_| !definition.returns_set) {
            Some(data_type) => {
                let is_beside = written.arguments.iter().any(|argument| !build::is_constant(argument));
                let value = written.value(data_type, self.library, &Columns::default())?;
                let mut query = template("SELECT 1")?;
                let alias = Ident::with_quote('"', &columns[0].0);
                if let SetExpr::Select(select) = query.body.as_mut() {
                    select.projection = vec![SelectItem::ExprWithAlias { expr: value, alias }];
                }
                (query, is_beside)
            }
            None => written.rows(&columns, definition.returns_set, false, self.library)?,
        };
        let mut names: Vec<String> = columns.into_iter().map(|(name, _)| name).collect();
        if is_numbered {
            query = numbered(query)?;
            names.push("ordinality".to_owned());
        }
        let alias = alias_of(alias, &function.name, &names)?;
        Ok(TableFactor::Derived { lateral, subquery: query, alias: Some(alias), sample: None })
    }
}

/// The arguments of a call in the order of the function's parameters.
fn called<'a>(candidate: Candidate<'a>, given: &[Given], values: &[&Expr]) -> Result<Called<'a>> {
    let Candidate { function, places } = candidate;
    let mut arguments = Vec::with_capacity(places.len());
    let mut casts = vec![None; given.len()];
    for (argument, place) in function.definition.arguments.iter().zip(places) {
        let is_of_type = place.is_some_and(|at| given[at].sight == Sight::Known(argument.data_type));
        if let Some(at) = place.filter(|_| !is_of_type) {
            casts[at] = Some(argument.data_type);
        }
        let value = match (place, &argument.default) {
            (Some(at), _) => values[at].clone(),
            (None, Some(default)) => parsed_default(default)?,
            (None, None) => return Err(SqlError::new("XX000", "an argument of a function is missing")),
        };
        // A number by itself would be the place of a column in ORDER BY and GROUP BY of the body.
        let stays = is_of_type && !build::is_constant(&value);
        arguments.push(if stays { value } else { build::cast(value, argument.data_type) });
    }
    Ok(Called { function, arguments, casts })
}

/// A default as a call has it: a text by itself is of the argument's type.
pub(crate) fn typed_default(expr: Expr, data_type: DataType) -> Expr {
    let is_text = matches!(&expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)));
    if is_text { build::cast(expr, data_type) } else { expr }
}

/// An expression that the catalog keeps as a text.
///
/// # Errors
/// Where it is none.
pub(crate) fn parsed_default(text: &str) -> Result<Expr> {
    let query = parse_query(&format!("SELECT {text}"), Places::Unknown)?;
    match *query.body {
        SetExpr::Select(mut select) => match select.projection.pop() {
            Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => Ok(expr),
            _ => Err(SqlError::new("XX000", "a default is no expression")),
        },
        _ => Err(SqlError::new("XX000", "a default is no expression")),
    }
}

fn fold_last(name: &ObjectName) -> String {
    name.0.last().and_then(ObjectNamePart::as_ident).map(fold).unwrap_or_default()
}

/// The error about a call that means no function, or several.
fn missed(miss: Miss, name: &ObjectName, given: &[Given]) -> SqlError {
    let shown = |given: &Given| {
        let of_type = match given.sight {
            Sight::Known(data_type) => shown_name(data_type),
            Sight::Untyped | Sight::Unseen => "unknown".to_owned(),
        };
        given.name.as_ref().map_or(of_type.clone(), |name| format!("{name} => {of_type}"))
    };
    let types: Vec<String> = given.iter().map(shown).collect();
    let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    let call = format!("function {}({})", parts.join("."), types.join(", "));
    match miss {
        Miss::None => SqlError::new("42883", format!("{call} does not exist"))
            .hint("No function matches the given name and argument types. You might need to add explicit type casts."),
        Miss::Several => SqlError::new("42725", format!("{call} is not unique"))
            .hint("Could not choose a best candidate function. You might need to add explicit type casts."),
    }
}

/// Refuses what a call says that only aggregates and window functions know.
pub(super) fn check_plain(function: &Function, signature: &str) -> Result<()> {
    let is_distinct = matches!(&function.args, FunctionArguments::List(list) if list.duplicate_treatment.is_some());
    let refused = |what: &str, kind: &str| {
        Err(SqlError::new("42809", format!("{what} specified, but {signature} is not {kind}")))
    };
    match () {
        () if function.over.is_some() => refused("OVER", "a window function nor an aggregate function"),
        () if is_distinct => refused("DISTINCT", "an aggregate function"),
        () if function.filter.is_some() => refused("FILTER", "an aggregate function"),
        () if !function.within_group.is_empty() => refused("WITHIN GROUP", "an aggregate function"),
        () => Ok(()),
    }
}

/// Has columns of a SELECT go on being called like the functions that they call.
pub(super) fn keep_names(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
            && let Some(name) = heading(expr)
        {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
        }
    }
}

/// The names of a function's columns in FROM, and first those that the statement gives them.
fn alias_of(alias: Option<TableAlias>, function: &str, names: &[String]) -> Result<TableAlias> {
    let quoted = |name: &str| Ident::with_quote('"', name);
    let mut alias =
        alias.unwrap_or_else(|| TableAlias { explicit: true, name: quoted(function), columns: Vec::new(), at: None });
    if alias.columns.len() > names.len() {
        let (label, known, given) = (fold(&alias.name), names.len(), alias.columns.len());
        let message = format!("table \"{label}\" has {known} columns available but {given} columns specified");
        return Err(SqlError::new("42P10", message));
    }
    let rest = names[alias.columns.len()..].iter();
    alias.columns.extend(rest.map(|name| TableAliasColumnDef { name: quoted(name), data_type: None }));
    Ok(alias)
}
