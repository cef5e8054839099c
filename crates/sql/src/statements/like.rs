//! `CREATE TABLE t (LIKE s INCLUDING ...)`: the columns of a new table are those of another one.
//!
//! Names, types and what may not be NULL are copied in any case; the rest is asked for:
//!
//! | `INCLUDING` | |
//! |---|---|
//! | `DEFAULTS` | what fills columns; numbers of a sequence come from the same sequence |
//! | `IDENTITY` | identity columns, with sequences of their own |
//! | `CONSTRAINTS` | conditions of `CHECK`, under their names |
//! | `INDEXES` | the primary key, unique constraints and indexes, under new names |
//! | `COMMENTS` | comments on the columns |
//! | `GENERATED`, `STORAGE`, `STATISTICS`, `COMPRESSION` | nothing, as tables have none of these |
//!
//! A copy is a `CREATE TABLE` that spells the columns out, and what is made once the table is there.
use datafusion::sql::sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, ColumnOptionDef, CreateTable, DataType as SqlType, Expr, GeneratedAs,
    GeneratedExpressionMode, Ident, ObjectName, SequenceOptions as AskedOption, Statement, TableConstraint, Value,
};
use datafusion::sql::sqlparser::parser::Parser;
use engine::{
    Column, ColumnDefault, ColumnDomain, Identity, IndexDefinition, IndexPart, SequenceOptions, Table, TableSettings,
    Transaction, name_in_schema, schema_and_name,
};

use crate::access::folded_parts;
use crate::access::index_expressions::text::{column_names, parsed};
use crate::error::{DOMAIN_RULE, Result, SqlError};
use crate::names::table_name;
use crate::planning::index_compile::Kind;
use crate::planning::index_define::define;
use crate::state::comments::About;
use crate::statements::indexes::free_name_of;
use crate::syntax::dialect::SqlDialect;
use crate::syntax::identifiers::quoted;
use crate::syntax::like_tokens::LIKE;
use crate::syntax::source::Source;
use crate::values::collated::is_built_in;

/// What may be copied beside the columns.
const PARTS: [&str; 9] =
    ["comments", "compression", "constraints", "defaults", "generated", "identity", "indexes", "statistics", "storage"];

/// Whether a statement copies columns.
pub(crate) fn is_asked(create: &CreateTable) -> bool {
    create.columns.iter().any(|column| column.name.value == LIKE)
}

/// A statement with the columns that it copies.
pub(crate) struct Copied {
    pub(crate) create: CreateTable,
    later: Vec<Later>,
}

/// What is made once the table is there.
struct Later {
    from: Table,
    /// the place of the first copied column
    first: usize,
    indexes: Vec<IndexDefinition>,
    comments: Vec<(String, String)>,
}

/// Spells out the columns of other tables.
///
/// # Errors
/// PostgreSQL's, where there is no such table.
pub(crate) fn spelled_out(transaction: &Transaction, create: &CreateTable, source: &Source) -> Result<Copied> {
    let (mut copy, mut later) = (create.clone(), Vec::new());
    copy.columns.clear();
    for column in &create.columns {
        match &column.data_type {
            SqlType::Custom(name, options) if column.name.value == LIKE => {
                later.push(append(transaction, (name, options), &mut copy, source)?);
            }
            _ => copy.columns.push(column.clone()),
        }
    }
    Ok(Copied { create: copy, later })
}

impl Copied {
    /// Gives a new table the indexes and comments that are copied.
    pub(crate) fn complete(&self, transaction: &mut Transaction, table: &Table, source: &Source) -> Result<()> {
        for Later { from, first, indexes, comments } in &self.later {
            for index in indexes {
                let definition = moved(index, (from, table), *first, source)?;
                transaction.create_index(table.name(), with_name(transaction, definition, table))?;
            }
            for (column, text) in comments {
                transaction.remember(&About::Column(table.name(), column).key(), Some(text))?;
            }
        }
        Ok(())
    }
}

/// Which parts are included, in the order of the list.
fn included(options: &[String]) -> Result<impl Fn(&str) -> bool + use<>> {
    let mut wanted = [false; PARTS.len()];
    for option in options {
        let option = option.trim_matches('\'');
        let (verb, part) = option.split_once(' ').unwrap_or((option, ""));
        match PARTS.iter().position(|known| *known == part) {
            Some(at) => wanted[at] = verb == "including",
            None if part == "all" => wanted = [verb == "including"; PARTS.len()],
            None => return Err(SqlError::syntax(format!("syntax error at or near \"{part}\""))),
        }
    }
    Ok(move |part: &str| PARTS.iter().zip(wanted).any(|(known, wanted)| wanted && *known == part))
}

