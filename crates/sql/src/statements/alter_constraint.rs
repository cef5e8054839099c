//! `ALTER TABLE`: adding, validating, renaming and dropping constraints.
//!
//! The table is this transaction's alone from the first of them on, so that no row comes that a new constraint has not seen.
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ConstraintUsingIndex, DropBehavior, Expr, Ident, TableConstraint,
    UniqueConstraint,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use engine::{IndexDefinition, PartOrder, Table};

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::names::schemas::{beside, local};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::comments::{self, About};
use crate::state::outcome::Command;
use crate::statements::add_key;
use crate::statements::altered::Pass;
use crate::statements::checks::{AskedCheck, Names, check_rows, names_of, rename_key};
use crate::statements::dependents::{Dependents, Object};
use crate::statements::foreign_keys::{self, AskedKey};
use crate::statements::generated;
use crate::statements::indexes::{self, Unique};
use crate::syntax::alter_tokens::CONSTRAINT;
use crate::syntax::dialect::SqlDialect;
use crate::syntax::source::Source;

/// What is to become of constraints.
pub(crate) enum Change<'a> {
    AddCheck(AskedCheck<'a>, NotValid),
    AddForeignKey(AskedKey<'a>, NotValid),
    AddUnique(&'a UniqueConstraint),
    /// A UNIQUE constraint of an index that is there.
    UseIndex(&'a ConstraintUsingIndex),
    Validate(&'a Ident),
    /// Whether a transaction may put it off, and does where it says nothing else.
    Defer(&'a Ident, (bool, bool)),
    Rename(&'a Ident, &'a Ident),
    Drop {
        name: &'a Ident,
        if_exists: bool,
        cascade: bool,
    },
}

impl Change<'_> {
    /// What PostgreSQL calls it.
    pub(crate) fn action(&self) -> &'static str {
        match self {
            Change::AddCheck(..) | Change::AddForeignKey(..) | Change::AddUnique(_) | Change::UseIndex(_) => {
                "ADD CONSTRAINT"
            }
            Change::Validate(_) => "VALIDATE CONSTRAINT",
            Change::Defer(..) => "ALTER CONSTRAINT",
            Change::Rename(..) => "RENAME CONSTRAINT",
            Change::Drop { .. } => "DROP CONSTRAINT",
        }
    }

    /// When it is done among the actions of a statement.
    pub(crate) fn pass(&self) -> Pass {
        match self {
            Change::Drop { .. } => Pass::Drop,
            Change::AddUnique(_) | Change::UseIndex(_) => Pass::Key,
            Change::AddCheck(..) | Change::AddForeignKey(..) => Pass::Constraint,
            Change::Validate(_) | Change::Defer(..) | Change::Rename(..) => Pass::Rest,
        }
    }
}

/// Whether the rows that are there are left alone.
type NotValid = bool;

/// The change of a constraint that an action asks for, if it asks for one.
///
/// # Errors
/// If it says what there is not, or contradicts itself.
pub(crate) fn change_of<'a>(operation: &'a AlterTableOperation, source: &Source) -> Result<Option<Change<'a>>> {
    Ok(Some(match operation {
        AlterTableOperation::AddConstraint { constraint: TableConstraint::Check(check), not_valid } => {
            Change::AddCheck(AskedCheck::read(check, None, source)?, *not_valid)
        }
        AlterTableOperation::AddConstraint { constraint: TableConstraint::ForeignKey(key), not_valid } => {
            Change::AddForeignKey(AskedKey::of_table(key, source)?, *not_valid)
        }
        AlterTableOperation::AddConstraint { constraint: TableConstraint::Unique(unique), not_valid: false } => {
            Change::AddUnique(unique)
        }
        AlterTableOperation::AddConstraint {
            constraint: TableConstraint::UniqueUsingIndex(index),
            not_valid: false,
        } => Change::UseIndex(index),
        AlterTableOperation::AlterColumn {
            column_name: name,
            op: AlterColumnOperation::SetDefault { value: Expr::Identifier(mark) },
        } if mark.value.starts_with(CONSTRAINT) => {
            Change::Defer(name, characteristics(&mark.value[CONSTRAINT.len()..])?)
        }
        AlterTableOperation::ValidateConstraint { name } => Change::Validate(name),
        AlterTableOperation::RenameConstraint { old_name, new_name } => Change::Rename(old_name, new_name),
        AlterTableOperation::DropConstraint { if_exists, name, drop_behavior } => {
            let cascade = *drop_behavior == Some(DropBehavior::Cascade);
            Change::Drop { name, if_exists: *if_exists, cascade }
        }
        _ => return Ok(None),
    }))
}

/// Changes a constraint of a table, which the statement has for itself.
pub(crate) fn apply(
    session: &Session,
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    change: &Change<'_>,
    command: Command,
    source: &Source,
) -> Result<Command> {
    if matches!(change, Change::AddCheck(..) | Change::AddForeignKey(..) | Change::AddUnique(_)) {
        // A new constraint has no comment, whatever had its name before.
        let known = names_of(write.transaction, table, name);
        comments::keep_constraints(write.transaction, name, &known)?;
    }
    match change {
        Change::AddCheck(asked, not_valid) => {
            add_check(session, write, (table, name), (asked, *not_valid), source)?;
        }
        Change::AddForeignKey(asked, not_valid) => {
            add_foreign_key(write, (table, name), (asked, *not_valid), source)?;
        }
        Change::AddUnique(unique) => {
            if let Some(given) = unique.name.as_ref().map(fold) {
                let settings = write.transaction.settings(table);
                let mut names = settings.checks.iter().map(|check| &check.name);
                if names.any(|name| *name == given) || settings.foreign_keys.iter().any(|key| key.name == given) {
                    Names::of(write.transaction, table, name).take(given)?;
                }
            }
            Unique::of_table(unique, source)?.create(write.transaction, table, source)?;
        }
        Change::UseIndex(asked) => return use_index(write, (table, name), asked, command, source),
        Change::Validate(constraint) => validate(session, write, (table, name), constraint, source)?,
        Change::Defer(constraint, deferral) => defer(write, (table, name), (constraint, *deferral), source)?,
        Change::Rename(constraint, to) => rename(write, (table, name), (constraint, to), source)?,
        Change::Drop { name: constraint, if_exists, cascade } => {
            return match found(write, (table, name), constraint, source) {
                Ok(found) => drop_found(session, write, (table, name), found, (constraint, *cascade), command),
                Err(error) if *if_exists && error.sqlstate == "42704" => {
                    Ok(command.with_notice(format!("{}, skipping", error.message)))
                }
                Err(error) => Err(error),
            };
        }
    }
    Ok(command)
}

/// Adds a condition, which the rows that are there must meet as well, but for NOT VALID.
pub(crate) fn add_check(
    session: &Session,
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    (asked, not_valid): (&AskedCheck<'_>, NotValid),
    source: &Source,
) -> Result<()> {
    let mut names = Names::of(write.transaction, table, name);
    let mut check = asked.define((name, table.schema().columns()), &mut names, source)?;
    check.validated = !not_valid;
    if check.validated {
        check_rows(session, write, (table, name), &check).map_err(|error| error.at(asked.position(source)))?;
    }
    let mut checks = write.transaction.settings(table).checks;
    checks.push(check);
    Ok(write.transaction.set_checks(name, checks)?)
}

/// Adds a foreign key, which holds for the rows that are there as well, but for NOT VALID.
pub(crate) fn add_foreign_key(
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    (asked, not_valid): (&AskedKey<'_>, NotValid),
    source: &Source,
) -> Result<()> {
    let mut names = Names::of(write.transaction, table, name);
    let mut key = asked.define(write.transaction, (table, name), &mut names, source)?;
    key.validated = !not_valid;
    generated::check_key(table, &write.transaction.settings(table).defaults, &key)?;
    let mut keys = write.transaction.settings(table).foreign_keys;
    keys.push(key.clone());
    write.transaction.set_foreign_keys(name, keys)?;
    if key.validated {
        write.transaction.check_references(table, &key)?;
    }
    Ok(())
}

/// Makes an index that is there that of a UNIQUE constraint, which has its name.
fn use_index(
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    asked: &ConstraintUsingIndex,
    command: Command,
    source: &Source,
) -> Result<Command> {
    if asked.characteristics.is_some() {
        return Err(SqlError::unsupported("DEFERRABLE of an index that is there").at(source.find_word("deferrable")));
    }
    let (index_name, at) = (fold(&asked.index_name), source.start(asked.index_name.span));
    let indexes = write.transaction.indexes(table);
    let found = indexes.iter().find(|index| local(&index.definition().name) == index_name);
    let Some(definition) = found.map(engine::Index::definition) else {
        return Err(SqlError::new("42704", format!("index \"{index_name}\" does not exist")).at(at));
    };
    let refused = match definition {
        of if of.is_constraint => Some(("55000", "is already associated with a constraint")),
        of if !of.unique => Some(("42809", "is not a unique index")),
        of if of.predicate.is_some() => Some(("42809", "is a partial index")),
        of if of.is_computed() => Some(("42809", "contains expressions")),
        _ => None,
    };
    if let Some((sqlstate, why)) = refused {
        return Err(SqlError::new(sqlstate, format!("index \"{index_name}\" {why}")).at(at));
    }
    // A constraint stands for no order but that of the types.
    let is_plain = |at: &usize| definition.named_class(*at).is_none() && definition.order(*at) == PartOrder::default();
    if let Some(other) = (0..definition.parts.len()).find(|at| !is_plain(at)) {
        let message =
            format!("index \"{index_name}\" column number {} does not have default sorting behavior", other + 1);
        let detail = "Cannot create a primary key or unique constraint using such an index.";
        return Err(SqlError::new("42809", message).detail(detail));
    }
    let to = asked.name.as_ref().map_or_else(|| index_name.clone(), fold);
    let definition = IndexDefinition { is_constraint: true, ..definition.clone() };
    indexes::rename(write.transaction, name, &definition, beside(name, &to))?;
    Ok(match to == index_name {
        true => command,
        false => command.with_notice(format!(
            "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{index_name}\" to \"{to}\""
        )),
    })
}

/// What these words say of when a constraint is looked at.
fn characteristics(words: &str) -> Result<(bool, bool)> {
    let source = &Source::new(words);
    let tokens = source.tokens()?;
    let dialect = SqlDialect::of(&tokens);
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    let read = parser.parse_constraint_characteristics().and_then(|read| {
        parser.expect_token(&Token::EOF)?;
        Ok(read)
    });
    let placeless = |error: SqlError| SqlError { position: None, ..error };
    let read = read.map_err(|error| placeless(source.parser_error(error)))?;
    foreign_keys::deferral(read.as_ref(), source).map_err(placeless)
}

/// Changes when a foreign key is looked at.
fn defer(
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    (constraint, (deferrable, deferred)): (&Ident, (bool, bool)),
    source: &Source,
) -> Result<()> {
    let Found::ForeignKey(at) = found(write, (table, name), constraint, source)? else {
        let constraint = fold(constraint);
        let message = format!("constraint \"{constraint}\" of relation \"{name}\" is not a foreign key constraint");
        return Err(SqlError::new("42809", message));
    };
    let mut keys = write.transaction.settings(table).foreign_keys;
    (keys[at].deferrable, keys[at].deferred) = (deferrable, deferred);
    Ok(write.transaction.set_foreign_keys(name, keys)?)
}

/// Looks at the rows that were there before a constraint.
fn validate(
    session: &Session,
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    constraint: &Ident,
    source: &Source,
) -> Result<()> {
    let mut settings = write.transaction.settings(table);
    match found(write, (table, name), constraint, source)? {
        Found::Check(at) if !settings.checks[at].validated => {
            check_rows(session, write, (table, name), &settings.checks[at])?;
            settings.checks[at].validated = true;
            Ok(write.transaction.set_checks(name, settings.checks)?)
        }
        Found::ForeignKey(at) if !settings.foreign_keys[at].validated => {
            settings.foreign_keys[at].validated = true;
            let key = settings.foreign_keys[at].clone();
            write.transaction.set_foreign_keys(name, settings.foreign_keys)?;
            Ok(write.transaction.check_references(table, &key)?)
        }
        Found::Check(_) | Found::ForeignKey(_) => Ok(()),
        Found::Unique | Found::Key => {
            let constraint = fold(constraint);
            let message =
                format!("constraint \"{constraint}\" of relation \"{name}\" is not a foreign key or check constraint");
            Err(SqlError::new("42809", message))
        }
    }
}

fn rename(
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    (constraint, to): (&Ident, &Ident),
    source: &Source,
) -> Result<()> {
    let mut settings = write.transaction.settings(table);
    let found = found(write, (table, name), constraint, source)?;
    let new = || Names::of(write.transaction, table, name).take(fold(to));
    let (from, to_name) = (fold(constraint), fold(to));
    let about = (About::Constraint(name, &from), About::Constraint(name, &to_name));
    match found {
        Found::Check(at) => {
            settings.checks[at].name = new()?;
            write.transaction.set_checks(name, settings.checks)?;
            comments::rename_one(write.transaction, about.0, Some(about.1))
        }
        Found::ForeignKey(at) => {
            settings.foreign_keys[at].name = new()?;
            write.transaction.set_foreign_keys(name, settings.foreign_keys)?;
            comments::rename_one(write.transaction, about.0, Some(about.1))
        }
        Found::Unique => {
            let index = write.transaction.index(&beside(name, &from))?.1;
            indexes::rename(write.transaction, name, index.definition(), beside(name, &to_name))
        }
        Found::Key => {
            let (index, taken) = (beside(name, &to_name), format!("relation \"{to_name}\" already exists"));
            if write.transaction.table(&index).is_ok() || write.transaction.index(&index).is_ok() {
                return Err(SqlError::new("42P07", taken));
            }
            rename_key(write.transaction, name, to_name)
        }
    }
}

fn drop_found(
    session: &Session,
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    found: Found,
    (constraint, cascade): (&Ident, bool),
    command: Command,
) -> Result<Command> {
    let mut settings = write.transaction.settings(table);
    comments::rename_one(write.transaction, About::Constraint(name, &fold(constraint)), None)?;
    match found {
        Found::Check(at) => {
            settings.checks.remove(at);
            write.transaction.set_checks(name, settings.checks)?;
        }
        Found::ForeignKey(at) => {
            settings.foreign_keys.remove(at);
            write.transaction.set_foreign_keys(name, settings.foreign_keys)?;
        }
        Found::Unique => {
            let index = beside(name, &fold(constraint));
            let dropped = [Object::Constraint(name.to_owned(), fold(constraint))];
            let dependents = Dependents::of(write.transaction, session, &dropped)?;
            let command = dependents.tell(cascade, command)?;
            dependents.drop_along(write.transaction)?;
            write.transaction.drop_index(&index)?;
            return Ok(command);
        }
        Found::Key => return add_key::drop_key(session, write, (table, name), cascade, command),
    }
    Ok(command)
}

/// A constraint that is there.
enum Found {
    /// that of this place in the settings
    Check(usize),
    /// likewise
    ForeignKey(usize),
    Unique,
    Key,
}

/// Refuses a name that no constraint of a table has.
pub(super) fn check_there(write: &Write<'_>, of: (&Table, &str), constraint: &Ident, source: &Source) -> Result<()> {
    found(write, of, constraint, source).map(|_| ())
}

fn found(write: &Write<'_>, (table, name): (&Table, &str), constraint: &Ident, source: &Source) -> Result<Found> {
    let (wanted, settings) = (fold(constraint), write.transaction.settings(table));
    let check = settings.checks.iter().position(|check| check.name == wanted).map(Found::Check);
    let key = || settings.foreign_keys.iter().position(|key| key.name == wanted).map(Found::ForeignKey);
    if let Some(found) = check.or_else(key) {
        return Ok(found);
    }
    let indexes = write.transaction.indexes(table);
    let is_meant =
        |index: &engine::Index| index.definition().is_constraint && local(&index.definition().name) == wanted;
    match () {
        () if indexes.iter().any(is_meant) => Ok(Found::Unique),
        () if table.primary_index().is_some() && wanted == local(&settings.name_of_key(name)) => Ok(Found::Key),
        () => {
            let message = format!("constraint \"{wanted}\" of relation \"{name}\" does not exist");
            Err(SqlError::new("42704", message).at(source.start(constraint.span)))
        }
    }
}
