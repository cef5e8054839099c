//! Functions that users have made, as the catalog shows them: rows of `pg_proc`, `information_schema.routines` and `parameters`, and
//! their definitions as `CREATE FUNCTION` says them.
use std::collections::{BTreeMap, BTreeSet};

use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use engine::{Column, DataType, FunctionBody, FunctionResult, FunctionVolatility, schema_and_name};

use super::cells::{Cell, Row, count, text};
use super::objects::{FunctionObject, Objects};
use super::oids::{OWNER_OID, row_type_oid, schema_oid};
use crate::access::default_expressions::shown as shown_default;
use crate::access::index_expressions::write::Style;
use crate::error::{Result, SqlError};
use crate::interrupt::made_types::MadeFunction;
use crate::names::made_functions::is_alike;
use crate::names::schemas::spelled;
use crate::names::tables::{CATALOG, Tables};
use crate::syntax::dialect::SqlDialect;
use crate::syntax::identifiers::{fold, quoted};
use crate::syntax::source::Source;
use crate::values::pg_types::{internal_name, number_of, shown_name};
use crate::values::types::column_type;
use Cell::{Number, Texts, Truth};

/// The languages of functions, by their numbers.
const LANGUAGES: [(i64, &str, bool); 3] = [(12, "internal", false), (13, "c", false), (14, "sql", true)];

/// The number of SQL among them.
const SQL: i64 = 14;

/// The number of `record`.
const RECORD: i64 = 2249;

/// The number of `void`.
const VOID: i64 = 2278;

/// `pg_language`.
pub(super) fn languages() -> Vec<Row> {
    let row = |(oid, name, is_trusted): (i64, &str, bool)| -> Row {
        let flags = [("lanispl", Truth(false)), ("lanpltrusted", Truth(is_trusted))];
        [("oid", Number(oid)), ("lanname", text(name)), ("lanowner", Number(OWNER_OID))]
            .into_iter()
            .chain(flags)
            .collect()
    };
    LANGUAGES.into_iter().map(row).collect()
}

/// `pg_proc`.
pub(super) fn rows(objects: &Objects) -> Vec<Row> {
    objects.functions.iter().map(|function| row(function, objects)).collect()
}

fn row(object: &FunctionObject, objects: &Objects) -> Row {
    let function = &object.function;
    let definition = &function.definition;
    let numbers = |types: Vec<DataType>| types.into_iter().map(|of| i64::from(number_of(of))).collect::<Vec<_>>();
    let has = |option: &str| definition.options.iter().any(|known| known == option);
    let measure = |word: &str, otherwise: f32| {
        let said = definition.options.iter().find_map(|option| option.strip_prefix(word)?.trim().parse().ok());
        Cell::Real(said.unwrap_or(otherwise))
    };
    let mut row = vec![("oid", Number(object.oid)), ("proname", text(&function.name))];
    row.extend([("pronamespace", Number(schema_oid(&function.schema))), ("proowner", Number(OWNER_OID))]);
    row.extend([("prolang", Number(SQL)), ("procost", measure("COST", 100.0)), ("provariadic", Number(0))]);
    row.push(("prorows", measure("ROWS", if definition.returns_set { 1000.0 } else { 0.0 })));
    row.extend([("prokind", text("f")), ("prosecdef", Truth(has("SECURITY DEFINER")))]);
    row.extend([("proleakproof", Truth(has("LEAKPROOF"))), ("proisstrict", Truth(definition.is_strict))]);
    row.extend([("proretset", Truth(definition.returns_set)), ("prosupport", text("-"))]);
    let volatility = match definition.volatility {
        FunctionVolatility::Immutable => "i",
        FunctionVolatility::Stable => "s",
        FunctionVolatility::Volatile => "v",
    };
    let parallel = match () {
        () if has("PARALLEL SAFE") => "s",
        () if has("PARALLEL RESTRICTED") => "r",
        () => "u",
    };
    row.extend([("provolatile", text(volatility)), ("proparallel", text(parallel))]);
    let defaults = definition.arguments.iter().filter(|argument| argument.default.is_some()).count();
    row.extend([("pronargs", count(definition.arguments.len())), ("pronargdefaults", count(defaults))]);
    row.push(("prorettype", Number(result_number(&definition.result, objects))));
    row.push(("proargtypes", Cell::Numbers(numbers(function.types()))));
    let parts = parts(object);
    if parts.iter().any(|part| !part.name.is_empty()) {
        row.push(("proargnames", Texts(parts.iter().map(|part| part.name.clone()).collect())));
    }
    if parts.iter().any(|part| part.mode != "i") {
        let all = numbers(parts.iter().map(|part| part.data_type).collect());
        row.push(("proallargtypes", Texts(all.iter().map(i64::to_string).collect())));
        row.push(("proargmodes", Texts(parts.iter().map(|part| part.mode.to_owned()).collect())));
    }
    match definition.form {
        FunctionBody::Text => row.push(("prosrc", text(&definition.body))),
        FunctionBody::Return | FunctionBody::Atomic => {
            row.extend([("prosrc", text("")), ("prosqlbody", Cell::Text(object.body()))]);
        }
    }
    row
}

