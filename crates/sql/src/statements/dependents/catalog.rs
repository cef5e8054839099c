//! Where dependents are looked up, and what objects are called.
use engine::{DataType, FunctionResult, Referrer, Transaction, TypeDefinition, name_in_schema};

use super::{Dependent, Object};
use crate::error::Result;
use crate::interrupt::made_types::MadeFunction;
use crate::names::made_functions;
use crate::names::made_types::{definition, entry};
use crate::names::schemas::{beside, local, schema_of, spelled, told};
use crate::names::tables::Tables;
use crate::parsing::parse::{Places, parse_query};
use crate::planning::functions::users::called;
use crate::session::Session;
use crate::statements::schema_contents::Contents;
use crate::statements::view_users::{self, User};
use crate::statements::{
    foreign_keys, function_users, generated, held_types, sequence_users, view_columns, wrong_kind,
};
use crate::syntax::identifiers::quoted;

/// What there is, as a transaction sees it.
pub(super) struct Catalog<'a> {
    transaction: &'a Transaction,
    tables: Tables,
    views: Vec<User>,
    functions: Vec<(String, MadeFunction)>,
}

impl<'a> Catalog<'a> {
    pub(super) fn new(transaction: &'a Transaction, session: &Session) -> Result<Catalog<'a>> {
        let tables = Tables::of(&session.db, transaction).with_path(session.path());
        Ok(Catalog {
            transaction,
            tables,
            views: view_users::users(transaction)?,
            functions: function_users::all(transaction),
        })
    }

    /// Adds what depends on an object, each behind its own dependents.
    pub(super) fn follow(&self, object: &Object, seen: &mut Vec<Object>, found: &mut Vec<Dependent>) -> Result<()> {
        let mut direct = self.direct(object)?;
        direct.sort_by_key(|dependent| std::cmp::Reverse(dependent.made));
        for dependent in direct {
            if !seen.contains(&dependent.object) {
                seen.push(dependent.object.clone());
                self.follow(&dependent.object, seen, found)?;
                found.push(dependent);
            }
        }
        Ok(())
    }

    /// What depends on an object and on nothing between the two.
    fn direct(&self, object: &Object) -> Result<Vec<Dependent>> {
        let on = self.shown(object);
        match object {
            Object::Relation(name) => self.of_relation(name, &on),
            Object::Column(table, column) => self.of_column(table, column, &on),
            Object::Constraint(table, name) => self.of_constraint(table, name),
            Object::Index(name) => self.referring(
                foreign_keys::of_index(self.transaction, name)?,
                None,
                &format!("index {}", self.told(name)),
            ),
            Object::Function(key) => self.of_function(key, &on),
            Object::Type(known) => self.of_type(known, &on),
            Object::Schema(schema) => self.of_schema(schema, &on),
            Object::Collation(_) | Object::Default(..) => Ok(Vec::new()),
        }
    }

    /// What reads, fills from, refers to or returns rows of a relation.
    fn of_relation(&self, name: &str, on: &str) -> Result<Vec<Dependent>> {
        let Ok(table) = self.transaction.table(name) else {
            // A view that is newer than the snapshot.
            return self.reading(name, on);
        };
        if table.sequence().is_some() {
            return Ok([self.filled_from(name, on)?, self.reading(name, on)?].concat());
        }
        // The type of its rows is older than all others that depend on it.
        let is_of_rows = |function: &MadeFunction| function.definition.result == FunctionResult::RowOf(name.to_owned());
        let functions = self.functions.iter().filter(|(_, function)| is_of_rows(function));
        let on_type = format!("type {}", self.told(name));
        let function = |(key, _): &(String, MadeFunction)| Dependent {
            object: Object::Function(key.clone()),
            made: (0, self.made(key)),
            on: on_type.clone(),
        };
        let mut found: Vec<Dependent> = functions.map(function).collect();
        // What such a function gives are columns of it.
        for dependent in found.clone() {
            if let Object::Function(key) = &dependent.object {
                found.extend(self.of_function(key, on)?);
            }
        }
        if table.view().is_none() {
            for sequence in sequence_users::owned_by(self.transaction, name)? {
                let on_sequence = self.shown(&Object::Relation(sequence.clone()));
                found.extend(self.filled_from(&sequence, &on_sequence)?);
            }
            found.extend(self.referring(foreign_keys::of_table(self.transaction, name)?, Some(name), on)?);
        }
        found.extend(self.reading(name, on)?);
        Ok(found)
    }

    fn of_column(&self, name: &str, column: &str, on: &str) -> Result<Vec<Dependent>> {
        let table = self.transaction.table(name)?;
        let Some(at) = table.schema().position(column) else { return Ok(Vec::new()) };
        let defaults = self.transaction.settings(&table).defaults;
        let mut found = Vec::new();
        for reader in generated::readers_of(&table, &defaults, at)? {
            let object = Object::Column(name.to_owned(), table.schema().columns()[reader].name.clone());
            found.push(Dependent { object, made: (table.id(), forwards(reader)), on: on.to_owned() });
        }
        let owned = defaults.iter().filter(|default| default.column == at).flat_map(|default| &default.sequences);
        for sequence in owned {
            let on_sequence = self.shown(&Object::Relation(sequence.clone()));
            let filled = self.filled_from(sequence, &on_sequence)?.into_iter();
            found.extend(
                filled.filter(|dependent| dependent.object != Object::Default(name.to_owned(), column.to_owned())),
            );
        }
        found.extend(self.referring(foreign_keys::of_column(self.transaction, &table, at), Some(name), on)?);
        for user in &self.views {
            if view_columns::reads(user, &table, at)? {
                found.push(self.view(user, on));
            }
        }
        Ok(found)
    }

    /// What refers to the key that a constraint is.
    fn of_constraint(&self, name: &str, constraint: &str) -> Result<Vec<Dependent>> {
        let (table, index) = (self.transaction.table(name)?, beside(name, constraint));
        let on = format!("index {}", self.told(&index));
        if foreign_keys::has_primary_key(self.transaction, &table)
            && self.transaction.settings(&table).name_of_key(name) == index
        {
            return self.referring(foreign_keys::of_primary_key(self.transaction, &table)?, None, &on);
        }
        match self.transaction.index(&index) {
            Ok(_) => self.referring(foreign_keys::of_index(self.transaction, &index)?, None, &on),
            Err(_) => Ok(Vec::new()),
        }
    }

    /// The views that call a function.
    fn of_function(&self, key: &str, on: &str) -> Result<Vec<Dependent>> {
        let mut found = Vec::new();
        for user in &self.views {
            if called(&*parse_query(&user.query, Places::Unknown)?, &self.tables).iter().any(|called| called == key) {
                found.push(self.view(user, on));
            }
        }
        Ok(found)
    }

    /// What is of a type: columns of tables, and functions that take or give it; and the views that name it. A materialized view goes as a
    /// whole, whether its query names the type or a column of it.
    fn of_type(&self, known: &str, on: &str) -> Result<Vec<Dependent>> {
        let Some(of_type) = definition(&self.transaction.table(&entry(known))?).cloned() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (name, column) in held_types::columns_of(self.transaction, known, &of_type)? {
            let table = self.transaction.table(&name)?;
            let at = table.schema().position(&column).unwrap_or_default();
            let is_array = matches!(table.schema().columns()[at].data_type, DataType::Array(_));
            let (on, before) = if is_array { (format!("{on}[]"), 0) } else { (on.to_owned(), table.id()) };
            let object = match table.is_materialized() {
                true => Object::Relation(name),
                false => Object::Column(name, column),
            };
            found.push(Dependent { object, made: (before, backwards(at)), on });
        }
        if let TypeDefinition::Enum(labels) = &of_type {
            let takes = |function: &MadeFunction| {
                let types = function.types().into_iter().chain(function.value_type());
                types.into_iter().any(|data_type| held_types::is_of_enum(data_type, labels.of))
            };
            for (key, _) in self.functions.iter().filter(|(_, function)| takes(function)) {
                let made = (self.made(key), 0);
                found.push(Dependent { object: Object::Function(key.clone()), made, on: on.to_owned() });
            }
        }
        for user in view_users::naming_type(self.transaction, known)? {
            found.push(self.view(&user, on));
        }
        Ok(found)
    }

    fn of_schema(&self, schema: &str, on: &str) -> Result<Vec<Dependent>> {
        let contents = Contents::of(self.transaction, schema)?;
        let relations = contents.tables.iter().chain(&contents.views).chain(&contents.sequences);
        let relations = relations.map(|name| (self.made(name), Object::Relation(name.clone())));
        let types = contents.types.iter().map(|(known, _)| (self.made(&entry(known)), Object::Type(known.clone())));
        let functions = contents.functions.iter().map(|(key, _)| (self.made(key), Object::Function(key.clone())));
        let collations = contents.collations.iter().map(|name| (0, Object::Collation(name.clone())));
        let all = collations.chain(relations).chain(types).chain(functions);
        Ok(all.map(|(made, object)| Dependent { object, made: (made, 0), on: on.to_owned() }).collect())
    }

    /// The columns that are filled from a sequence.
    fn filled_from(&self, sequence: &str, on: &str) -> Result<Vec<Dependent>> {
        let users = sequence_users::users(self.transaction, sequence)?.into_iter();
        let default = |user: sequence_users::User| Dependent {
            made: (0, forwards(user.at)),
            object: Object::Default(user.table, user.column),
            on: on.to_owned(),
        };
        Ok(users.map(default).collect())
    }

    /// The views that read a relation.
    fn reading(&self, name: &str, on: &str) -> Result<Vec<Dependent>> {
        Ok(self.views.iter().filter(|user| user.reads(name)).map(|user| self.view(user, on)).collect())
    }

    fn view(&self, user: &User, on: &str) -> Dependent {
        Dependent { object: Object::Relation(user.name.clone()), made: (self.made(&user.name), 0), on: on.to_owned() }
    }

    /// Constraints of other tables than one.
    fn referring(&self, referrers: Vec<Referrer>, without: Option<&str>, on: &str) -> Result<Vec<Dependent>> {
        let others = referrers.into_iter().filter(|referrer| Some(&*referrer.table) != without).enumerate();
        let constraint = |(place, referrer): (usize, Referrer)| Dependent {
            made: (self.made(&referrer.table), forwards(place)),
            object: Object::Constraint(referrer.table, referrer.constraint),
            on: on.to_owned(),
        };
        Ok(others.map(constraint).collect())
    }

    /// When what the catalog knows by a name was made.
    fn made(&self, name: &str) -> u32 {
        self.transaction.table(name).map_or(0, |table| table.id())
    }

    /// A name with its schema, unless the session finds it without.
    fn told(&self, name: &str) -> String {
        told(name, self.is_found(name, &|name| name.to_owned()))
    }

    /// Whether the path of the session finds a name without its schema, where the catalog keeps names by these.
    fn is_found(&self, name: &str, kept: &dyn Fn(&str) -> String) -> bool {
        let is_there = |name: &String| {
            let kept = kept(name);
            self.tables.find(&kept).is_ok() || self.tables.has_index(&kept)
        };
        self.tables.path().names(local(name)).find(is_there).is_some_and(|first| first == name)
    }

    /// An object in words.
    pub(super) fn shown(&self, object: &Object) -> String {
        match object {
            Object::Relation(name) => {
                let view = self.views.iter().find(|view| view.name == *name);
                let kind = || self.transaction.table(name).map_or("table", |table| wrong_kind::kind(&table));
                format!("{} {}", view.map_or_else(kind, User::kind), self.told(name))
            }
            Object::Column(table, column) => {
                let kind = self.transaction.table(table).map_or("table", |table| wrong_kind::kind(&table));
                format!("column {} of {kind} {}", quoted(column), self.told(table))
            }
            Object::Constraint(table, name) => format!("constraint {} on table {}", quoted(name), self.told(table)),
            Object::Default(table, column) => {
                format!("default value for column {} of table {}", quoted(column), self.told(table))
            }
            Object::Index(name) => format!("index {}", self.told(name)),
            Object::Function(key) => {
                let function = self.functions.iter().find(|(known, _)| known == key);
                function.map_or_else(String::new, |(_, function)| format!("function {}", self.signature(function)))
            }
            Object::Type(known) => format!("type {}", told(known, self.is_found(known, &entry))),
            Object::Collation(name) => format!("collation {}", spelled(name)),
            Object::Schema(schema) => format!("schema {}", quoted(schema)),
        }
    }

    fn signature(&self, function: &MadeFunction) -> String {
        let types = function.types();
        let kept = |name: &str| made_functions::entry(schema_of(name), local(name), &types);
        let name = name_in_schema(&function.schema, &function.name);
        match self.is_found(&name, &kept) {
            true => function.signature(),
            false => format!("{}.{}", quoted(&function.schema), function.signature()),
        }
    }
}

/// A place among others of one age.
fn forwards(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Of columns of a table the last is told first.
fn backwards(column: usize) -> u32 {
    u32::MAX - forwards(column)
}
