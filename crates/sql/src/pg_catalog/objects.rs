//! The objects that the catalog describes: the tables, indexes and sequences that a statement sees, each with its
//! number.
//!
//! Tables and sequences have their own numbers, which never change. An index has none: its number comes from its name, which no
//! other relation has, so that it is the same in one query as in the next.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Expr;
use engine::{
    Check, CheckOption, Column, ColumnDefault, Deferral, DomainDefinition, ForeignKey, Index, IndexDefinition,
    IndexExpression, IndexMethod, IndexPart, MaterializedQuery, PUBLIC_SCHEMA, PartOrder, Sequence, Table,
    TypeDefinition, ViewDefinition,
};

use super::hidden::Hidden;
use super::opclasses::{self, OperatorClass};
use super::view_names::with_names;
use crate::access::folded_parts;
use crate::access::index_expressions::text::{column_names, parsed};
use crate::access::index_expressions::write::{Style, in_list, written};
use crate::error::DOMAIN_RULE;
use crate::interrupt::made_types::MadeFunction;
use crate::names::origin::oid_of;
use crate::names::schemas::{SearchPath, local, schema_of, told};
use crate::names::tables::Tables;
use crate::names::{made_functions, made_types};
use crate::state::memory_limit::{self, BUDGET};
use crate::syntax::identifiers::quoted;
use crate::values::pg_types::{TYPES, extension_of};

/// How an expression is written.
type Write = fn(&Expr, &[Column], Style) -> String;

/// Numbers of indexes start here, above those of tables.
const FIRST_INDEX_OID: i64 = 1 << 30;

/// Numbers of constraints that are no indexes start here, below those of defaults.
const FIRST_CONSTRAINT_OID: i64 = 2 << 30;

/// See the module.
pub(super) struct Objects {
    pub(super) tables: Vec<TableObject>,
    pub(super) sequences: Vec<SequenceObject>,
    pub(super) views: Vec<ViewObject>,
    /// The names of the schemas that were made, and of those of temporary tables.
    pub(super) schemas: Vec<String>,
    /// The types that users have made, by the names by which the engine knows them.
    pub(super) types: Vec<(String, TypeDefinition)>,
    /// The functions that users have made.
    pub(super) functions: Vec<FunctionObject>,
    path: SearchPath,
    /// What of `public` this path does not find.
    pub(super) hidden: Arc<Hidden>,
}

/// A function that a user has made.
pub(super) struct FunctionObject {
    pub(super) oid: i64,
    pub(super) function: MadeFunction,
    pub(super) hidden: Arc<Hidden>,
}

/// A table with its indexes, that of its key first.
pub(super) struct TableObject {
    pub(super) oid: i64,
    /// As the statement sees it; the table itself tells its newest name.
    pub(super) name: String,
    /// The name by which the catalog of the engine knows it.
    pub(super) key: String,
    pub(super) table: Table,
    pub(super) indexes: Vec<IndexObject>,
    /// What fills its columns.
    defaults: Vec<ColumnDefault>,
    pub(super) checks: Vec<CheckObject>,
    pub(super) foreign_keys: Vec<ForeignKeyObject>,
    /// The query that its rows come from, of a materialized view.
    pub(super) materialized: Option<MaterializedQuery>,
    /// Whether another table refers to it.
    pub(super) is_referenced: bool,
    /// The bytes that it takes without its indexes.
    pub(super) bytes: i64,
    hidden: Arc<Hidden>,
}

/// An index.
pub(super) struct IndexObject {
    pub(super) oid: i64,
    pub(super) name: String,
    pub(super) key: String,
    pub(super) definition: IndexDefinition,
    /// The names of its columns.
    pub(super) names: Vec<String>,
    /// The types of its columns.
    pub(super) columns: Vec<Column>,
    pub(super) is_unique: bool,
    pub(super) is_primary: bool,
    /// Whether it stands for a constraint, be it the key.
    pub(super) is_constraint: bool,
    pub(super) bytes: i64,
}

impl IndexObject {
    /// The name of the collation of the part numbered `at`, if it is not that of its column.
    pub(super) fn collation(&self, at: usize) -> Option<&str> {
        self.definition.collations.get(at)?.as_deref()
    }

