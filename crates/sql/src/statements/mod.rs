//! The statements that run on a session: changes of rows and of the catalog, `COPY`, locks, settings.
//!
//! Imports sessions and below; only `dispatch` imports it.
pub(crate) mod add_key;
pub(crate) mod alter_column;
pub(crate) mod alter_columns;
pub(crate) mod alter_constraint;
mod alter_domain;
mod alter_index;
pub(crate) mod alter_passes;
pub(crate) mod alter_schema;
pub(crate) mod alter_table;
pub(crate) mod altered;
pub(crate) mod arbiters;
pub(crate) mod change;
pub(crate) mod changed_rows;
pub(crate) mod checks;
pub(crate) mod columns;
pub(crate) mod comment;
pub(crate) mod composed;
pub(crate) mod constants;
pub(crate) mod copy;
pub(crate) mod create_as;
pub(crate) mod ddl;
pub(crate) mod dependents;
mod domain_rules;
pub(crate) mod domains;
pub(crate) mod drop_schema;
mod exclusion;
pub(crate) mod explain;
pub(crate) mod extensions;
pub(crate) mod filling;
pub(crate) mod foreign_keys;
pub(crate) mod function_body;
pub(crate) mod function_run;
pub(crate) mod function_users;
pub(crate) mod functions;
pub(crate) mod generated;
mod grant;
mod held_collations;
pub(crate) mod held_types;
pub(crate) mod identity;
pub(crate) mod index_columns;
pub(crate) mod index_options;
mod index_parts;
mod indexes;
pub(crate) mod insert;
pub(crate) mod insert_few;
pub(crate) mod join;
mod join_row;
pub(crate) mod kept_constraints;
pub(crate) mod like;
mod lock_table;
pub(crate) mod locking;
pub(crate) mod made_collations;
pub(crate) mod made_types;
pub(crate) mod materialized;
pub(crate) mod materialized_rows;
pub(crate) mod on_conflict;
pub(crate) mod operator_classes;
pub(crate) mod owner;
mod passing;
pub(crate) mod point;
pub(crate) mod rename_type;
pub(crate) mod returning;
pub(crate) mod schema_contents;
pub(crate) mod schemas;
pub(crate) mod search;
pub(crate) mod search_changes;
mod search_nearest;
pub(crate) mod sequence_users;
pub(crate) mod sequences;
pub(crate) mod set;
pub(crate) mod set_config;
mod set_row;
pub(crate) mod set_schema;
pub(crate) mod table_rows;
pub(crate) mod target_factor;
mod told_methods;
pub(crate) mod upsert;
pub(crate) mod vacuum;
pub(crate) mod values_list;
pub(crate) mod view_columns;
mod view_joins;
pub(crate) mod view_target;
pub(crate) mod view_text;
pub(crate) mod view_users;
pub(crate) mod views;
mod words;
pub(crate) mod wrong_kind;

use datafusion::sql::sqlparser::ast::{AlterTypeOperation, ObjectType, Statement};

use crate::error::{Result, SqlError};
use crate::parsing::OwnStatement;
use crate::session::Session;
use crate::state::outcome::{Command, Outcome};
use crate::syntax::source::Source;
use copy::input::CopyInput;

