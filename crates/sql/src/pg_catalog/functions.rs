//! The functions of the catalog: texts by the number of what they are about, sizes, settings, and answers that are the same for
//! everything.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder, ListBuilder, StructBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, StringViewArray, new_null_array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Fields};
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::Expr;

use super::comments::{Class, Comments};
use super::defaults::SerialSequences;
use super::objects::{Objects, SequenceObject};
use super::oids::{
    NO_RELATION, OWNER, OWNER_OID, PUBLIC_OWNER, PUBLIC_OWNER_OID, catalog_relation, catalog_relation_oid, format_type,
    size_text, type_oid,
};
use super::properties::Properties;
use crate::access::index_expressions::text::parsed;
use crate::access::index_expressions::write::{Style, written};
use crate::error::SqlError;
use crate::names::name_in_text;
use crate::values::types::{OBJECT_VECTOR, SHORT_VECTOR};

/// The answer of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Text(&'static str),
    Truth(bool),
    Null,
    /// NULL in place of a list of texts.
    NoList,
    /// The first argument: a table that is no partition.
    Same,
    /// The text of the relation that the first argument names, or is the number of.
    OfRelation(BTreeMap<i64, String>, BTreeMap<String, i64>),
    /// The name of a relation, which is told by its number or its name.
    RelationName(BTreeMap<i64, String>, BTreeMap<String, i64>),
    /// The comment on an object of this number, or on its column of the number that is the second argument.
    Comment(Comments, bool),
    /// Whether a relation is found without its schema.
    Visible(BTreeSet<i64>),
    /// Whether a type is found without its schema: these are not.
    Unhidden(BTreeSet<i64>),
    /// The definition of the constraint of the number that is the first argument: plain, or pretty if the second says so.
    Definition(BTreeMap<i64, [String; 2]>),
    /// The definition of an index, or of its column of the number that is the second argument: plain, or pretty if the third
    /// says so.
    Index(BTreeMap<i64, [Vec<String>; 2]>),
    /// The expression that is the first argument, pretty if the third says so.
    Expression,
    /// The sequence of the column that the second argument names, of the table that the first does.
    Sequence(SerialSequences),
    /// The number of the relation that the first argument names.
    Relation(BTreeMap<String, i64>),
    /// The number of the type that the first argument names.
    Type(BTreeMap<String, i64>),
    /// The name of the type that the first argument is, made with the second.
    TypeName(BTreeMap<i64, String>),
    /// The names of the types that the first argument, a vector, has the numbers of.
    TypeNames(BTreeMap<i64, String>),
    /// The name of the type that the first argument has.
    TypeOf,
    /// The bytes that a relation takes, named by its number as the first argument.
    Size(BTreeMap<i64, i64>),
    /// A number, whatever is asked.
    Number(i64),
    /// A number of bytes as people read it.
    SizeText,
    /// The first argument, a list of names.
    Names,
    /// The value of a setting; an error where there is none, unless the second argument allows that.
    Setting(BTreeMap<String, String>),
    /// Whether the object that is the first argument, or its column that is the second, has a property.
    Property(Properties, bool),
    /// The items of a vector with their positions.
    Expanded,
    /// The positions of an array, or of a vector from 0.
    Positions,
}

/// Functions that say the same of everything.
pub(super) const ALWAYS: [(&str, Answer); 24] = [
    ("pg_encoding_to_char", Answer::Text("UTF8")),
    ("getdatabaseencoding", Answer::Text("UTF8")),
    ("pg_char_to_encoding", Answer::Number(6)),
    ("pg_collation_is_visible", Answer::Truth(true)),
    ("pg_opclass_is_visible", Answer::Truth(true)),
    ("pg_opfamily_is_visible", Answer::Truth(true)),
    ("pg_describe_object", Answer::Null),
    ("pg_tablespace_size", Answer::Null),
    ("pg_get_triggerdef", Answer::Null),
    ("pg_get_ruledef", Answer::Null),
    ("pg_get_statisticsobjdef_columns", Answer::Null),
    ("pg_is_in_recovery", Answer::Truth(false)),
    ("pg_is_other_temp_schema", Answer::Truth(false)),
    ("pg_relation_is_publishable", Answer::Truth(false)),
    ("has_table_privilege", Answer::Truth(true)),
    ("has_schema_privilege", Answer::Truth(true)),
    ("has_database_privilege", Answer::Truth(true)),
    ("has_column_privilege", Answer::Truth(true)),
    ("has_any_column_privilege", Answer::Truth(true)),
    ("has_sequence_privilege", Answer::Truth(true)),
    ("pg_get_partkeydef", Answer::Null),
    ("pg_tablespace_location", Answer::Text("")),
    ("pg_stat_get_numscans", Answer::Null),
    ("acldefault", Answer::NoList),
];

