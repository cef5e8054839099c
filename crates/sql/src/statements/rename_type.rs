//! `ALTER TYPE ... RENAME TO` and `ALTER DOMAIN ... RENAME TO`.
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use engine::{EnumDefinition, Transaction, TypeDefinition, schema_and_name};

use crate::error::{Result, SqlError};
use crate::names::made_types::{definition, entry};
use crate::names::schemas::{beside, spelled};
use crate::names::{fold, position};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::comments::{self, About};
use crate::state::outcome::Command;
use crate::statements::alter_domain::change_columns;
use crate::statements::made_types::{self, expression_naming};
use crate::statements::view_users::naming_type;
use crate::syntax::source::Source;

/// Runs it; `verb` is what the statement begins with.
pub(crate) fn run(
    session: &mut Session,
    verb: &'static str,
    (name, to): (&ObjectName, &Ident),
    source: &Source,
) -> Result<Command> {
    session.write(verb, |session, write| {
        let found = made_types::find(write.transaction, session, name, source)?;
        let (known, _) = found.ok_or_else(|| made_types::not_there(name, source))?;
        write.transaction.claim_name(&entry(&known))?;
        // Another transaction, for which the claim may have waited, may have changed it.
        let kept = write.transaction.table(&entry(&known)).map_err(|_| made_types::not_there(name, source))?;
        let of_type = definition(&kept).cloned().ok_or_else(|| made_types::not_there(name, source))?;
        if verb == "ALTER DOMAIN" && !matches!(of_type, TypeDefinition::Domain(_)) {
            let message = format!("{} is not a domain", spelled(&known));
            return Err(SqlError::new("42809", message).at(position(name, source)));
        }
        rename(session, write, (&known, of_type), &beside(&known, &fold(to)))?;
        Ok(Command::new(verb))
    })
}

/// Gives a type another name. What names it in a text must be changed first.
pub(super) fn rename(
    session: &Session,
    write: &mut Write<'_>,
    (known, of_type): (&str, TypeDefinition),
    new: &str,
) -> Result<()> {
    check_unnamed(write.transaction, known)?;
    match of_type {
        TypeDefinition::Enum(labels) => {
            let named = TypeDefinition::Enum(EnumDefinition { name: new.to_owned(), ..labels });
            made_types::make(write.transaction, new, named)?;
        }
        TypeDefinition::Domain(domain) => {
            made_types::make(write.transaction, new, TypeDefinition::Domain(domain.clone()))?;
            for (check, _) in &domain.checks {
                let (from, to) = (About::OfDomain(known, check), About::OfDomain(new, check));
                comments::rename_one(write.transaction, from, Some(to))?;
            }
            change_columns(session, write, (known, &domain), (new, &domain))?;
        }
    }
    comments::rename_one(write.transaction, About::Type(known), Some(About::Type(new)))?;
    Ok(write.transaction.drop_view(&entry(known))?)
}

/// Refuses what is named in a text that the catalog keeps: it would name nothing afterwards.
fn check_unnamed(transaction: &Transaction, known: &str) -> Result<()> {
    let local = schema_and_name(known).1;
    if let Some(view) = naming_type(transaction, known)?.first() {
        let message = format!("renaming type \"{local}\", which view \"{}\" names,", view.name);
        return Err(SqlError::unsupported(message).hint("Drop the view, and make it again afterwards."));
    }
    if let Some(what) = expression_naming(transaction, known)? {
        let message = format!("renaming type \"{local}\", which {what} names,");
        return Err(SqlError::unsupported(message).hint("Drop it, and make it again afterwards."));
    }
    Ok(())
}
