//! The rows of `pg_type`, `pg_enum` and of what `information_schema` tells of domains: PostgreSQL's types, and those that users have
//! made.
use engine::{Column, DataType, DomainDefinition, EnumDefinition, RangeKind, TypeDefinition, schema_and_name};

use super::cells::{Cell, Row, count, text};
use super::collations::{self, C_COLLATION};
use super::hidden::Hidden;
use super::objects::Objects;
use super::oids::{CATALOG_OID, OWNER_OID, PUBLIC_OID, format_type, row_type_oid, schema_oid, type_of};
use crate::access::default_expressions::shown;
use crate::access::index_expressions::text::parsed;
use crate::access::index_expressions::write::{Style, written};
use crate::names::tables::CATALOG;
use crate::values::pg_types::{
    BOX, BPCHAR, CITEXT, NAME, NUMERIC, RANGES, TEXT, TYPES, VARCHAR, extension_of, internal_name, number_of,
};
use Cell::{Number, Truth};

/// A type as a row of `pg_type` tells it.
struct Told {
    number: u32,
    name: String,
    schema: i64,
    length: i16,
    category: &'static str,
    kind: &'static str,
    element: u32,
    array: u32,
    /// The relation whose rows are of it.
    relation: i64,
}

/// The number of the collation that values of a type have, or arrays of them, if no other one is said.
fn collation_of(number: u32) -> i64 {
    match number {
        NAME => C_COLLATION,
        TEXT | VARCHAR | BPCHAR | CITEXT => collations::DEFAULT_OID,
        _ => 0,
    }
}

impl Told {
    fn row(self) -> Row {
        let [oid, element, array] = [self.number, self.element, self.array].map(i64::from);
        let length = i64::from(self.length);
        let delimiter = if self.number == BOX || self.element == BOX { ";" } else { "," };
        let mut row = vec![("oid", Number(oid)), ("typname", Cell::Text(self.name)), ("typlen", Number(length))];
        row.extend([("typnamespace", Number(self.schema)), ("typowner", Number(OWNER_OID))]);
        row.extend([("typbyval", Truth((1..=8).contains(&length))), ("typtype", text(self.kind))]);
        row.extend([("typdelim", text(delimiter)), ("typcategory", text(self.category))]);
        row.extend([("typispreferred", Truth(false)), ("typisdefined", Truth(true))]);
        row.extend([("typelem", Number(element)), ("typarray", Number(array))]);
        row.extend([("typrelid", Number(self.relation)), ("typndims", Number(0))]);
        row.push(("typcollation", Number(collation_of(if self.element > 0 { self.element } else { self.number }))));
        row.push(("typalign", text("i")));
        let storage = if self.number == NUMERIC { "m" } else { "x" };
        row.push(("typstorage", text(if length < 0 { storage } else { "p" })));
        let input = match self.kind {
            "c" => "record_in",
            "e" => "enum_in",
            "d" => "domain_in",
            "r" => "range_in",
            _ if element > 0 => "array_in",
            _ => "",
        };
        row.push(("typinput", text(input)));
        row
    }

    /// The row of a type that is no domain.
    fn plain(self) -> Row {
        let mut row = self.row();
        row.extend([("typbasetype", Number(0)), ("typtypmod", Number(-1)), ("typnotnull", Truth(false))]);
        row
    }
}