/// The function that says of a list that it has names of the catalog.
pub(super) const NAME_LIST: &str = "namelistout";

/// The names of the roles.
pub(super) fn roles() -> BTreeMap<i64, String> {
    BTreeMap::from([(OWNER_OID, OWNER.to_owned()), (PUBLIC_OWNER_OID, PUBLIC_OWNER.to_owned())])
}

/// Numbers from here on are of relations that are not the catalog's own.
const FIRST_OWN_OID: i64 = 16_384;

/// The bytes that relations take: of tables their rows, their indexes or both, of others all.
pub(super) fn sizes(objects: &Objects, [with_rows, with_indexes]: [bool; 2]) -> BTreeMap<i64, i64> {
    let mut sizes: BTreeMap<i64, i64> = objects.indexes().map(|(_, index)| (index.oid, index.bytes)).collect();
    for table in &objects.tables {
        let indexes: i64 = table.indexes.iter().map(|index| index.bytes).sum();
        sizes.insert(table.oid, if with_rows { table.bytes } else { 0 } + if with_indexes { indexes } else { 0 });
    }
    sizes.extend(objects.sequences.iter().map(|sequence| (sequence.oid, 0)));
    sizes
}

/// The numbers that sequences have given last, of those that have given any.
pub(super) fn last_values(objects: &Objects) -> BTreeMap<i64, i64> {
    let last = |sequence: &SequenceObject| {
        let stands = sequence.sequence.position().ok().filter(|stands| stands.is_called)?;
        Some((sequence.oid, stands.last_value))
    };
    objects.sequences.iter().filter_map(last).collect()
}

/// The names of types by their numbers, with what they were made with; `made` has those of users.
fn type_names(arguments: &Arguments, made: &BTreeMap<i64, String>) -> Result<ArrayRef> {
    let (numbers, modifiers) = (arguments.numbers(0)?, arguments.numbers(1)?);
    let name = |oid: i64, modifier| made.get(&oid).cloned().unwrap_or_else(|| format_type(oid, modifier));
    let texts = numbers.iter().zip(&modifiers).map(|(oid, modifier)| Some(name(oid?, modifier)));
    Ok(Arc::new(texts.collect::<StringViewArray>()))
}

/// The names of the types of vectors of numbers.
fn type_name_lists(arguments: &Arguments, made: &BTreeMap<i64, String>) -> ArrayRef {
    let name = |oid: i64| made.get(&oid).cloned().unwrap_or_else(|| format_type(oid, None));
    let names = |row| Some(items(&arguments.arrays, row)?.into_iter().map(name).collect::<Vec<_>>().join(", "));
    Arc::new((0..arguments.rows).map(names).collect::<StringViewArray>())
}

/// The sequences of columns.
fn sequences_of(arguments: &Arguments, known: &SerialSequences) -> Result<ArrayRef> {
    let name = |(table, column): (Option<&str>, Option<&str>)| match table.zip(column) {
        Some((table, column)) => {
            known.sequence(table, column).map_err(|error| DataFusionError::External(Box::new(error)))
        }
        None => Ok(None),
    };
    let (tables, columns) = (arguments.texts(0)?, arguments.texts(1)?);
    Ok(Arc::new(tables.iter().zip(&columns).map(name).collect::<Result<StringViewArray>>()?))
}

/// The arguments of a call.
pub(super) struct Arguments {
    pub(super) arrays: Vec<ArrayRef>,
    /// The name of the first one's type.
    pub(super) first: String,
    pub(super) rows: usize,
}