/// An argument or a column of a result.
struct Part {
    name: String,
    data_type: DataType,
    /// by PostgreSQL's letters
    mode: &'static str,
    default: Option<String>,
}

/// The arguments in their order, and the columns of what the function gives.
fn parts(object: &FunctionObject) -> Vec<Part> {
    let definition = &object.function.definition;
    let (columns, mode) = match &definition.result {
        FunctionResult::Table(columns) => (columns.as_slice(), "t"),
        FunctionResult::Out(columns) => (columns.as_slice(), "o"),
        FunctionResult::Value(_) | FunctionResult::RowOf(_) | FunctionResult::Nothing => (&[][..], "o"),
    };
    let is_column = |name: &str| mode == "o" && !name.is_empty() && columns.iter().any(|(column, _)| column == name);
    let argument = |argument: &engine::FunctionArgument| Part {
        name: argument.name.clone(),
        data_type: argument.data_type,
        mode: if is_column(&argument.name) { "b" } else { "i" },
        default: argument.default.clone(),
    };
    let arguments: Vec<Part> = definition.arguments.iter().map(argument).collect();
    let is_both = |name: &str| arguments.iter().any(|argument| argument.mode == "b" && argument.name == name);
    let rest: Vec<Part> = columns
        .iter()
        .filter(|(name, _)| !is_both(name))
        .map(|(name, data_type)| Part { name: name.clone(), data_type: *data_type, mode, default: None })
        .collect();
    arguments.into_iter().chain(rest).collect()
}

/// The number of the type of a result.
fn result_number(result: &FunctionResult, objects: &Objects) -> i64 {
    match result {
        FunctionResult::Value(data_type) => number_of(*data_type).into(),
        FunctionResult::Table(columns) | FunctionResult::Out(columns) => match &columns[..] {
            [(_, data_type)] => number_of(*data_type).into(),
            _ => RECORD,
        },
        FunctionResult::Nothing => VOID,
        FunctionResult::RowOf(table) => objects.number_of(table).map_or(RECORD, row_type_oid),
    }
}

impl FunctionObject {
    /// The arguments as a definition says them, whole or without what they are where a call leaves them out.
    pub(super) fn arguments(&self, is_whole: bool) -> String {
        let shown = |part: &Part| {
            let mode = match part.mode {
                "o" => "OUT ",
                "b" => "INOUT ",
                _ => "",
            };
            let name = if part.name.is_empty() { String::new() } else { format!("{} ", quoted(&part.name)) };
            let default = part.default.as_ref().filter(|_| is_whole);
            let told = |default: &String| {
                let value = Column::new("value", part.data_type);
                self.hidden.expression(shown_default(default, &value, &[], Style::Plain))
            };
            let default = default.map_or(String::new(), |default| format!(" DEFAULT {}", told(default)));
            format!("{mode}{name}{}{default}", self.type_name(part.data_type))
        };
        let parts = parts(self);
        parts.iter().filter(|part| part.mode != "t").map(shown).collect::<Vec<_>>().join(", ")
    }

    fn type_name(&self, data_type: DataType) -> String {
        self.hidden.type_name(shown_name(data_type))
    }

    /// The types of its arguments and of what it gives.
    pub(super) fn types(&self) -> Vec<DataType> {
        let value = match &self.function.definition.result {
            FunctionResult::Value(data_type) => Some(*data_type),
            _ => None,
        };
        parts(self).into_iter().map(|part| part.data_type).chain(value).collect()
    }

    /// What it gives, as a definition says it.
    pub(super) fn result(&self) -> String {
        let definition = &self.function.definition;
        let of = match &definition.result {
            FunctionResult::Table(columns) => {
                let column =
                    |(name, data_type): &(String, DataType)| format!("{} {}", quoted(name), self.type_name(*data_type));
                return format!("TABLE({})", columns.iter().map(column).collect::<Vec<_>>().join(", "));
            }
            FunctionResult::Value(data_type) => self.type_name(*data_type),
            FunctionResult::Out(columns) => match &columns[..] {
                [(_, data_type)] => self.type_name(*data_type),
                _ => "record".to_owned(),
            },
            FunctionResult::RowOf(table) => self.hidden.relation(spelled(table)),
            FunctionResult::Nothing => "void".to_owned(),
        };
        if definition.returns_set { format!("SETOF {of}") } else { of }
    }