/// Runs a statement of our own syntax.
pub(crate) fn run_own(
    session: &mut Session,
    own: OwnStatement,
    source: &Source,
    input: &mut dyn CopyInput,
) -> Result<Outcome> {
    match own {
        OwnStatement::Copy(statement) => copy::run(session, statement, source, input),
        OwnStatement::Lock(asked) => Ok(lock_table::run(session, &asked)?.into()),
        OwnStatement::AlterDatabase(alter) => Ok(set::alter_database(session, &alter)?.into()),
        OwnStatement::Maintenance(asked) => Ok(vacuum::answer(&asked, session, source)?.into()),
        OwnStatement::Sequence(statement) => Ok(sequences::run(session, &statement)?.into()),
        OwnStatement::Cursor(_) | OwnStatement::Do(_) => {
            Err(SqlError::new("XX000", "a cursor or a block is no statement of its own"))
        }
        OwnStatement::SetSchema(asked) => Ok(set_schema::run(session, &asked)?.into()),
        OwnStatement::Owner(asked) => Ok(owner::run(session, &asked, source)?.into()),
        OwnStatement::AlterIndex(asked) => Ok(alter_index::run(session, &asked, source)?.into()),
        OwnStatement::Domain(statement) => Ok(domains::run(session, &statement, source)?.into()),
        OwnStatement::View(statement) => Ok(views::run(session, &statement, source)?.into()),
        OwnStatement::Function(statement) => Ok(functions::run(session, &statement, source)?.into()),
        OwnStatement::Grant(grant) => Ok(grant::run(session, &grant, source)?.into()),
        OwnStatement::Extension(statement) => Ok(extensions::run(session, &statement, source)?.into()),
        OwnStatement::Comment(statement) => Ok(comment::run_on_part(session, &statement, source)?.into()),
        OwnStatement::Materialized(statement) => Ok(materialized::run(session, &statement, source)?.into()),
    }
}

/// Runs a statement of the library's syntax that is no query.
pub(crate) fn run(session: &mut Session, statement: Statement, source: &Source) -> Result<Outcome> {
    match statement {
        Statement::Insert(statement) => insert::run(session, &statement, source),
        Statement::Update(statement) => change::update(session, &statement, source),
        Statement::Delete(statement) => change::delete(session, &statement, source),
        Statement::Set(set) => Ok(session.set(&set)?.into()),
        Statement::Reset(reset) => {
            let change = session.settings.reset(&reset.reset)?;
            session.finish_set(change)?;
            Ok(Command::new("RESET").into())
        }
        Statement::ShowVariable { variable } => Ok(Outcome::Rows(session.show(&variable)?)),
        Statement::CreateTable(create) if create.query.is_some() => Ok(create_as::run(session, create, source)?.into()),
        Statement::CreateTable(create) => Ok(ddl::create_table(session, &create, source)?.into()),
        Statement::CreateIndex(create) => Ok(indexes::create(session, &create, source)?.into()),
        Statement::AlterIndex { name, operation } => Ok(indexes::alter(session, &name, &operation, source)?.into()),
        Statement::AlterTable(alter) => Ok(alter_table::run(session, &alter, source)?.into()),
        Statement::Comment { .. } => Ok(comment::run(session, &statement, source)?.into()),
        Statement::AlterSchema(alter) => Ok(alter_schema::run(session, &alter, source)?.into()),
        Statement::CreateSchema { .. } => Ok(schemas::create(session, &statement, source)?.into()),
        Statement::Drop { object_type: ObjectType::Schema, .. } => {
            Ok(drop_schema::drop(session, &statement, source)?.into())
        }
        Statement::CreateCollation(create) => Ok(made_collations::create(session, &create, source)?.into()),
        Statement::Drop { object_type: ObjectType::Collation, .. } => {
            Ok(made_collations::drop(session, &statement, source)?.into())
        }
        Statement::CreateType { .. } => Ok(made_types::create(session, &statement, source)?.into()),
        Statement::AlterType(alter) => Ok(match &alter.operation {
            AlterTypeOperation::Rename(rename) => {
                rename_type::run(session, "ALTER TYPE", (&alter.name, &rename.new_name), source)?
            }
            _ => made_types::alter(session, &alter, source)?,
        }
        .into()),
        Statement::Drop { object_type: ObjectType::Type, .. } => {
            Ok(made_types::drop(session, &statement, source)?.into())
        }
        Statement::Drop { .. } => Ok(ddl::drop(session, &statement, source)?.into()),
        Statement::Truncate(truncate) => Ok(ddl::truncate(session, &truncate, source)?.into()),
        other => Err(SqlError::unsupported(command_of(&other))),
    }
}

/// The words with which a statement that has no place here starts.
fn command_of(statement: &Statement) -> String {
    let text = statement.to_string();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    words.join(" ").trim_end_matches(['(', ';', ',']).to_uppercase()
}