/// Appends the columns and constraints of another table to a statement.
fn append(
    transaction: &Transaction,
    (name, options): (&ObjectName, &[String]),
    create: &mut CreateTable,
    source: &Source,
) -> Result<Later> {
    let name = table_name(name, source)?;
    let from = transaction.table(&name)?;
    if from.sequence().is_some() {
        return Err(SqlError::new("42809", format!("relation \"{name}\" is invalid in LIKE clause")));
    }
    let (is_included, settings) = (included(options)?, transaction.settings(&from));
    let (schema, first) = (from.schema(), create.columns.len());
    for (at, column) in schema.columns().iter().enumerate() {
        let default = settings.defaults.iter().find(|default| default.column == at);
        create.columns.push(definition(transaction, column, default, &is_included)?);
    }
    if is_included("constraints") {
        create.constraints.extend(checks(&settings)?);
    }
    let indexes = if is_included("indexes") { transaction.indexes(&from) } else { Vec::new() };
    let indexes = indexes.iter().map(|index| index.definition().clone()).collect();
    if is_included("indexes") && !schema.primary_key().is_empty() {
        let names: Vec<String> = schema.primary_key().iter().map(|at| quoted(&schema.columns()[*at].name)).collect();
        create.constraints.extend(constraints(&format!("PRIMARY KEY ({})", names.join(", ")))?);
    }
    let mut comments = Vec::new();
    if is_included("comments") {
        let remembered = transaction.remembered()?;
        let of = |column: &Column| {
            remembered.get(&About::Column(&name, &column.name).key()).map(|text| (column.name.clone(), text.clone()))
        };
        comments.extend(schema.columns().iter().filter_map(of));
    }
    Ok(Later { from, first, indexes, comments })
}

/// A column as it would be written.
fn definition(
    transaction: &Transaction,
    column: &Column,
    default: Option<&ColumnDefault>,
    is_included: impl Fn(&str) -> bool,
) -> Result<ColumnDef> {
    let mut options = Vec::new();
    if !column.nullable {
        options.push(ColumnOption::NotNull);
    }
    if let Some(collation) = &column.collation {
        let (schema, name) = match is_built_in(&collation.name) {
            true => ("pg_catalog", collation.name.as_str()),
            false => schema_and_name(&collation.name),
        };
        let name = [schema, name].map(|part| Ident::with_quote('"', part));
        options.push(ColumnOption::Collation(ObjectName::from(Vec::from(name))));
    }
    match default {
        Some(ColumnDefault { identity: Some(identity), sequences, .. }) if is_included("identity") => {
            let sequence = sequences.first().map(|name| transaction.table(name)).transpose()?;
            let numbers = sequence.and_then(|table| transaction.sequence(&table)).map(|sequence| *sequence.options());
            options.push(identity_option(*identity, numbers.unwrap_or_default()));
        }
        Some(ColumnDefault { is_generated: true, .. }) if !is_included("generated") => {}
        Some(ColumnDefault { is_generated: true, expression: Some(text), .. }) => {
            options.push(generated_option(parsed(text)?));
        }
        Some(ColumnDefault { domain: Some(ColumnDomain { fills: true, .. }), .. }) => {}
        Some(ColumnDefault { identity: None, expression: Some(text), .. }) if is_included("defaults") => {
            options.push(ColumnOption::Default(parsed(text)?));
        }
        _ => {}
    }
    let options = options.into_iter().map(|option| ColumnOptionDef { name: None, option }).collect();
    let name = Ident::with_quote('"', &column.name);
    let data_type = match default.and_then(|default| default.domain.as_ref()) {
        Some(domain) => SqlType::Custom(object_name(&domain.name), Vec::new()),
        None => type_of(column)?,
    };
    Ok(ColumnDef { name, data_type, options })
}