    /// The options that were said of it, as they can be said again.
    pub(super) fn options(&self) -> impl Iterator<Item = (&str, String)> {
        let budget = self.definition.budget_bytes.map(|bytes| (BUDGET, memory_limit::show(Some(bytes))));
        budget.into_iter().chain(self.definition.options.iter().map(|(name, value)| (name.as_str(), value.clone())))
    }

    /// The method that is told of it. A primary key has PostgreSQL's, whichever tree keeps its keys in order: it was not asked for one.
    pub(super) fn method(&self) -> IndexMethod {
        if self.is_primary { IndexMethod::Btree } else { self.definition.told_method() }
    }

    /// The operator class of the part numbered `at`.
    pub(super) fn class(&self, at: usize) -> Option<&'static OperatorClass> {
        let method = self.method();
        let named = self.definition.named_class(at).or_else(|| self.definition.classes.get(at).map(|of| of.name()));
        match named {
            Some(name) => opclasses::named(method, name),
            None => opclasses::default_of(method, self.columns.get(at)?.data_type),
        }
    }
}

/// What a definition says of the options of an index.
fn with_clause(index: &IndexObject) -> String {
    let option = |(name, value): (&str, String)| match quoted(&value) == value {
        true => format!("{name}={value}"),
        false => format!("{name}='{}'", value.replace('\'', "''")),
    };
    let options = index.options().map(option).collect::<Vec<_>>().join(", ");
    if options.is_empty() { String::new() } else { format!(" WITH ({options})") }
}

/// What the definition of a constraint says of when it is looked at.
fn deferral(index: &IndexObject) -> &'static str {
    match index.definition.deferral {
        None => "",
        Some(Deferral::Immediate) => " DEFERRABLE",
        Some(Deferral::Deferred) => " DEFERRABLE INITIALLY DEFERRED",
    }
}

/// A `CHECK` constraint.
pub(super) struct CheckObject {
    pub(super) oid: i64,
    pub(super) check: Check,
}

/// A foreign key.
pub(super) struct ForeignKeyObject {
    pub(super) oid: i64,
    pub(super) key: ForeignKey,
}

/// A sequence.
pub(super) struct SequenceObject {
    pub(super) oid: i64,
    pub(super) name: String,
    pub(super) key: String,
    pub(super) table: Table,
    pub(super) sequence: Sequence,
}

/// A view.
pub(super) struct ViewObject {
    pub(super) oid: i64,
    pub(super) name: String,
    pub(super) key: String,
    pub(super) table: Table,
    /// Its query.
    pub(super) query: String,
    check: Option<CheckOption>,
    other_types: Vec<(usize, u32)>,
    hidden: Arc<Hidden>,
}

/// A query as `pg_get_viewdef` shows it, of a view that is this table.
fn shown_query(query: &str, table: &Table, hidden: &Hidden) -> String {
    let names: Vec<&str> = table.schema().columns().iter().map(|column| column.name.as_str()).collect();
    format!(" {};", hidden.query(with_names(query, &names)))
}

impl ViewObject {
    fn of((key, table): (String, Table)) -> Option<ViewObject> {
        let ViewDefinition { query, other_types, check, .. } = table.view()?.clone();
        let name = local(&key).to_owned();
        let hidden = Arc::default();
        Some(ViewObject { oid: oid_of(&table), name, key, query, check, other_types, table, hidden })
    }

    /// The value of its option `check_option`, if it has one.
    pub(super) fn check_option(&self) -> Option<&'static str> {
        self.check.map(|check| match check {
            CheckOption::Local => "local",
            CheckOption::Cascaded => "cascaded",
        })
    }

    /// The query as `pg_get_viewdef` shows it.
    pub(super) fn definition(&self) -> String {
        shown_query(&self.query, &self.table, &self.hidden)
    }

    /// The number of a column's type, if no table has such columns.
    pub(super) fn other_type(&self, column: usize) -> Option<u32> {
        self.other_types.iter().find(|(at, _)| *at == column).map(|(_, number)| *number)
    }
}

/// The number that a name leads to (FNV-1a), of 30 bits.
pub(super) fn number_of(name: &str) -> i64 {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    i64::try_from((hash ^ (hash >> 30)) & ((1 << 30) - 1)).unwrap_or(0)
}