impl Arguments {
    /// An argument as numbers; NULL where it is missing.
    fn numbers(&self, at: usize) -> Result<Int64Array> {
        match self.arrays.get(at) {
            Some(array) => Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone()),
            None => Ok(Int64Array::new_null(self.rows)),
        }
    }

    fn truths(&self, at: usize) -> Result<BooleanArray> {
        match self.arrays.get(at) {
            Some(array) => Ok(cast(array, &DataType::Boolean)?.as_boolean().clone()),
            None => Ok(BooleanArray::new_null(self.rows)),
        }
    }

    fn texts(&self, at: usize) -> Result<StringViewArray> {
        match self.arrays.get(at) {
            Some(array) => Ok(cast(array, &DataType::Utf8View)?.as_string_view().clone()),
            None => Ok(StringViewArray::new_null(self.rows)),
        }
    }
}

impl Answer {
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Answer::Truth(_) | Answer::Visible(_) | Answer::Unhidden(_) | Answer::Property(..) => DataType::Boolean,
            Answer::Same | Answer::Relation(_) | Answer::Type(_) | Answer::Size(_) | Answer::Number(_) => {
                DataType::Int64
            }
            Answer::Names | Answer::NoList => DataType::new_list(DataType::Utf8View, true),
            Answer::Expanded => DataType::new_list(DataType::Struct(expanded_fields()), true),
            Answer::Positions => DataType::new_list(DataType::Int32, true),
            _ => DataType::Utf8View,
        }
    }

    pub(super) fn answer(&self, arguments: &Arguments) -> Result<ArrayRef> {
        let rows = arguments.rows;
        Ok(match self {
            Answer::Text(text) => Arc::new(StringViewArray::from(vec![Some(*text); rows])),
            Answer::Names => match arguments.arrays.first() {
                Some(names) => cast(names, &self.data_type())?,
                None => new_null_array(&self.data_type(), rows),
            },
            Answer::Truth(truth) => Arc::new(BooleanArray::from(vec![Some(*truth); rows])),
            Answer::Comment(known, of_columns) => comments(arguments, known, *of_columns)?,
            Answer::Visible(visible) => Arc::new(are_visible(&arguments.numbers(0)?, visible)),
            Answer::Unhidden(hidden) => Arc::new(are_unhidden(&arguments.numbers(0)?, hidden)),
            Answer::Null => Arc::new(StringViewArray::new_null(rows)),
            Answer::NoList => new_null_array(&self.data_type(), rows),
            Answer::Same => Arc::new(arguments.numbers(0)?),
            Answer::OfRelation(texts, names) => of_relations(arguments, texts, names)?,
            Answer::RelationName(shown, names) => relation_names(arguments, shown, names)?,
            Answer::Definition(known) => definitions_of(arguments, known)?,
            Answer::Index(known) => {
                let (numbers, columns) = (arguments.numbers(0)?, arguments.numbers(1)?);
                let pretty = arguments.truths(2)?;
                let text = |((oid, column), row): ((Option<i64>, Option<i64>), usize)| {
                    let definition = &known.get(&oid?)?[usize::from(pretty.is_valid(row) && pretty.value(row))];
                    definition.get(usize::try_from(column.unwrap_or(0)).ok()?).map(String::as_str)
                };
                Arc::new(numbers.iter().zip(&columns).zip(0..).map(text).collect::<StringViewArray>())
            }
            Answer::Expression => {
                let pretty = arguments.truths(2)?;
                let text = |(text, row): (Option<&str>, usize)| match parsed(text?) {
                    Ok(expr) if pretty.is_valid(row) && pretty.value(row) && !is_constant(&expr) => {
                        Some(written(&expr, &[], Style::Pretty))
                    }
                    _ => text.map(str::to_owned),
                };
                Arc::new(arguments.texts(0)?.iter().zip(0..).map(text).collect::<StringViewArray>())
            }
            Answer::Sequence(known) => sequences_of(arguments, known)?,
            Answer::Relation(known) => {
                let own = |name: &str| known.get(&name_in_text(name).ok()?).copied();
                let number = |name: Option<&str>| own(name?).or_else(|| catalog_relation_oid(name?));
                Arc::new(arguments.texts(0)?.iter().map(number).collect::<Int64Array>())
            }
            Answer::Type(made) => {
                let number = |name: &str| made.get(name).copied().or_else(|| type_oid(name));
                Arc::new(arguments.texts(0)?.iter().map(|name| number(name?)).collect::<Int64Array>())
            }
            Answer::TypeName(made) => type_names(arguments, made)?,
            Answer::TypeNames(made) => type_name_lists(arguments, made),
            Answer::TypeOf => Arc::new(StringViewArray::from(vec![Some(arguments.first.as_str()); rows])),
            Answer::Size(sizes) => {
                let size = |oid: Option<i64>| sizes.get(&oid?).copied();
                Arc::new(arguments.numbers(0)?.iter().map(size).collect::<Int64Array>())
            }
            Answer::Number(bytes) => Arc::new(Int64Array::from(vec![*bytes; rows])),
            Answer::SizeText => {
                Arc::new(arguments.numbers(0)?.iter().map(|bytes| bytes.map(size_text)).collect::<StringViewArray>())
            }
            Answer::Setting(settings) => setting(arguments, settings)?,
            Answer::Property(known, of_column) => Arc::new(properties_of(arguments, known, *of_column)?),
            Answer::Expanded => expanded(&arguments.arrays, rows),
            Answer::Positions => positions(arguments),
        })
    }
}