    /// The body as one of the standard's forms has it.
    fn body(&self) -> String {
        let definition = &self.function.definition;
        match definition.form {
            FunctionBody::Text => definition.body.clone(),
            FunctionBody::Return => format!("RETURN {}", self.hidden.expression(definition.body.clone())),
            FunctionBody::Atomic => {
                let statements = definition.body.split(';').map(|one| self.hidden.query(one.to_owned()));
                format!("BEGIN ATOMIC\n {}\nEND", statements.collect::<Vec<_>>().join(";"))
            }
        }
    }

    /// The statement that makes it.
    pub(super) fn definition(&self) -> String {
        let (function, definition) = (&self.function, &self.function.definition);
        let mut words = match definition.volatility {
            FunctionVolatility::Immutable => vec!["IMMUTABLE".to_owned()],
            FunctionVolatility::Stable => vec!["STABLE".to_owned()],
            FunctionVolatility::Volatile => Vec::new(),
        };
        let said =
            |start: &'static str| definition.options.iter().filter(move |option| option.starts_with(start)).cloned();
        words.extend(said("PARALLEL"));
        words.extend(definition.is_strict.then(|| "STRICT".to_owned()));
        words.extend(["SECURITY", "LEAKPROOF", "COST", "ROWS"].into_iter().flat_map(said));
        let words = if words.is_empty() { String::new() } else { format!(" {}\n", words.join(" ")) };
        let body = match definition.form {
            FunctionBody::Text => format!("AS {0}{1}{0}", tag(&definition.body), definition.body),
            FunctionBody::Return | FunctionBody::Atomic => self.body(),
        };
        let name = format!("{}.{}", quoted(&function.schema), quoted(&function.name));
        let (arguments, result) = (self.arguments(true), self.result());
        format!("CREATE OR REPLACE FUNCTION {name}({arguments})\n RETURNS {result}\n LANGUAGE sql\n{words}{body}\n")
    }
}

/// A dollar quote that a text has not.
fn tag(body: &str) -> String {
    let tags = std::iter::once("function".to_owned()).chain((1..).map(|number| format!("function{number}")));
    let free = tags.map(|name| format!("${name}$")).find(|tag| !body.contains(tag.as_str()));
    free.unwrap_or_else(|| "$$".to_owned())
}

/// A text of each function, by their numbers.
pub(super) fn texts(objects: &Objects, of: impl Fn(&FunctionObject) -> String) -> BTreeMap<i64, String> {
    objects.functions.iter().map(|function| (function.oid, of(function))).collect()
}

/// The name of the function by which a type is read or written, if a text names such a one with its types: `pg_type` has that name.
pub(super) fn support_function(text: &str) -> Option<&str> {
    let (name, types) = text.split_once('(')?;
    let takes_form = ["cstring", "internal"].iter().any(|form| types.trim_start().starts_with(form));
    takes_form.then(|| name.trim().trim_start_matches("pg_catalog."))
}

/// The number of the function that a text names, with the types of its arguments or without; none where a function of our own may be meant.
pub(super) fn function_oid(tables: &Tables, text: &str, has_types: bool) -> Result<Option<i64>> {
    let dialect = SqlDialect::default();
    let wrong = |error| Source::new(text).parser_error(error);
    let mut parser = Parser::new(&dialect).try_with_sql(text).map_err(wrong)?;
    let name = parser.parse_object_name(false).map_err(wrong)?;
    let mut types = Vec::new();
    if has_types {
        parser.expect_token(&Token::LParen).map_err(wrong)?;
        while !parser.consume_token(&Token::RParen) {
            types.push(column_type(&parser.parse_data_type().map_err(wrong)?)?.0);
            if !parser.consume_token(&Token::Comma) {
                parser.expect_token(&Token::RParen).map_err(wrong)?;
                break;
            }
        }
    }
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(fold).collect();
    let Some((local, schemas)) = parts.split_last() else { return Ok(None) };
    let objects = Objects::of(tables);
    let is_in = |function: &MadeFunction| match schemas.last() {
        Some(schema) => function.schema == *schema,
        None => tables.path().names(local).any(|name| schema_and_name(&name).0 == function.schema),
    };
    let is_it = |object: &&FunctionObject| {
        let function = &object.function;
        let takes = !has_types || is_alike(&function.definition, &types);
        function.name == *local && is_in(function) && takes
    };
    let found: Vec<&FunctionObject> = objects.functions.iter().filter(is_it).collect();
    match &found[..] {
        [] if has_types => Err(SqlError::new("42883", format!("function \"{text}\" does not exist"))),
        [_, _, ..] if !has_types => Err(SqlError::new("42725", format!("more than one function named \"{text}\""))),
        found => Ok(found.first().map(|object| object.oid)),
    }
}