fn size(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Objects {
    /// Those that a statement sees.
    pub(super) fn of(tables: &Tables) -> Objects {
        let mut taken = BTreeSet::new();
        let sequences = tables.sequences().into_iter().filter_map(|(key, table)| {
            let (sequence, name) = (tables.sequence_of(&table)?, local(&key).to_owned());
            Some(SequenceObject { oid: oid_of(&table), name, key, table, sequence })
        });
        let sequences = sequences.collect();
        let views = tables.views().into_iter().filter_map(ViewObject::of).collect();
        let types = made_types::all(tables);
        let functions = made_functions::all(tables).into_iter();
        let functions =
            functions.map(|(function, kept)| FunctionObject { oid: oid_of(&kept), function, hidden: Arc::default() });
        let functions = functions.collect();
        let plain = tables.plain().into_iter();
        let (path, mut schemas) = (tables.path().clone(), tables.made_schemas());
        schemas.extend(path.temporary().map(str::to_owned));
        let tables = plain.map(|(name, table)| TableObject::new(name, table, tables, &mut taken)).collect();
        let hidden = Arc::default();
        let mut objects = Objects { tables, sequences, views, schemas, types, functions, path, hidden };
        if !objects.path.is_plain() {
            let hidden = Arc::new(hidden_of(&objects));
            objects.tables.iter_mut().for_each(|table| table.hidden = hidden.clone());
            objects.views.iter_mut().for_each(|view| view.hidden = hidden.clone());
            objects.functions.iter_mut().for_each(|function| function.hidden = hidden.clone());
            objects.hidden = hidden;
        }
        objects
    }

    /// The number of the relation that the engine knows by this name, unless it is an index.
    pub(super) fn number_of(&self, key: &str) -> Option<i64> {
        self.relations().find(|(known, _)| *known == key).map(|(_, oid)| oid)
    }

    /// The path by which names without a schema are looked up.
    pub(super) fn path(&self) -> &SearchPath {
        &self.path
    }

    /// All relations by the names by which the engine knows them, and by those that find them without a schema.
    pub(super) fn found(&self) -> BTreeMap<String, i64> {
        let mut found: BTreeMap<String, i64> = self.names().map(|(key, oid)| (key.to_owned(), oid)).collect();
        if !self.path.is_plain() {
            let of_path: Vec<(String, i64)> = self
                .names()
                .filter(|(key, _)| self.is_visible(&found, key))
                .map(|(key, oid)| (local(key).to_owned(), oid))
                .collect();
            found.extend(of_path);
        }
        found
    }

    /// Whether a relation is found by its name without a schema; `all` has the names of all.
    fn is_visible(&self, all: &BTreeMap<String, i64>, key: &str) -> bool {
        self.path.names(local(key)).find(|name| all.contains_key(name)).is_some_and(|first| first == key)
    }

    /// The numbers of the relations that are found by their names without a schema.
    pub(super) fn visible(&self) -> BTreeSet<i64> {
        let all: BTreeMap<String, i64> = self.names().map(|(key, oid)| (key.to_owned(), oid)).collect();
        self.names().filter(|(key, _)| self.is_visible(&all, key)).map(|(_, oid)| oid).collect()
    }

    /// The types that users have made, and the arrays of enums, by their numbers, as they are spelled.
    pub(super) fn made_types(&self) -> BTreeMap<i64, String> {
        let mut names: BTreeMap<i64, String> = self.hidden.extension_types().collect();
        for (key, of_type) in &self.types {
            let name = told(key, self.is_found_type(key));
            match of_type {
                TypeDefinition::Domain(domain) => {
                    names.insert(domain.number.into(), name);
                }
                TypeDefinition::Enum(labels) => {
                    names.insert(labels.of.array_number().into(), format!("{name}[]"));
                    names.insert(labels.of.number().into(), name);
                }
            }
        }
        names
    }

    /// Whether a type is found without its schema.
    pub(super) fn is_found_type(&self, key: &str) -> bool {
        let is_type = |name: &str| self.types.iter().any(|(known, _)| known == name);
        self.path.names(local(key)).find(|name| is_type(name)).is_some_and(|first| first == key)
    }

    /// The numbers of the types that users have made and that are not found by their names without a schema.
    pub(super) fn hidden_types(&self) -> BTreeSet<i64> {
        let numbers = |of_type: &TypeDefinition| match of_type {
            TypeDefinition::Domain(domain) => vec![domain.number.into()],
            TypeDefinition::Enum(labels) => vec![labels.of.number().into(), labels.of.array_number().into()],
        };
        self.types
            .iter()
            .filter(|(key, _)| !self.is_found_type(key))
            .flat_map(|(_, of_type)| numbers(of_type))
            .collect()
    }

    /// The domain of a column, with its name.
    pub(super) fn domain_of(&self, table: &TableObject, column: usize) -> Option<(&str, &DomainDefinition)> {
        let domain = table.default(column)?.domain.as_ref()?;
        self.types.iter().find_map(|(name, of_type)| match of_type {
            TypeDefinition::Domain(of) if *name == domain.name => Some((name.as_str(), of)),
            _ => None,
        })
    }

    /// The table that the engine knows by this name.
    pub(super) fn table(&self, key: &str) -> Option<&TableObject> {
        self.tables.iter().find(|table| table.key == key)
    }

    /// The tables that were made as such.
    pub(super) fn base_tables(&self) -> impl Iterator<Item = &TableObject> {
        self.tables.iter().filter(|table| table.materialized.is_none())
    }

    /// The materialized views, each with its query as `pg_get_viewdef` shows it, and whether it is populated.
    pub(super) fn materialized(&self) -> impl Iterator<Item = (&TableObject, String, bool)> {
        let of = |table: &TableObject| {
            let of = table.materialized.as_ref()?;
            Some((shown_query(&of.query, &table.table, &table.hidden), of.is_populated))
        };
        self.tables.iter().filter_map(move |table| of(table).map(|(query, is_populated)| (table, query, is_populated)))
    }

    /// All indexes, each with its table.
    pub(super) fn indexes(&self) -> impl Iterator<Item = (&TableObject, &IndexObject)> {
        self.tables.iter().flat_map(|table| table.indexes.iter().map(move |index| (table, index)))
    }

    /// The names of all relations with their numbers.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, i64)> {
        self.relations().chain(self.indexes().map(|(_, index)| (index.key.as_str(), index.oid)))
    }

    /// Those of all that are no indexes.
    pub(super) fn relations(&self) -> impl Iterator<Item = (&str, i64)> {
        let tables = self.tables.iter().map(|table| (table.key.as_str(), table.oid));
        let sequences = self.sequences.iter().map(|sequence| (sequence.key.as_str(), sequence.oid));
        let views = self.views.iter().map(|view| (view.key.as_str(), view.oid));
        tables.chain(sequences).chain(views)
    }
}