/// `pg_type`; it has the type of an extension if the database has that, or a column of the type.
pub(super) fn types(objects: &Objects, given: &[&str]) -> Vec<Row> {
    let extension = |column: &Column| extension_of(number_of(column.data_type));
    let columns = objects.tables.iter().map(|table| &table.table).chain(objects.views.iter().map(|view| &view.table));
    let used: Vec<&str> = columns.flat_map(|table| table.schema().columns()).filter_map(extension).collect();
    let is_here = |name: &str| given.contains(&name) || used.contains(&name);
    let told = |number, name: String, length, category, [element, array]: [u32; 2]| {
        let kind = if category == RANGES { "r" } else { "b" };
        let schema = if extension_of(number).is_some() { PUBLIC_OID } else { CATALOG_OID };
        Told { number, name, schema, length, category, kind, element, array, relation: 0 }.plain()
    };
    let known = || TYPES.iter().filter(|known| extension_of(known.number).is_none_or(is_here));
    let plain =
        known().map(|known| told(known.number, known.name.to_owned(), known.length, known.category, [0, known.array]));
    let arrays = known().filter(|known| known.array > 0);
    let arrays = arrays.map(|known| told(known.array, format!("_{}", known.name), -1, "A", [known.number, 0]));
    let made = objects.types.iter().flat_map(|(name, of_type)| match of_type {
        TypeDefinition::Enum(labels) => of_enum(name, labels),
        TypeDefinition::Domain(domain) => vec![of_domain(name, domain, &objects.hidden)],
    });
    let tables = objects.tables.iter().map(|table| (table.key.as_str(), table.oid));
    let relations = tables.chain(objects.views.iter().map(|view| (view.key.as_str(), view.oid)));
    plain.chain(arrays).chain(made).chain(relations.map(of_rows)).collect()
}

/// The type of a relation's rows.
fn of_rows((key, relation): (&str, i64)) -> Row {
    let (schema, name) = schema_and_name(key);
    let (name, schema) = (name.to_owned(), schema_oid(schema));
    let number = u32::try_from(row_type_oid(relation)).unwrap_or(0);
    let (category, kind) = ("C", "c");
    Told { number, name, schema, length: -1, category, kind, element: 0, array: 0, relation }.plain()
}

fn of_enum(name: &str, labels: &EnumDefinition) -> Vec<Row> {
    let (schema, local) = schema_and_name(name);
    let (number, array, schema) = (labels.of.number(), labels.of.array_number(), schema_oid(schema));
    let name = local.to_owned();
    let plain = Told { number, name, schema, length: 4, category: "E", kind: "e", element: 0, array, relation: 0 };
    let name = format!("_{local}");
    let (category, kind, element) = ("A", "b", number);
    let arrays = Told { number: array, name, schema, length: -1, category, kind, element, array: 0, relation: 0 };
    vec![plain.plain(), arrays.plain()]
}

fn of_domain(name: &str, domain: &DomainDefinition, hidden: &Hidden) -> Row {
    let (schema, local) = schema_and_name(name);
    let (base, modifier) = type_of(domain.base);
    let known = crate::values::pg_types::of_column(domain.base);
    let (number, schema, name) = (domain.number, schema_oid(schema), local.to_owned());
    let (length, category) = (known.length, known.category);
    let told = Told { number, name, schema, length, category, kind: "d", element: 0, array: 0, relation: 0 };
    let mut row = told.row();
    row.retain(|(name, _)| *name != "typcollation");
    row.push(("typcollation", Number(collation_of(known.number))));
    row.extend([("typbasetype", Number(base)), ("typtypmod", Number(modifier))]);
    row.push(("typnotnull", Truth(domain.not_null)));
    if let Some(default) = domain.default.as_deref() {
        let default = hidden.expression(default_of(domain, default));
        row.extend(["typdefault", "typdefaultbin"].map(|name| (name, text(&default))));
    }
    row
}

/// `pg_range`. There are no types of several ranges.
pub(super) fn ranges() -> Vec<Row> {
    let row = |kind: RangeKind| -> Row {
        let name = kind.name();
        let canonical = if kind.is_discrete() { format!("{name}_canonical") } else { "-".to_owned() };
        vec![
            ("rngtypid", Number(number_of(DataType::Range(kind)).into())),
            ("rngsubtype", Number(number_of(kind.bound_type()).into())),
            ("rngmultitypid", Number(0)),
            ("rngcollation", Number(0)),
            ("rngsubopc", Number(0)),
            ("rngcanonical", Cell::Text(canonical)),
            ("rngsubdiff", Cell::Text(format!("{name}_subdiff"))),
        ]
    };
    RangeKind::ALL.into_iter().map(row).collect()
}