/// The comments on objects of the class that is named, or of any where none is, or on columns of relations.
fn comments(arguments: &Arguments, known: &Comments, of_columns: bool) -> Result<ArrayRef> {
    let oids = arguments.numbers(0)?;
    if of_columns {
        let of = |(oid, column): (Option<i64>, Option<i64>)| known.get(&(Class::Relation, oid?, column?));
        return Ok(Arc::new(oids.iter().zip(&arguments.numbers(1)?).map(of).collect::<StringViewArray>()));
    }
    let (is_classed, classes) = (arguments.arrays.len() > 1, arguments.texts(1)?);
    let comment = |(oid, class): (Option<i64>, Option<&str>)| {
        let oid = oid?;
        let mut asked = Class::ALL.into_iter().filter(|known| !is_classed || Some(known.name()) == class);
        asked.find_map(|class| known.get(&(class, oid, 0)))
    };
    Ok(Arc::new(oids.iter().zip(&classes).map(comment).collect::<StringViewArray>()))
}

/// The definitions of constraints, plain or pretty.
fn definitions_of(arguments: &Arguments, known: &BTreeMap<i64, [String; 2]>) -> Result<ArrayRef> {
    let (numbers, pretty) = (arguments.numbers(0)?, arguments.truths(1)?);
    let definition = |(number, pretty): (Option<i64>, Option<bool>)| {
        let [plain, with_less] = known.get(&number?)?;
        Some(if pretty == Some(true) { with_less } else { plain }.as_str())
    };
    Ok(Arc::new(numbers.iter().zip(pretty.iter()).map(definition).collect::<StringViewArray>()))
}

/// Whether objects have properties; NULL where an object has not that property, or there is none.
fn properties_of(arguments: &Arguments, known: &Properties, of_column: bool) -> Result<BooleanArray> {
    let (objects, names) = (arguments.numbers(0)?, arguments.texts(if of_column { 2 } else { 1 })?);
    let columns = if of_column { arguments.numbers(1)? } else { Int64Array::from(vec![0; arguments.rows]) };
    let truth = |((object, column), name): ((Option<i64>, Option<i64>), Option<&str>)| {
        let name = name?.to_lowercase();
        known.get(&(object?, column?, name.as_str())).copied()
    };
    Ok(objects.iter().zip(&columns).zip(names.iter()).map(truth).collect())
}

/// Whether relations of these numbers are found without their schemas.
fn are_visible(oids: &Int64Array, visible: &BTreeSet<i64>) -> BooleanArray {
    let is_visible = |oid: Option<i64>| oid.map(|oid| visible.contains(&oid) || oid < FIRST_OWN_OID);
    oids.iter().map(is_visible).collect()
}

/// Whether types of these numbers are found without their schemas.
fn are_unhidden(oids: &Int64Array, hidden: &BTreeSet<i64>) -> BooleanArray {
    oids.iter().map(|oid| oid.map(|oid| !hidden.contains(&oid))).collect()
}

/// The numbers of relations, which are told by these or by their names.
fn relations(arguments: &Arguments, names: &BTreeMap<String, i64>) -> Result<Vec<Option<i64>>> {
    let (numbers, named) = (arguments.numbers(0)?, arguments.texts(0)?);
    let number = |name: Option<&str>| names.get(&name_in_text(name?).ok()?).copied();
    Ok(numbers.iter().zip(named.iter()).map(|(oid, name)| oid.or_else(|| number(name))).collect())
}

