//! `LOCK TABLE`: tables locked in a mode until the end of the transaction; of a view, what it reads as well.
use engine::{Table, Transaction};

use crate::error::{Result, SqlError};
use crate::names::schemas::local;
use crate::parsing::lock_statement::LockStatement;
use crate::parsing::parse::{Places, parse_query};
use crate::session::Session;
use crate::state::outcome::Command;
use crate::state::settings::Limit;
use crate::statements::view_text::reads;
use crate::statements::wrong_kind;

/// Runs it.
pub(crate) fn run(session: &mut Session, asked: &LockStatement) -> Result<Command> {
    let Some(mut block) = session.block.take() else {
        return Err(SqlError::new("25P01", "LOCK TABLE can only be used in transaction blocks"));
    };
    // A transaction sees what others have committed while it waited, if this is the first that it does.
    let is_first = block.begun().is_none() || block.has_only_locked();
    let limit = session.settings.limit(Limit::Lock);
    let done = block.transaction(&session.db, &session.token).and_then(|transaction| {
        transaction.set_lock_timeout(limit);
        for named in &asked.tables {
            lock(transaction, &named.name, asked, &mut Vec::new()).map_err(|error| error.at(named.position))?;
        }
        if is_first {
            transaction.renew_snapshot();
        }
        Ok(Command::new("LOCK TABLE"))
    });
    block.note_lock(is_first);
    session.block = Some(block);
    done
}

/// Locks a table or a view, and what a view reads; `around` are the views that are being read.
fn lock(transaction: &mut Transaction, name: &str, asked: &LockStatement, around: &mut Vec<u32>) -> Result<()> {
    let table = transaction.table(name)?;
    if !is_lockable(&table) {
        return Err(SqlError::new("42809", format!("\"{}\" is not a table or view", local(table.name()))));
    }
    let table = transaction.lock_table_in(name, asked.mode, asked.wait)?;
    let Some(view) = table.view() else { return Ok(()) };
    // One that reads itself, through others, is locked already.
    if around.contains(&table.id()) {
        return Ok(());
    }
    around.push(table.id());
    for read in reads(&*parse_query(&view.query, Places::Unknown)?) {
        // What it reads of the catalog is no table, and a sequence or a materialized view is not locked with it.
        if transaction.table(&read).is_ok_and(|table| is_lockable(&table)) {
            lock(transaction, &read, asked, around)?;
        }
    }
    around.pop();
    Ok(())
}

fn is_lockable(table: &Table) -> bool {
    matches!(wrong_kind::kind(table), "table" | "view")
}