/// `pg_enum`. A label's number is as stable as its position.
pub(super) fn labels(objects: &Objects) -> Vec<Row> {
    let of_type = |(_, of_type): &(String, TypeDefinition)| match of_type {
        TypeDefinition::Enum(labels) => {
            let number = labels.of.number();
            let row = |(at, (position, label)): (usize, &(i64, String))| -> Row {
                let own = super::objects::number_of(&format!("{number} {position}"));
                vec![
                    ("oid", Number(own)),
                    ("enumtypid", Number(number.into())),
                    ("enumsortorder", count(at + 1)),
                    ("enumlabel", text(label)),
                ]
            };
            labels.labels.iter().enumerate().map(row).collect()
        }
        TypeDefinition::Domain(_) => Vec::new(),
    };
    objects.types.iter().flat_map(of_type).collect()
}

/// A check of a domain: the domain's name and what it is, name and text of the check.
type DomainCheck<'a> = (&'a str, &'a DomainDefinition, &'a str, &'a str);

/// The number of the type that a user has made, if a type of columns is one, or has items of it.
pub(super) fn made_number(data_type: DataType) -> Option<i64> {
    match data_type {
        DataType::Enum(of) => Some(of.number().into()),
        DataType::Array(item) => made_number(item.data_type()),
        _ => None,
    }
}

/// The number of a type that a user has made.
pub(super) fn number(of_type: &TypeDefinition) -> i64 {
    match of_type {
        TypeDefinition::Enum(labels) => labels.of.number().into(),
        TypeDefinition::Domain(domain) => domain.number.into(),
    }
}

/// The names of the checks of a type, with the numbers of the constraints.
pub(super) fn checks_of<'a>(name: &'a str, of_type: &'a TypeDefinition) -> impl Iterator<Item = (i64, &'a str)> {
    let checks = match of_type {
        TypeDefinition::Domain(domain) => &domain.checks[..],
        TypeDefinition::Enum(_) => &[],
    };
    checks.iter().map(move |(check, _)| (constraint_oid(name, check), check.as_str()))
}

/// The checks of all domains.
fn checks(objects: &Objects) -> Vec<DomainCheck<'_>> {
    let mut all = Vec::new();
    for (name, of_type) in &objects.types {
        if let TypeDefinition::Domain(domain) = of_type {
            all.extend(domain.checks.iter().map(|(check, text)| (&**name, domain, &**check, &**text)));
        }
    }
    all
}

/// Numbers of constraints that are no indexes start here.
const FIRST_CONSTRAINT_OID: i64 = 2 << 30;

fn constraint_oid(domain: &str, check: &str) -> i64 {
    FIRST_CONSTRAINT_OID + super::objects::number_of(&format!("{domain}.{check}"))
}

