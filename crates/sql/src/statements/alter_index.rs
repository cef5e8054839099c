//! `ALTER INDEX ... SET` and `RESET`: options are looked at as those of `CREATE INDEX` are. What says how PostgreSQL fills its pages
//! changes nothing here; the budget of an index is that of its making.
use engine::{IndexMethod, Transaction};

use crate::error::{Result, SqlError};
use crate::names::schemas::local;
use crate::names::{position, table_name};
use crate::parsing::alter_index::AlterIndex;
use crate::session::Session;
use crate::state::outcome::Command;
use crate::statements::checks::table_of_key;
use crate::statements::index_options;
use crate::syntax::source::Source;

/// Runs it.
pub(crate) fn run(session: &mut Session, asked: &AlterIndex, source: &Source) -> Result<Command> {
    let (name, at) = (table_name(&asked.name, source)?, position(&asked.name, source));
    let command = Command::new("ALTER INDEX");
    session.write(&command.tag.clone(), |_, write| match method(write.transaction, &name) {
        Ok(Some(_)) if asked.is_reset => index_options::check_reset(&asked.options, source).map(|()| command.clone()),
        Ok(Some(method)) => index_options::check_set(&asked.options, method, source).map(|()| command.clone()),
        Ok(None) if asked.if_exists => {
            let notice = format!("relation \"{}\" does not exist, skipping", local(&name));
            Ok(command.clone().with_notice(notice))
        }
        Ok(None) => Err(SqlError::new("42P01", format!("relation \"{}\" does not exist", local(&name))).at(at)),
        Err(error) => Err(error),
    })
}

/// The method of an index, if there is one of this name.
///
/// # Errors
/// What has the name is no index.
fn method(transaction: &Transaction, name: &str) -> Result<Option<IndexMethod>> {
    if let Ok((_, index)) = transaction.index(name) {
        return Ok(Some(index.definition().method));
    }
    if table_of_key(transaction, name)?.is_some() {
        return Ok(Some(IndexMethod::Btree));
    }
    match transaction.table(name) {
        Ok(_) => Err(SqlError::new("42809", format!("\"{}\" is not an index", local(name)))),
        Err(_) => Ok(None),
    }
}