fn is_public(key: &str) -> bool {
    schema_of(key) == PUBLIC_SCHEMA
}

/// What the path of these objects hides.
fn hidden_of(objects: &Objects) -> Hidden {
    let visible = objects.visible();
    let relations = objects.names().filter(|(key, oid)| is_public(key) && !visible.contains(oid));
    let is_first = |name: &str| objects.path().names(name).next().is_some_and(|first| is_public(&first));
    let mut functions: BTreeMap<String, Vec<[usize; 2]>> = BTreeMap::new();
    for object in objects.functions.iter().filter(|object| object.function.schema == PUBLIC_SCHEMA) {
        if !is_first(&object.function.name) {
            functions.entry(object.function.name.clone()).or_default().push(object.function.arguments_taken());
        }
    }
    let types = objects.types.iter().filter(|(key, _): &&(String, TypeDefinition)| is_public(key));
    let mut types: BTreeSet<String> =
        types.filter(|(key, _)| !objects.is_found_type(key)).map(|(key, _)| local(key).to_owned()).collect();
    let is_whole = !objects.path().names("").any(|name| is_public(&name));
    if is_whole {
        let extended = TYPES.iter().filter(|known| extension_of(known.number).is_some());
        types.extend(extended.map(|known| known.name.to_owned()));
    }
    let relations = relations.map(|(key, _)| local(key).to_owned()).collect();
    let of_others = objects.names().filter(|(key, oid)| !is_public(key) && visible.contains(oid)).map(|(key, _)| key);
    let other_types = objects.types.iter().map(|(key, _)| &**key).filter(|key| !is_public(key));
    let found = of_others.chain(other_types.filter(|key| objects.is_found_type(key))).map(str::to_owned).collect();
    Hidden { found, relations, functions, types, is_whole }
}