/// The texts of relations, which are told by their numbers or their names.
fn of_relations(
    arguments: &Arguments,
    texts: &BTreeMap<i64, String>,
    names: &BTreeMap<String, i64>,
) -> Result<ArrayRef> {
    let found = relations(arguments, names)?.into_iter();
    let text = |oid: Option<i64>| texts.get(&oid?).map(String::as_str);
    Ok(Arc::new(found.map(text).collect::<StringViewArray>()))
}

/// The names of relations, which are told by their numbers or their names; a number without a relation is its own name.
fn relation_names(
    arguments: &Arguments,
    shown: &BTreeMap<i64, String>,
    names: &BTreeMap<String, i64>,
) -> Result<ArrayRef> {
    let found = relations(arguments, names)?.into_iter();
    let text = |oid: Option<i64>| match oid? {
        0 => Some(NO_RELATION.to_owned()),
        oid => shown.get(&oid).cloned().or_else(|| catalog_relation(oid)).or_else(|| Some(oid.to_string())),
    };
    Ok(Arc::new(found.map(text).collect::<StringViewArray>()))
}

/// Whether an expression is a constant with its type, which is written in one way alone.
fn is_constant(expr: &Expr) -> bool {
    matches!(expr, Expr::Cast { expr, .. } if matches!(expr.as_ref(), Expr::Value(_)))
}

fn setting(arguments: &Arguments, settings: &BTreeMap<String, String>) -> Result<ArrayRef> {
    let may_miss = arguments.arrays.get(1).map(|array| cast(array, &DataType::Boolean)).transpose()?;
    let names = arguments.texts(0)?;
    let value = |(row, name): (usize, Option<&str>)| -> Result<Option<&str>> {
        let Some(name) = name else { return Ok(None) };
        let may_miss = may_miss.as_ref().is_some_and(|truths| truths.as_boolean().value(row));
        match settings.get(name.to_lowercase().as_str()) {
            Some(value) => Ok(Some(value.as_str())),
            None if may_miss => Ok(None),
            None => {
                let message = format!("unrecognized configuration parameter \"{name}\"");
                Err(DataFusionError::External(Box::new(SqlError::new("42704", message))))
            }
        }
    };
    Ok(Arc::new(names.iter().enumerate().map(value).collect::<Result<StringViewArray>>()?))
}

fn expanded_fields() -> Fields {
    Fields::from(vec![Field::new("x", DataType::Int64, true), Field::new("n", DataType::Int64, true)])
}

/// The items of the vector in a row.
fn items(arrays: &[ArrayRef], row: usize) -> Option<Vec<i64>> {
    let lists = arrays.first()?.as_list_opt::<i32>().filter(|lists| lists.is_valid(row))?;
    let items = cast(&lists.value(row), &DataType::Int64).ok()?;
    let items = items.as_primitive_opt::<Int64Type>()?;
    Some(items.iter().map(|item| item.unwrap_or(0)).collect())
}

fn expanded(arrays: &[ArrayRef], rows: usize) -> ArrayRef {
    let pairs =
        StructBuilder::new(expanded_fields(), vec![Box::new(Int64Builder::new()), Box::new(Int64Builder::new())]);
    let mut lists = ListBuilder::new(pairs);
    for row in 0..rows {
        let items = items(arrays, row);
        for (number, item) in (1..).zip(items.iter().flatten()) {
            let pair = lists.values();
            let mut put = |at, value| {
                if let Some(column) = pair.field_builder::<Int64Builder>(at) {
                    column.append_value(value);
                }
            };
            put(0, *item);
            put(1, number);
            pair.append(true);
        }
        lists.append(items.is_some());
    }
    Arc::new(lists.finish())
}

fn positions(arguments: &Arguments) -> ArrayRef {
    // Those of a vector begin with 0.
    let start = i32::from(![SHORT_VECTOR, OBJECT_VECTOR].contains(&arguments.first.as_str()));
    let lists = arguments.arrays.first().and_then(|array| array.as_list_opt::<i32>());
    let mut positions = ListBuilder::new(Int32Builder::new());
    for row in 0..arguments.rows {
        let length = lists.filter(|lists| lists.is_valid(row)).map(|lists| lists.value_length(row));
        (start..start + length.unwrap_or(0)).for_each(|position| positions.values().append_value(position));
        positions.append(length.is_some());
    }
    Arc::new(positions.finish())
}
