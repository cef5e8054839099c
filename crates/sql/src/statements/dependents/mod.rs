//! What depends on what is dropped: the refusal, the notice of `CASCADE`, and the objects that go along, in PostgreSQL's order and words.
//!
//! Texts of the catalog name what they use, so that dependents are looked up: views in the queries of all views, sequences in all
//! defaults, and so on. From each object that is dropped they are followed as deep as they go: of an object first those of what was made
//! last, each before the object itself. Read backwards, which is how they are told, each object is followed by its own dependents, the
//! oldest first. What belongs to an object that goes, such as a constraint of a table, is not told.
mod catalog;

use engine::Transaction;

use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::state::outcome::{Command, Notice};
use crate::statements::{foreign_keys, function_users, sequence_users, view_users};
use catalog::Catalog;

/// What can be dropped, or depend on that; by names of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// A table, a view, materialized or not, or a sequence.
    Relation(String),
    /// Of a table.
    Column(String, String),
    /// Of a table.
    Constraint(String, String),
    /// What fills a column of a table.
    Default(String, String),
    Index(String),
    /// By the name under which the engine keeps it.
    Function(String),
    Type(String),
    Collation(String),
    Schema(String),
}

impl Object {
    /// Its name, if it is a schema.
    pub(crate) fn schema(&self) -> Option<&str> {
        match self {
            Object::Schema(schema) => Some(schema),
            _ => None,
        }
    }

    /// The table that it is a part of.
    fn owner(&self) -> Option<&str> {
        match self {
            Object::Column(table, _) | Object::Constraint(table, _) | Object::Default(table, _) => Some(table),
            _ => None,
        }
    }
}

/// An object that goes with another one.
#[derive(Clone)]
struct Dependent {
    object: Object,
    /// When it was made: later ones have larger numbers.
    made: (u32, u32),
    /// What it depends on, in words.
    on: String,
}

/// What depends on objects that are dropped.
pub(crate) struct Dependents {
    dropped: Vec<String>,
    /// In the order in which they are told, each with its words.
    found: Vec<(Dependent, String)>,
}

/// Lines of a notice at most, as in PostgreSQL.
const LINES_MAX: usize = 100;

impl Dependents {
    /// Finds what depends on objects that are dropped together. Others can't make views of them from here on.
    ///
    /// # Errors
    /// If a text of the catalog is not understood.
    pub(crate) fn of(transaction: &mut Transaction, session: &Session, dropped: &[Object]) -> Result<Dependents> {
        for object in dropped {
            if let Object::Relation(name) = object {
                transaction.lock_table(name)?;
            }
        }
        let catalog = Catalog::new(transaction, session)?;
        let (mut seen, mut found) = (dropped.to_vec(), Vec::new());
        for object in dropped {
            catalog.follow(object, &mut seen, &mut found)?;
        }
        let belongs = |object: &Object| {
            object.owner().is_some_and(|table| seen.iter().any(|other| *other == Object::Relation(table.to_owned())))
        };
        found.retain(|dependent: &Dependent| !belongs(&dependent.object));
        found.reverse();
        let with_words = |dependent: Dependent| {
            let words = catalog.shown(&dependent.object);
            (dependent, words)
        };
        let found = found.into_iter().map(with_words).collect();
        Ok(Dependents { dropped: dropped.iter().map(|object| catalog.shown(object)).collect(), found })
    }

    /// Refuses that anything goes along, unless `cascade` is said; then what goes is told.
    ///
    /// # Errors
    /// 2BP01.
    pub(crate) fn tell(&self, cascade: bool, command: Command) -> Result<Command> {
        let words = self.found.iter().map(|(dependent, words)| (words, &dependent.on));
        match (&self.found[..], cascade) {
            ([], _) => Ok(command),
            (_, false) => Err(self.refused(words.map(|(words, on)| format!("{words} depends on {on}")).collect())),
            ([(_, only)], true) => Ok(command.with_notice(format!("drop cascades to {only}"))),
            (many, true) => {
                let notice = Notice::from(format!("drop cascades to {} other objects", many.len()));
                let lines = words.map(|(words, _)| format!("drop cascades to {words}")).collect();
                Ok(command.with_notice(Notice { detail: Some(joined(lines)), ..notice }))
            }
        }
    }

    fn refused(&self, lines: Vec<String>) -> SqlError {
        let message = match &self.dropped[..] {
            [only] => format!("cannot drop {only} because other objects depend on it"),
            _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
        };
        let error = SqlError::new("2BP01", message).detail(joined(lines));
        error.hint("Use DROP ... CASCADE to drop the dependent objects too.")
    }

    /// Drops the views, functions, constraints and defaults that go along, those that depend on others before these.
    pub(crate) fn drop_along(&self, transaction: &mut Transaction) -> Result<()> {
        let views = view_users::users(transaction)?;
        for (dependent, _) in self.found.iter().rev() {
            match &dependent.object {
                Object::Relation(name) => {
                    let view = views.iter().find(|view| view.name == *name);
                    view.map_or(Ok(()), |view| view.drop(transaction))?;
                }
                Object::Function(known) => function_users::drop(transaction, known)?,
                Object::Constraint(table, constraint) => foreign_keys::drop(transaction, table, constraint)?,
                Object::Default(table, column) => sequence_users::clear_default(transaction, table, column)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The tables and sequences that go along, and the views, which [`drop_along`](Self::drop_along) drops.
    pub(crate) fn relations(&self) -> impl Iterator<Item = &str> {
        self.found.iter().filter_map(|(dependent, _)| match &dependent.object {
            Object::Relation(name) => Some(&**name),
            _ => None,
        })
    }

    /// The types that go along.
    pub(crate) fn types(&self) -> impl Iterator<Item = &str> {
        self.found.iter().filter_map(|(dependent, _)| match &dependent.object {
            Object::Type(known) => Some(&**known),
            _ => None,
        })
    }

    /// The collations that go along.
    pub(crate) fn collations(&self) -> impl Iterator<Item = &str> {
        self.found.iter().filter_map(|(dependent, _)| match &dependent.object {
            Object::Collation(name) => Some(&**name),
            _ => None,
        })
    }

    /// The columns that go along, each with its table.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&str, &str)> {
        self.found.iter().filter_map(|(dependent, _)| match &dependent.object {
            Object::Column(table, column) => Some((&**table, &**column)),
            _ => None,
        })
    }
}

/// Lines as a detail has them.
fn joined(lines: Vec<String>) -> String {
    let more = lines.len().saturating_sub(LINES_MAX);
    let mut lines: Vec<String> = lines.into_iter().take(LINES_MAX).collect();
    if more > 0 {
        lines.push(format!(
            "and {more} other {} (see server log for list)",
            if more == 1 { "object" } else { "objects" }
        ));
    }
    lines.join("\n")
}
