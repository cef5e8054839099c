//! `jsonb_to_record`, `jsonb_to_recordset`, `jsonb_populate_record`, `jsonb_populate_recordset` and those of `json` in FROM: members of
//! objects as columns, each read as the text of a value of its column's type.
//!
//! ```text
//! FROM jsonb_to_recordset(j) AS r(a int)   ->   FROM (SELECT unnest(texts of a in the objects of j)::int) AS r(a)
//! ```
//!
//! The columns are those that the alias has with their types, or those of the table of whose row the first argument is a NULL.
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Query,
    SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, Value,
};

use engine::name_in_schema;

use super::in_from::call;
use crate::error::{Result, SqlError};
use crate::names::tables::Tables;
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::template::template;
use crate::values::types::sql_type;

/// What the functions are called behind `json_` or `jsonb_`, and whether their columns are those of their first argument.
const NAMES: [(&str, bool); 4] =
    [("to_record", false), ("to_recordset", false), ("populate_record", true), ("populate_recordset", true)];

/// The function that gives the texts of one column, one for each object.
pub(crate) const COLUMN: &str = "\0jsonb record column";

/// As what a member is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    Text,
    Json,
    Array,
}

impl Reads {
    /// How the function is told.
    fn word(self) -> &'static str {
        match self {
            Reads::Text => "text",
            Reads::Json => "json",
            Reads::Array => "array",
        }
    }

    /// What the function was told.
    pub(crate) fn of(word: &str) -> Reads {
        [Reads::Json, Reads::Array].into_iter().find(|reads| reads.word() == word).unwrap_or(Reads::Text)
    }
}

/// The query that a call of one of these functions is, if a factor is one.
///
/// # Errors
/// Where nothing says which columns it has.
pub(super) fn query(factor: &TableFactor, is_first: bool, tables: &Tables) -> Result<Option<TableFactor>> {
    let (name, args, alias) = match factor {
        TableFactor::Table { name, args: Some(args), alias, with_ordinality: false, .. } => (name, &args.args, alias),
        TableFactor::Function { name, args, alias, with_ordinality: false, .. } => (name, args, alias),
        _ => return Ok(None),
    };
    let function = last_part(name).unwrap_or_default();
    let behind = function.strip_prefix("jsonb_").or_else(|| function.strip_prefix("json_"));
    let Some((_, is_of_row)) = behind.and_then(|behind| NAMES.into_iter().find(|(known, _)| *known == behind)) else {
        return Ok(None);
    };
    let plain = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let args: Option<Vec<Expr>> = args.iter().map(plain).collect();
    let (json, row) = match (&args.unwrap_or_default()[..], is_of_row) {
        ([json], false) => (json.clone(), None),
        ([row, json], true) => (json.clone(), Some(row.clone())),
        _ => return Ok(None),
    };
    let columns = match row {
        Some(row) => columns_of_row(&row, tables)?,
        None => columns_of_alias(alias.as_ref())?,
    };
    let names = alias.as_ref().map_or(&[][..], |alias| &alias.columns);
    let shown = columns.iter().enumerate().map(|(at, (name, _))| {
        names.get(at).map_or_else(
            || TableAliasColumnDef { name: name.clone(), data_type: None },
            |given| TableAliasColumnDef { data_type: None, ..given.clone() },
        )
    });
    let label = alias.as_ref().map_or_else(|| Ident::with_quote('"', &function), |alias| alias.name.clone());
    let shown = TableAlias { explicit: true, name: label, columns: shown.collect(), at: None };
    let subquery = select_of(&function, &json, &columns)?;
    Ok(Some(TableFactor::Derived { lateral: !is_first, subquery, alias: Some(shown), sample: None }))
}

/// The columns of a table, of whose row a NULL is given.
fn columns_of_row(row: &Expr, tables: &Tables) -> Result<Vec<(Ident, DataType)>> {
    if let Expr::Cast { expr, data_type: DataType::Custom(name, _), .. } = row
        && matches!(expr.as_ref(), Expr::Value(value) if value.value == Value::Null)
    {
        let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
        let missing = || SqlError::new("42704", format!("type \"{name}\" does not exist"));
        let found = match &parts[..] {
            [schema, table] => tables.find(&name_in_schema(schema, table)),
            _ => tables.find(&tables.resolved(parts.join("."))),
        };
        let table = found.map_err(|_| missing())?;
        let columns = table.schema().columns().iter();
        return Ok(columns.map(|column| (Ident::with_quote('"', &column.name), sql_type(column.data_type))).collect());
    }
    Err(SqlError::unsupported("a row of JSON over one that is not NULL::TABLE"))
}

fn columns_of_alias(alias: Option<&TableAlias>) -> Result<Vec<(Ident, DataType)>> {
    let columns = alias.map_or(&[][..], |alias| &alias.columns);
    let typed = columns.iter().map(|column| Some((column.name.clone(), column.data_type.clone()?)));
    typed
        .collect::<Option<Vec<_>>>()
        .filter(|columns| !columns.is_empty())
        .ok_or_else(|| SqlError::syntax("a column definition list is required for functions returning \"record\""))
}

fn select_of(function: &str, json: &Expr, columns: &[(Ident, DataType)]) -> Result<Box<Query>> {
    let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
    let cast = |expr: Expr, data_type: DataType| Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    };
    let item = |(name, data_type): &(Ident, DataType)| {
        let reads = match data_type {
            DataType::JSON | DataType::JSONB => Reads::Json,
            DataType::Array(ArrayElemTypeDef::SquareBracket(..)) => Reads::Array,
            _ => Reads::Text,
        };
        let json = cast(json.clone(), DataType::JSONB);
        let args = vec![json, text(&fold(name)), text(function), text(reads.word())];
        let texts = called(COLUMN, args);
        let rows = called("unnest", vec![texts]);
        SelectItem::ExprWithAlias { expr: cast(rows, data_type.clone()), alias: name.clone() }
    };
    let mut query = template("SELECT 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = columns.iter().map(item).collect();
    }
    Ok(query)
}

fn called(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    call(&ObjectName::from(vec![Ident::with_quote('"', name)]), args)
}