/// A condition of a domain as it is shown.
fn condition(domain: &DomainDefinition, text: &str, style: Style) -> String {
    let value = [Column::new("value", domain.base)];
    let shown = parsed(text).map_or_else(|_| text.to_owned(), |expr| written(&expr, &value, style));
    // The value is a word of the language.
    let is_inner = |c: char| c.is_alphanumeric() || c == '_' || c == '"' || c == '\'';
    let mut out = String::with_capacity(shown.len());
    let mut rest = shown.as_str();
    while let Some(at) = rest.find("value") {
        let (before, after) = (&rest[..at], &rest[at + 5..]);
        let is_word = !before.ends_with(is_inner) && !after.starts_with(is_inner);
        out.push_str(before);
        out.push_str(if is_word { "VALUE" } else { "value" });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The rows of `pg_constraint` for domains.
pub(super) fn constraints(objects: &Objects) -> Vec<Row> {
    let row = |(domain, definition, check, condition): DomainCheck<'_>| -> Row {
        let oid = constraint_oid(domain, check);
        let schema = schema_oid(schema_and_name(domain).0);
        let mut row = vec![("oid", Number(oid)), ("conname", text(check)), ("contype", text("c"))];
        row.extend([("connamespace", Number(schema)), ("contypid", Number(definition.number.into()))]);
        row.extend(["conrelid", "conindid", "conparentid", "confrelid", "coninhcount"].map(|name| (name, Number(0))));
        row.extend(["condeferrable", "condeferred", "connoinherit"].map(|name| (name, Truth(false))));
        row.extend(["convalidated", "conislocal"].map(|name| (name, Truth(true))));
        row.extend(["confupdtype", "confdeltype", "confmatchtype"].map(|name| (name, text(" "))));
        row.push(("conbin", Cell::Text(self::condition(definition, condition, Style::Plain))));
        row
    };
    checks(objects).into_iter().map(row).collect()
}

/// The definitions of the constraints of domains by their numbers, plain and pretty.
pub(super) fn definitions(objects: &Objects) -> Vec<(i64, [String; 2])> {
    let of = |(domain, definition, check, condition): DomainCheck<'_>| {
        let shown =
            |style| format!("CHECK ({})", objects.hidden.expression(self::condition(definition, condition, style)));
        (constraint_oid(domain, check), [Style::Plain, Style::Pretty].map(shown))
    };
    checks(objects).into_iter().map(of).collect()
}

/// The rows of `information_schema.check_constraints` for domains.
pub(super) fn check_constraints(objects: &Objects) -> Vec<Row> {
    let row = |(domain, definition, check, condition): DomainCheck<'_>| {
        let mut row = super::constraints::named(schema_and_name(domain).0, check);
        let shown = self::condition(definition, condition, Style::Plain);
        row.push(("check_clause", Cell::Text(format!("({shown})"))));
        row
    };
    checks(objects).into_iter().map(row).collect()
}

/// The columns that name a domain.
fn named(domain: &str) -> Row {
    let (schema, name) = schema_and_name(domain);
    vec![("domain_catalog", text(CATALOG)), ("domain_schema", text(schema)), ("domain_name", text(name))]
}

/// `information_schema.domain_constraints`.
pub(super) fn domain_constraints(objects: &Objects) -> Vec<Row> {
    let row = |(domain, _, check, _): DomainCheck<'_>| {
        let mut row = super::constraints::named(schema_and_name(domain).0, check);
        row.extend(named(domain));
        row.extend([("is_deferrable", text("NO")), ("initially_deferred", text("NO"))]);
        row
    };
    checks(objects).into_iter().map(row).collect()
}

/// `information_schema.domains`; `measures` tells the width of a type.
pub(super) fn domains(objects: &Objects, measures: impl Fn(DataType) -> Row) -> Vec<Row> {
    let row = |(name, of_type): &(String, TypeDefinition)| {
        let TypeDefinition::Domain(domain) = of_type else { return None };
        let mut row = named(name);
        let (schema, internal) = internal_name(domain.base);
        row.push(("data_type", Cell::Text(format_type(type_of(domain.base).0, None))));
        row.extend(measures(domain.base));
        row.extend(
            domain.default.as_deref().map(|default| ("domain_default", Cell::Text(default_of(domain, default)))),
        );
        row.extend([("udt_catalog", text(CATALOG)), ("udt_schema", Cell::Text(schema))]);
        row.extend([("udt_name", Cell::Text(internal)), ("dtd_identifier", text("1"))]);
        Some(row)
    };
    objects.types.iter().filter_map(row).collect()
}

fn default_of(domain: &DomainDefinition, text: &str) -> String {
    shown(text, &Column::new("value", domain.base), &[], Style::Plain)
}

/// Whether a type is told by `information_schema` as one of a user, or of an extension.
pub(super) fn is_made(data_type: DataType) -> bool {
    matches!(data_type, DataType::Enum(_) | DataType::CITEXT | DataType::HSTORE)
}
