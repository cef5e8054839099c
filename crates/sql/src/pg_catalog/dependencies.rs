//! The rows of `pg_depend`: what an object needs, so that it is made after it and dropped before it.
//!
//! ```text
//! rule of a view      relations, functions and types that its query names; the view itself ('i')
//! default             its column ('a'), and what its expression names
//! constraint          its table ('a'), the table that it refers to, and what its condition names
//! index               its table or constraint ('a', 'i'), and what its expressions name
//! function            the rows of a relation that it gives, and what its body names, unless that is a text
//! sequence            the column that it belongs to ('a', 'i')
//! type of rows        its relation ('i')
//! member of an extension ('e')
//! all of a schema     its schema
//! ```
//!
//! What a text names is found by its name (`mentions`): of several functions of one name, all that take as many arguments are told. Columns
//! are not told apart.
use engine::{FunctionBody, FunctionResult, PUBLIC_SCHEMA, name_in_schema};

use super::cells::{Cell, Row, count, text};
use super::defaults;
use super::extensions;
use super::mentions::{Mention, Named, of_expression, of_query};
use super::objects::{FunctionObject, IndexObject, Objects, TableObject};
use super::oids::{row_type_oid, rule_oid, schema_oid};
use super::types;
use crate::names::schemas::schema_of;
use Cell::Number;

const CLASS: i64 = 1259;
const TYPE: i64 = 1247;
const PROCEDURE: i64 = 1255;
const DEFAULT: i64 = 2604;
const CONSTRAINT: i64 = 2606;
const REWRITE: i64 = 2618;
const NAMESPACE: i64 = 2615;

/// An object: the relation of which it is a row, its number, and that of a column of it.
type Object = (i64, i64, usize);

fn row((class, object, column): Object, needed: Object, kind: &str) -> Row {
    let (needed_class, needed, needed_column) = needed;
    vec![
        ("classid", Number(class)),
        ("objid", Number(object)),
        ("objsubid", count(column)),
        ("refclassid", Number(needed_class)),
        ("refobjid", Number(needed)),
        ("refobjsubid", count(needed_column)),
        ("deptype", text(kind)),
    ]
}

/// See the module; of extensions those of these names are there.
pub(super) fn rows(objects: &Objects, given: &[&str]) -> Vec<Row> {
    let mut rows: Vec<Row> = defaults::owned_sequences(objects)
        .map(|(sequence, table, column, kind)| row((CLASS, sequence, 0), (CLASS, table, column), kind))
        .collect();
    for view in &objects.views {
        rows.extend(of_rule(objects, view.oid, &view.query));
        rows.push(of_row_type(view.oid));
    }
    for table in &objects.tables {
        rows.push(of_row_type(table.oid));
        if let Some(materialized) = &table.materialized {
            rows.extend(of_rule(objects, table.oid, &materialized.query));
        }
        rows.extend(of_table(objects, table));
        table.indexes.iter().for_each(|index| rows.extend(of_index(objects, table, index)));
    }
    objects.functions.iter().for_each(|function| rows.extend(of_function(objects, function)));
    rows.extend(of_schemas(objects));
    rows.extend(
        extensions::members(given)
            .map(|(class, member, extension, number)| row((class, member, 0), (extension, number, 0), "e")),
    );
    rows
}

/// What stands in a schema.
fn of_schemas(objects: &Objects) -> impl Iterator<Item = Row> {
    let relations = objects.relations().map(|(key, oid)| (CLASS, oid, schema_of(key)));
    let types = objects.types.iter().map(|(key, of_type)| (TYPE, types::number(of_type), schema_of(key)));
    let functions = objects.functions.iter().map(|object| (PROCEDURE, object.oid, object.function.schema.as_str()));
    let all = relations.chain(types).chain(functions);
    all.map(|(class, oid, schema)| row((class, oid, 0), (NAMESPACE, schema_oid(schema), 0), "n"))
}

fn of_row_type(relation: i64) -> Row {
    row((TYPE, row_type_oid(relation), 0), (CLASS, relation, 0), "i")
}

/// What names in a text stand for, but for the object that has the text.
fn needs(objects: &Objects, own: Object, mentions: Vec<Mention>) -> Vec<Row> {
    let mut found: Vec<Object> = mentions.iter().flat_map(|mention| meant(objects, mention)).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().filter(|needed| *needed != own).map(|needed| row(own, needed, "n")).collect()
}

