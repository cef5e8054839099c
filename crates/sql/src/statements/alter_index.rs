//! `ALTER INDEX ... SET` and `RESET`: options are looked at as those of `CREATE INDEX` are. What says how PostgreSQL fills its pages
//! is told from then on; the budget of an index is that of its making.
use datafusion::sql::sqlparser::ast::Expr;
use engine::{IndexDefinition, IndexMethod, Transaction};

use crate::error::{Result, SqlError};
use crate::names::schemas::local;
use crate::names::{position, table_name};
use crate::parsing::alter_index::AlterIndex;
use crate::session::Session;
use crate::state::outcome::Command;
use crate::statements::checks::table_of_key;
use crate::statements::{index_options, indexes};
use crate::syntax::source::Source;

/// Runs it.
pub(crate) fn run(session: &mut Session, asked: &AlterIndex, source: &Source) -> Result<Command> {
    let (name, at) = (table_name(&asked.name, source)?, position(&asked.name, source));
    let command = Command::new("ALTER INDEX");
    session.write(&command.tag.clone(), |_, write| match find(write.transaction, &name) {
        Ok(Some(found)) => change(write.transaction, found, asked, source).map(|()| command.clone()),
        Ok(None) if asked.if_exists => {
            let notice = format!("relation \"{}\" does not exist, skipping", local(&name));
            Ok(command.clone().with_notice(notice))
        }
        Ok(None) => Err(SqlError::new("42P01", format!("relation \"{}\" does not exist", local(&name))).at(at)),
        Err(error) => Err(error),
    })
}

/// What has the name of an index.
enum Found {
    /// An index, of the table of this name.
    Index(String, Box<IndexDefinition>),
    /// The primary key of a table, which keeps no options.
    Key,
}

/// # Errors
/// What has the name is no index.
fn find(transaction: &Transaction, name: &str) -> Result<Option<Found>> {
    if let Ok((table, index)) = transaction.index(name) {
        return Ok(Some(Found::Index(table, Box::new(index.definition().clone()))));
    }
    if table_of_key(transaction, name)?.is_some() {
        return Ok(Some(Found::Key));
    }
    match transaction.table(name) {
        Ok(_) => Err(SqlError::new("42809", format!("\"{}\" is not an index", local(name)))),
        Err(_) => Ok(None),
    }
}

/// Changes what is said of an index, which is made anew where that makes a difference.
fn change(transaction: &mut Transaction, found: Found, asked: &AlterIndex, source: &Source) -> Result<()> {
    let changed = |of: &mut Vec<(String, String)>, options: &[Expr], method| match asked.is_reset {
        true => index_options::reset(of, options, source),
        false => index_options::set(of, options, method, source),
    };
    match found {
        Found::Key => changed(&mut Vec::new(), &asked.options, IndexMethod::Btree),
        Found::Index(table, mut definition) => {
            let (before, method) = (definition.options.clone(), definition.told_method());
            changed(&mut definition.options, &asked.options, method)?;
            if definition.options == before {
                return Ok(());
            }
            let name = definition.name.clone();
            indexes::rename(transaction, &table, &definition, name)
        }
    }
}