impl TableObject {
    fn new(key: String, table: Table, tables: &Tables, taken: &mut BTreeSet<i64>) -> TableObject {
        let mut free_oid = |first: i64, name: &str| {
            let mut oid = first + number_of(name);
            while !taken.insert(oid) {
                oid += 1;
            }
            oid
        };
        let mut object = |index: &Index, key: String, is_primary: bool| {
            let names = column_names(index.definition(), table.schema());
            let definition = folded_parts::as_asked(index.definition().clone());
            let column = |(part, key): (&IndexPart, &Column)| match part {
                IndexPart::Column(at) => table.schema().columns()[*at].clone(),
                IndexPart::Expression(_) => key.clone(),
            };
            IndexObject {
                oid: free_oid(FIRST_INDEX_OID, &key),
                name: local(&key).to_owned(),
                key,
                names,
                columns: definition.parts.iter().zip(index.key_columns()).map(column).collect(),
                is_unique: definition.is_unique() || is_primary,
                is_primary,
                is_constraint: definition.is_constraint || is_primary,
                bytes: size(index.bytes()),
                definition,
            }
        };
        let (settings, mut indexes) = (tables.settings_of(&table), Vec::new());
        if let Some(primary) = table.primary_index() {
            indexes.push(object(&primary, settings.name_of_key(&key), true));
        }
        for index in tables.indexes_of(&table) {
            indexes.push(object(&index, index.definition().name.clone(), index.definition().is_primary));
        }
        let mut constraint_oid = |constraint: &str| free_oid(FIRST_CONSTRAINT_OID, &format!("{key}.{constraint}"));
        let own_checks = settings.checks.into_iter().filter(|check| !check.name.starts_with(DOMAIN_RULE));
        let checks = own_checks.map(|check| CheckObject { oid: constraint_oid(&check.name), check });
        let checks = checks.collect();
        let foreign_keys = settings.foreign_keys.into_iter();
        let foreign_keys = foreign_keys.map(|key| ForeignKeyObject { oid: constraint_oid(&key.name), key }).collect();
        let memory = table.memory();
        let bytes = size(memory.insert_bytes + memory.base_bytes + memory.tail_bytes + memory.history_bytes);
        TableObject {
            oid: oid_of(&table),
            name: local(&key).to_owned(),
            key,
            indexes,
            defaults: settings.defaults,
            checks,
            foreign_keys,
            materialized: settings.materialized,
            is_referenced: !settings.referrers.is_empty(),
            bytes,
            table,
            hidden: Arc::default(),
        }
    }

    /// What fills the columns that a statement gives no value for.
    pub(super) fn defaults(&self) -> &[ColumnDefault] {
        &self.defaults
    }

    /// What fills a column, if anything does.
    pub(super) fn default(&self, column: usize) -> Option<&ColumnDefault> {
        self.defaults.iter().find(|default| default.column == column)
    }

    /// The parts of an index's keys, as they are written in a definition.
    pub(super) fn parts(&self, index: &IndexObject, style: Style) -> Vec<String> {
        let columns = self.table.schema().columns();
        let part = |part: &IndexPart| match part {
            IndexPart::Column(at) => quoted(&columns[*at].name),
            IndexPart::Expression(expression) => self.expression(expression, style, in_list),
        };
        index.definition.parts.iter().map(part).collect()
    }

    /// The names of the columns that an index has beside its keys, as they are written in a definition.
    pub(super) fn included(&self, index: &IndexObject) -> Vec<String> {
        let columns = self.table.schema().columns();
        index.definition.included.iter().map(|at| quoted(&columns[*at].name)).collect()
    }

    /// What a definition says of these columns.
    fn include_clause(&self, index: &IndexObject) -> String {
        match &self.included(index)[..] {
            [] => String::new(),
            columns => format!(" INCLUDE ({})", columns.join(", ")),
        }
    }

    /// The parts as a statement has them that makes the index: with the operator classes that are not those of the types.
    fn classed_parts(&self, index: &IndexObject, style: Style) -> Vec<String> {
        let class = |at: usize| match index.class(at).filter(|class| class.is_told(index.columns[at].data_type)) {
            Some(class) => format!(" {}", class.told(&self.hidden)),
            None => String::new(),
        };
        let order = |at: usize| match index.definition.order(at) {
            PartOrder { descending: false, nulls_first: false } => "",
            PartOrder { descending: false, nulls_first: true } => " NULLS FIRST",
            PartOrder { descending: true, nulls_first: false } => " DESC NULLS LAST",
            PartOrder { descending: true, nulls_first: true } => " DESC",
        };
        let collation = |at: usize| {
            index.collation(at).map_or_else(String::new, |of| format!(" COLLATE {}", self.hidden.collation(of)))
        };
        let parts = self.parts(index, style).into_iter().enumerate();
        parts.map(|(at, written)| format!("{written}{}{}{}", collation(at), class(at), order(at))).collect()
    }

