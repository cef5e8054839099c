//! `ALTER TABLE`: the retention of a table, its name, the defaults of its columns, constraints, whether foreign keys are looked at, and a
//! primary key for a table without one.
//! Every other is refused.
use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, Expr, Ident, ObjectName, RenameTableNameKind, SqlOption,
};
use engine::{Retention, TableSettings, Transaction, schema_and_name};

use crate::error::{Result, SqlError};
use crate::names::schemas::{beside, local};
use crate::names::{fold, position, table_name};
use crate::parsing::table_options;
use crate::session::Session;
use crate::state::comments;
use crate::state::outcome::Command;
use crate::statements::altered::{altered, altered_table};
use crate::statements::{alter_columns, alter_passes, function_users, sequence_users, view_users};
use crate::syntax::alter_tokens;
use crate::syntax::source::Source;

/// Runs `ALTER TABLE`, as far as there is one.
pub(crate) fn run(session: &mut Session, alter: &AlterTable, source: &Source) -> Result<Command> {
    let options = match &alter.operations[..] {
        [AlterTableOperation::SetOptionsParens { options }] => options,
        [AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(to) }] => {
            return rename(session, alter, to, source);
        }
        [AlterTableOperation::RenameColumn { old_column_name: from, new_column_name: to }] => {
            return alter_columns::rename(session, alter, (from, to), source);
        }
        [AlterTableOperation::DisableTrigger { name }] => return triggers(session, alter, (name, true), source),
        [AlterTableOperation::EnableTrigger { name }] => return triggers(session, alter, (name, false), source),
        operations => {
            return match alter_passes::actions(operations, source)? {
                Some(actions) => alter_passes::run(session, alter, actions, source),
                None => Err(not_there(alter)),
            };
        }
    };
    session.write("ALTER TABLE", |_, write| {
        let name = table_name(&alter.name, source)?;
        let table = match altered(write.transaction, &name, alter, source)? {
            Ok(table) => table,
            Err(skipped) => return Ok(skipped),
        };
        let settings = write.transaction.settings(&table);
        let Some(retention) = asked_retention(settings, options, source)? else {
            return Ok(Command::new("ALTER TABLE"));
        };
        if write.transaction.table(&name)?.is_array() {
            return Err(SqlError::unsupported(format!("a retention of array table \"{name}\""))
                .hint("It is updated in place and keeps no history."));
        }
        write.transaction.set_retention(&name, retention)?;
        Ok(Command::new("ALTER TABLE"))
    })
}

/// The retention that options of a table ask for, if one of them is about it.
fn asked_retention(mut settings: TableSettings, options: &[SqlOption], source: &Source) -> Result<Option<Retention>> {
    let mut is_asked = false;
    for (name, value, key) in table_options::pairs(options)? {
        let at = source.start(key.span);
        let is_reset = matches!(value, Expr::Identifier(word) if word.value == alter_tokens::RESET);
        match &*name {
            "retention" if is_reset => settings.retention = Retention::default(),
            // PostgreSQL resets what it does not know, too.
            _ if is_reset && !table_options::is_fixed(&name) => continue,
            _ if is_reset => {}
            _ => table_options::set(&mut settings, &name, value).map_err(|error| error.at(at))?,
        }
        if table_options::is_fixed(&name) {
            let error = SqlError::unsupported(format!("changing \"{name}\" of a table that is there")).at(at);
            return Err(error.hint("Make a new table with it, and fill it from this one."));
        }
        is_asked |= name == "retention";
    }
    Ok(is_asked.then_some(settings.retention))
}

/// `DISABLE TRIGGER` and `ENABLE TRIGGER`. Users have none; those of PostgreSQL behind foreign keys are among `ALL`: they look at what a
/// change of the table does to its foreign keys, and to those of others that refer to it.
fn triggers(
    session: &mut Session,
    alter: &AlterTable,
    (trigger, are_off): (&Ident, bool),
    source: &Source,
) -> Result<Command> {
    let word = fold(trigger);
    let which = match (word.as_str(), trigger.quote_style) {
        ("all", None) => " ALL",
        ("user", None) => " USER",
        _ => "",
    };
    let action = format!("{} TRIGGER{which}", if are_off { "DISABLE" } else { "ENABLE" });
    session.write("ALTER TABLE", |_, write| {
        let name = table_name(&alter.name, source)?;
        let table = match altered_table(write.transaction, &name, (alter, &action), source)? {
            Ok(table) => table,
            Err(skipped) => return Ok(skipped),
        };
        match which {
            " USER" => {}
            " ALL" => {
                let settings = write.transaction.settings(&table);
                if settings.references_off != are_off {
                    write.transaction.set_references_off(&name, are_off)?;
                }
            }
            _ => {
                let message = format!("trigger \"{word}\" for table \"{}\" does not exist", local(&name));
                return Err(SqlError::new("42704", message));
            }
        }
        Ok(Command::new("ALTER TABLE"))
    })
}

fn not_there(alter: &AlterTable) -> SqlError {
    let what = alter.operations.first().map(AlterTableOperation::to_string).unwrap_or_default();
    let words: Vec<&str> = what.split_whitespace().take(2).collect();
    let message = format!("ALTER TABLE ... {}", words.join(" ").trim_end_matches('(').trim_end());
    let hint = "ALTER TABLE ... SET (retention = ...), ... RESET (retention), \
                ... ADD, VALIDATE, RENAME or DROP CONSTRAINT, ... ADD PRIMARY KEY or UNIQUE, ... \
                RENAME TO, ... ADD, DROP and RENAME COLUMN and ... ALTER COLUMN are all that there is.";
    SqlError::unsupported(message).hint(hint)
}

/// Has the key of a table that is renamed keep its name, which may be made of the table's.
fn keep_key_name(transaction: &mut Transaction, name: &str, new_name: &str) -> Result<()> {
    let table = transaction.table(new_name)?;
    if table.schema().primary_key().is_empty() {
        return Ok(());
    }
    let settings = transaction.settings(&table);
    let key = settings.name_of_key(name);
    let made = TableSettings { key_name: None, ..settings }.name_of_key(new_name);
    let key_name = (key != made).then(|| schema_and_name(&key).1.to_owned());
    Ok(transaction.set_key_name(new_name, key_name)?)
}

/// `ALTER TABLE ... RENAME TO`.
fn rename(session: &mut Session, alter: &AlterTable, to: &ObjectName, source: &Source) -> Result<Command> {
    let name = table_name(&alter.name, source)?;
    let new_name = beside(&name, &table_name(to, source)?);
    session.write("ALTER TABLE", |_, write| {
        if let Err(skipped) = altered(write.transaction, &name, alter, source)? {
            return Ok(skipped);
        }
        let renamed = write.transaction.rename_table(&name, &new_name);
        renamed.map_err(|error| SqlError::from(error).at(position(to, source)))?;
        keep_key_name(write.transaction, &name, &new_name)?;
        function_users::rename_rows(write.transaction, &name, &new_name)?;
        view_users::rename(write.transaction, &name, &new_name)?;
        comments::rename(write.transaction, &name, &new_name)?;
        // It may be a sequence.
        sequence_users::rename(write.transaction, &name, &new_name)?;
        Ok(Command::new("ALTER TABLE"))
    })
}