fn identity_option(identity: Identity, numbers: SequenceOptions) -> ColumnOption {
    let number = |number: i64| datafusion::sql::sqlparser::ast::Expr::value(Value::Number(number.to_string(), false));
    let options = vec![
        AskedOption::IncrementBy(number(numbers.increment), true),
        AskedOption::MinValue(Some(number(numbers.min))),
        AskedOption::MaxValue(Some(number(numbers.max))),
        AskedOption::StartWith(number(numbers.start), true),
        AskedOption::Cycle(!numbers.cycle),
    ];
    let generated_as = match identity {
        Identity::Always => GeneratedAs::Always,
        Identity::ByDefault => GeneratedAs::ByDefault,
    };
    ColumnOption::Generated {
        generated_as,
        sequence_options: Some(options),
        generation_expr: None,
        generation_expr_mode: None,
        generated_keyword: true,
    }
}

fn generated_option(expr: Expr) -> ColumnOption {
    ColumnOption::Generated {
        generated_as: GeneratedAs::ExpStored,
        sequence_options: None,
        generation_expr: Some(expr),
        generation_expr_mode: Some(GeneratedExpressionMode::Stored),
        generated_keyword: true,
    }
}

/// A name of the catalog as a statement has it.
fn object_name(known: &str) -> ObjectName {
    let (schema, local) = schema_and_name(known);
    ObjectName::from([schema, local].map(|part| Ident::with_quote('"', part)).to_vec())
}

/// The name of a column's type in SQL.
fn type_of(column: &Column) -> Result<SqlType> {
    let (dialect, text) = (SqlDialect::default(), column.data_type.to_string());
    let parsed = Parser::new(&dialect).try_with_sql(&text).and_then(|mut parser| parser.parse_data_type());
    parsed.map_err(|error| Source::new(&text).parser_error(error))
}

fn checks(settings: &TableSettings) -> Result<Vec<TableConstraint>> {
    let check = |check: &engine::Check| {
        let name = Some(Ident::with_quote('"', &check.name));
        let expr = Box::new(parsed(&check.condition)?);
        Ok(TableConstraint::Check(CheckConstraint { name, expr, enforced: None }))
    };
    settings.checks.iter().filter(|check| !check.name.starts_with(DOMAIN_RULE)).map(check).collect()
}

/// The constraints of a table that are written so.
fn constraints(text: &str) -> Result<Vec<TableConstraint>> {
    let text = format!("CREATE TABLE t ({text})");
    match Parser::parse_sql(&SqlDialect::default(), &text).map(|mut statements| statements.pop()) {
        Ok(Some(Statement::CreateTable(create))) => Ok(create.constraints),
        _ => Err(SqlError::new("XX000", format!("constraints that are none: {text}"))),
    }
}

/// The definition of an index for a table in which the columns of another one begin at `first`.
fn moved(
    index: &IndexDefinition,
    (from, to): (&Table, &Table),
    first: usize,
    source: &Source,
) -> Result<IndexDefinition> {
    debug_assert!(first + from.schema().columns().len() <= to.schema().columns().len(), "all columns are copied");
    let expression = |text: &str, kind: Kind| define(&parsed(text)?, to, kind, source);
    let part = |part: &IndexPart| {
        Ok(match part {
            part if let Some(at) = folded_parts::column_of(part).filter(|_| index.classes.is_empty()) => {
                folded_parts::of_column(first + at, to.schema().columns())
            }
            IndexPart::Column(at) => IndexPart::Column(first + at),
            IndexPart::Expression(old) => IndexPart::Expression(expression(&old.text, Kind::Expression)?),
        })
    };
    let parts = index.parts.iter().map(part).collect::<Result<_>>()?;
    let predicate = index.predicate.as_ref().map(|old| expression(&old.text, Kind::Predicate)).transpose()?;
    let included = index.included.iter().map(|column| first + column).collect();
    Ok(IndexDefinition { name: String::new(), parts, predicate, included, ..index.clone() })
}

/// An index under a name that nothing has yet.
fn with_name(transaction: &Transaction, definition: IndexDefinition, table: &Table) -> IndexDefinition {
    if definition.is_primary {
        return IndexDefinition { name: format!("{}_pkey", table.name()), ..definition };
    }
    let suffix = match definition.is_constraint {
        _ if !definition.exclusion.is_empty() => "excl",
        true => "key",
        false => "idx",
    };
    let name = free_name_of(transaction, table.name(), &column_names(&definition, table.schema()), suffix);
    IndexDefinition { name: name_in_schema(schema_and_name(table.name()).0, schema_and_name(&name).1), ..definition }
}