    /// The expressions among them, and the predicate.
    pub(super) fn expressions(&self, index: &IndexObject) -> (Option<String>, Option<String>) {
        let shown = |of: &IndexExpression| self.expression(of, Style::Plain, written);
        let expression = |part: &IndexPart| match part {
            IndexPart::Column(_) => None,
            IndexPart::Expression(expression) => Some(shown(expression)),
        };
        let expressions: Vec<String> = index.definition.parts.iter().filter_map(expression).collect();
        let expressions = Some(expressions.join(", ")).filter(|all| !all.is_empty());
        (expressions, index.definition.predicate.as_ref().map(shown))
    }

    /// An expression as `write` writes it; one that is not understood as the catalog has it.
    fn expression(&self, expression: &IndexExpression, style: Style, write: Write) -> String {
        let columns = self.table.schema().columns();
        let shown = parsed(&expression.text);
        self.qualified(shown.map_or_else(|_| expression.text.clone(), |expr| write(&expr, columns, style)))
    }

    /// An expression with the schemas that its names need.
    pub(super) fn qualified(&self, expression: String) -> String {
        self.hidden.expression(expression)
    }

    /// The statement that would make an index.
    pub(super) fn definition(&self, index: &IndexObject, style: Style) -> String {
        let unique = if index.is_unique { "UNIQUE " } else { "" };
        let (name, table) = (quoted(&index.name), quoted(&self.name));
        // As in PostgreSQL the schema is left out where it need not be said.
        let table = if style == Style::Pretty { table } else { format!("{}.{table}", quoted(schema_of(&self.key))) };
        let parts = self.classed_parts(index, style).join(", ");
        let predicate = index.definition.predicate.as_ref();
        let predicate =
            predicate.map_or_else(String::new, |of| format!(" WHERE {}", self.expression(of, style, written)));
        let nulls = if index.definition.nulls_equal { " NULLS NOT DISTINCT" } else { "" };
        let with = with_clause(index);
        let method = index.method().name();
        let included = self.include_clause(index);
        format!("CREATE {unique}INDEX {name} ON {table} USING {method} ({parts}){included}{nulls}{with}{predicate}")
    }

    /// The definition of the constraint that an index stands for.
    pub(super) fn constraint(&self, index: &IndexObject, style: Style) -> String {
        let parts = self.classed_parts(index, Style::Plain);
        let exclusion = &index.definition.exclusion;
        if !exclusion.is_empty() {
            let with = parts.iter().zip(exclusion).map(|(part, of)| format!("{part} WITH {}", of.operator()));
            let elements = with.collect::<Vec<_>>().join(", ");
            let predicate = index.definition.predicate.as_ref();
            let written = |of| self.expression(of, style, written);
            let predicate = predicate.map_or_else(String::new, |of| format!(" WHERE ({})", written(of)));
            let (method, included, with) = (index.method().name(), self.include_clause(index), with_clause(index));
            return format!("EXCLUDE USING {method} ({elements}){included}{with}{predicate}{}", deferral(index));
        }
        let kind = if index.is_primary { "PRIMARY KEY" } else { "UNIQUE" };
        let nulls = if index.definition.nulls_equal { " NULLS NOT DISTINCT" } else { "" };
        let (parts, included, with) = (parts.join(", "), self.include_clause(index), with_clause(index));
        format!("{kind}{nulls} ({parts}){included}{with}{}", deferral(index))
    }

    /// The index of the key over these columns.
    pub(super) fn key_over(&self, columns: &[usize]) -> Option<&IndexObject> {
        let is_over = |index: &&IndexObject| {
            let parts = &index.definition.parts;
            let is_there = |column: &usize| parts.contains(&IndexPart::Column(*column));
            index.is_unique
                && index.definition.predicate.is_none()
                && parts.len() == columns.len()
                && columns.iter().all(is_there)
        };
        self.indexes.iter().find(is_over)
    }

    /// The indexes that stand for constraints: the key and what is UNIQUE.
    pub(super) fn constraints(&self) -> impl Iterator<Item = &IndexObject> {
        self.indexes.iter().filter(|index| index.is_constraint)
    }
}