/// What a name stands for.
fn meant(objects: &Objects, mention: &Mention) -> Vec<Object> {
    let schema = mention.schema.as_deref().unwrap_or(PUBLIC_SCHEMA);
    let key = name_in_schema(schema, &mention.name);
    match mention.named {
        Named::Relation => objects.number_of(&key).map(|oid| (CLASS, oid, 0)).into_iter().collect(),
        Named::Type => {
            let known = objects.types.iter().filter(|(name, _)| *name == key);
            known.map(|(_, of_type)| (TYPE, types::number(of_type), 0)).collect()
        }
        Named::Function(arguments) => {
            let is_it = |object: &&FunctionObject| {
                let function = &object.function;
                function.schema == schema && function.name == mention.name && function.takes(arguments)
            };
            objects.functions.iter().filter(is_it).map(|object| (PROCEDURE, object.oid, 0)).collect()
        }
    }
}

fn of_rule(objects: &Objects, view: i64, query: &str) -> Vec<Row> {
    let rule = (REWRITE, rule_oid(view), 0);
    let mut rows = vec![row(rule, (CLASS, view, 0), "i")];
    rows.extend(needs(objects, rule, of_query(query)));
    rows
}

fn of_table(objects: &Objects, table: &TableObject) -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, column, expression) in defaults::numbered(table) {
        let own = (DEFAULT, number, 0);
        rows.push(row(own, (CLASS, table.oid, column), "a"));
        rows.extend(needs(objects, own, of_expression(expression)));
    }
    for check in &table.checks {
        let own = (CONSTRAINT, check.oid, 0);
        let columns = check.check.columns.iter().map(|column| column + 1);
        rows.extend(columns.map(|column| row(own, (CLASS, table.oid, column), "a")));
        rows.extend(needs(objects, own, of_expression(&check.check.condition)));
    }
    for foreign in &table.foreign_keys {
        let own = (CONSTRAINT, foreign.oid, 0);
        rows.extend(foreign.key.columns.iter().map(|column| row(own, (CLASS, table.oid, column + 1), "a")));
        if let Some(referenced) = objects.table(&foreign.key.table) {
            let columns = foreign.key.referenced.iter();
            rows.extend(columns.map(|column| row(own, (CLASS, referenced.oid, column + 1), "n")));
            let key = referenced.key_over(&foreign.key.referenced);
            rows.extend(key.map(|key| row(own, (CLASS, key.oid, 0), "n")));
        }
    }
    for (at, column) in table.table.schema().columns().iter().enumerate() {
        let domain = objects.domain_of(table, at).map(|(_, domain)| i64::from(domain.number));
        let made = domain.or_else(|| types::made_number(column.data_type));
        rows.extend(made.map(|number| row((CLASS, table.oid, at + 1), (TYPE, number, 0), "n")));
    }
    rows
}

fn of_index(objects: &Objects, table: &TableObject, index: &IndexObject) -> Vec<Row> {
    let own = (CLASS, index.oid, 0);
    let columns = super::constraints::numbers(index).into_iter().filter_map(|number| usize::try_from(number).ok());
    let columns: Vec<usize> = columns.filter(|number| *number > 0).collect();
    let of_table = |own: Object| columns.iter().map(move |column| row(own, (CLASS, table.oid, *column), "a"));
    let mut rows = Vec::new();
    if index.is_constraint {
        // The constraint has the number of its index.
        let constraint = (CONSTRAINT, index.oid, 0);
        rows.push(row(own, constraint, "i"));
        rows.extend(of_table(constraint));
    } else {
        rows.extend(of_table(own));
        rows.extend(columns.is_empty().then(|| row(own, (CLASS, table.oid, 0), "a")));
    }
    let (expressions, predicate) = table.expressions(index);
    let mentions = expressions.into_iter().chain(predicate).flat_map(|text| of_expression(&text));
    rows.extend(needs(objects, own, mentions.collect()));
    rows
}

fn of_function(objects: &Objects, object: &FunctionObject) -> Vec<Row> {
    let (own, definition) = ((PROCEDURE, object.oid, 0), &object.function.definition);
    let mut rows = Vec::new();
    if let FunctionResult::RowOf(relation) = &definition.result
        && let Some(oid) = objects.number_of(relation)
    {
        rows.push(row(own, (TYPE, row_type_oid(oid), 0), "n"));
    }
    let mut made: Vec<i64> = object.types().into_iter().filter_map(types::made_number).collect();
    made.sort_unstable();
    made.dedup();
    rows.extend(made.into_iter().map(|number| row(own, (TYPE, number, 0), "n")));
    let mentions = match definition.form {
        FunctionBody::Text => Vec::new(),
        FunctionBody::Return => of_expression(&definition.body),
        FunctionBody::Atomic => definition.body.split(';').flat_map(of_query).collect(),
    };
    rows.extend(needs(objects, own, mentions));
    rows
}