/// The bodies of functions in one of the standard's forms, by their numbers.
pub(super) fn standard_bodies(objects: &Objects) -> BTreeMap<i64, String> {
    let own = objects.functions.iter();
    let own = own.filter(|function| function.function.definition.form != FunctionBody::Text);
    own.map(|function| (function.oid, function.body())).collect()
}

/// The numbers of the functions that calls without a schema find.
pub(super) fn visible(objects: &Objects) -> BTreeSet<i64> {
    let own = objects.functions.iter();
    let is_found = |object: &&FunctionObject| {
        let function = &object.function;
        let names = objects.path().names(&function.name).collect::<Vec<_>>();
        names.iter().any(|name| schema_and_name(name).0 == function.schema)
    };
    own.filter(is_found).map(|function| function.oid).collect()
}

fn specific_names(object: &FunctionObject) -> Row {
    let function = &object.function;
    vec![
        ("specific_catalog", text(CATALOG)),
        ("specific_schema", text(&function.schema)),
        ("specific_name", Cell::Text(format!("{}_{}", function.name, object.oid))),
    ]
}

/// What a type is called in `information_schema`.
fn type_names(data_type: DataType, prefix: [&'static str; 4]) -> Row {
    let (schema, name) = internal_name(data_type);
    let shown = match data_type {
        DataType::Array(_) => "ARRAY".to_owned(),
        DataType::Enum(_) => "USER-DEFINED".to_owned(),
        other => shown_name(other),
    };
    let [shown_as, catalog_as, schema_as, name_as] = prefix;
    vec![
        (shown_as, Cell::Text(shown)),
        (catalog_as, text(CATALOG)),
        (schema_as, Cell::Text(schema)),
        (name_as, Cell::Text(name)),
    ]
}

/// `information_schema.routines`.
pub(super) fn routines(objects: &Objects) -> Vec<Row> {
    let row = |object: &FunctionObject| {
        let (function, definition) = (&object.function, &object.function.definition);
        let yes = |is_so: bool| text(if is_so { "YES" } else { "NO" });
        let mut row = specific_names(object);
        row.extend([("routine_catalog", text(CATALOG)), ("routine_schema", text(&function.schema))]);
        row.extend([("routine_name", text(&function.name)), ("routine_type", text("FUNCTION"))]);
        let udt = ["data_type", "type_udt_catalog", "type_udt_schema", "type_udt_name"];
        match function.value_type() {
            Some(data_type) => row.extend(type_names(data_type, udt)),
            None => {
                let name = if definition.result == FunctionResult::Nothing { "void" } else { "record" };
                row.extend([
                    ("data_type", text(name)),
                    ("type_udt_catalog", text(CATALOG)),
                    ("type_udt_schema", text("pg_catalog")),
                    ("type_udt_name", text(name)),
                ]);
            }
        }
        row.extend([("dtd_identifier", text("0")), ("routine_body", text("SQL"))]);
        row.extend([("routine_definition", text(&definition.body)), ("external_language", text("SQL"))]);
        row.extend([("parameter_style", text("GENERAL")), ("sql_data_access", text("MODIFIES"))]);
        row.push(("is_deterministic", yes(definition.volatility == FunctionVolatility::Immutable)));
        row.push(("is_null_call", yes(definition.is_strict)));
        row.extend([("schema_level_routine", text("YES")), ("is_udt_dependent", text("NO"))]);
        let is_definer = definition.options.iter().any(|option| option == "SECURITY DEFINER");
        row.push(("security_type", text(if is_definer { "DEFINER" } else { "INVOKER" })));
        row
    };
    objects.functions.iter().map(row).collect()
}

/// `information_schema.parameters`.
pub(super) fn parameters(objects: &Objects) -> Vec<Row> {
    let rows = |object: &FunctionObject| {
        let row = |(at, part): (usize, Part)| {
            let mode = match part.mode {
                "i" => "IN",
                "b" => "INOUT",
                _ => "OUT",
            };
            let mut row = specific_names(object);
            row.extend([("ordinal_position", count(at + 1)), ("parameter_mode", text(mode))]);
            row.extend([("is_result", text("NO")), ("as_locator", text("NO"))]);
            row.extend((!part.name.is_empty()).then(|| ("parameter_name", text(&part.name))));
            row.extend(type_names(part.data_type, ["data_type", "udt_catalog", "udt_schema", "udt_name"]));
            row.push(("dtd_identifier", Cell::Text((at + 1).to_string())));
            row.extend(part.default.map(|default| ("parameter_default", Cell::Text(default))));
            row
        };
        parts(object).into_iter().enumerate().map(row).collect::<Vec<_>>()
    };
    objects.functions.iter().flat_map(rows).collect()
}
