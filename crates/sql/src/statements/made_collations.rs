//! `CREATE COLLATION` and `DROP COLLATION`.
//!
//! A collation is a name for an order that there is: that of a language, or that of bytes. A column keeps the order beside the name, so
//! that it is read without the collation. Texts that are equal are of the same bytes: a collation by which others are equal, too, is
//! refused.
use datafusion::sql::sqlparser::ast::{
    CreateCollation, CreateCollationDefinition, Expr, ObjectName, SqlOption, Statement, Value, ValueWithSpan,
};

use crate::error::{Result, SqlError};
use crate::functions::texts::collation;
use crate::names::made_collations::{self, find};
use crate::names::schemas::{local, spelled};
use crate::names::{fold, position, table_name};
use crate::semantics::spelling::collations;
use crate::session::Session;
use crate::state::outcome::{Command, Notice};
use crate::statements::{held_collations, made_types, schemas};
use crate::syntax::source::Source;
use crate::values::collated::MadeCollation;

/// `CREATE COLLATION`.
pub(crate) fn create(session: &mut Session, create: &CreateCollation, source: &Source) -> Result<Command> {
    let (known, at) = (made_types::new_name(session, &create.name, source)?, position(&create.name, source));
    let made = match &create.definition {
        CreateCollationDefinition::Options(options) => of_options(options)?,
        CreateCollationDefinition::From(other) => copy_of(session, other, source)?,
    };
    if let Some(locale) = made.locale() {
        collation::check(&locale)?;
    }
    session.write("CREATE COLLATION", |_, write| {
        let transaction = &mut *write.transaction;
        schemas::check_there(transaction, &known).map_err(|error| error.at(at))?;
        if find(&transaction.remembered()?, &known).is_some() {
            let message = format!("collation \"{}\" already exists", local(&known));
            return match create.if_not_exists {
                true => Ok(Command::new("CREATE COLLATION").with_notice(Notice::skipping("42710", message))),
                false => Err(SqlError::new("42710", message).at(at)),
            };
        }
        made_collations::set(transaction, &known, Some(&made))?;
        Ok(Command::new("CREATE COLLATION"))
    })
}

/// What a collation is that is made like another one.
fn copy_of(session: &Session, other: &ObjectName, source: &Source) -> Result<MadeCollation> {
    let of_bytes = |told: &str| MadeCollation { provider: 'c', encoding: -1, told: told.to_owned() };
    let Some(found) = collations::found(other, source)? else {
        let error = SqlError::new("42P22", "collation \"default\" cannot be copied");
        return Err(error.at(position(other, source)));
    };
    if let Some(made) = find(&session.tables.remembered()?, &found.name) {
        return Ok(made);
    }
    Ok(match found.locale {
        None => of_bytes(if found.name == "POSIX" { "POSIX" } else { "C" }),
        Some(locale) => MadeCollation { provider: 'i', encoding: -1, told: locale },
    })
}

/// The options of a collation.
#[derive(Default)]
struct Said {
    provider: Option<String>,
    locale: Option<String>,
    lc_collate: Option<String>,
    lc_ctype: Option<String>,
}

fn of_options(options: &[SqlOption]) -> Result<MadeCollation> {
    let mut said = Said::default();
    for option in options {
        let SqlOption::KeyValue { key, value } = option else {
            return Err(SqlError::syntax(format!("syntax error at or near \"{option}\"")));
        };
        let (name, text) = (fold(key), text_of(value));
        let place = match name.as_str() {
            "provider" => &mut said.provider,
            "locale" => &mut said.locale,
            "lc_collate" => &mut said.lc_collate,
            "lc_ctype" => &mut said.lc_ctype,
            "version" => continue,
            "deterministic" => {
                check_deterministic(&text)?;
                continue;
            }
            _ => return Err(SqlError::syntax(format!("collation attribute \"{name}\" not recognized"))),
        };
        if place.replace(text).is_some() {
            return Err(SqlError::syntax("conflicting or redundant options"));
        }
    }
    if said.locale.is_some() && (said.lc_collate.is_some() || said.lc_ctype.is_some()) {
        let error = SqlError::syntax("conflicting or redundant options");
        return Err(error.detail("LOCALE cannot be specified together with LC_COLLATE or LC_CTYPE."));
    }
    let missing = |name: &str| SqlError::new("42P17", format!("parameter \"{name}\" must be specified"));
    match said.provider.map(|provider| provider.to_lowercase()).as_deref() {
        Some("icu") => {
            let told = said.locale.ok_or_else(|| missing("locale"))?;
            let made = MadeCollation { provider: 'i', encoding: -1, told };
            if made.locale().is_none() {
                let hint = "The language is one of CLDR's; co, kn and kf may follow it, as in de-u-co-phonebk.";
                return Err(SqlError::unsupported(format!("the locale \"{}\" of a collation", made.told)).hint(hint));
            }
            Ok(made)
        }
        Some("libc") | None => {
            let ctype = said.locale.clone().or(said.lc_ctype);
            let told = said.locale.or(said.lc_collate).ok_or_else(|| missing("lc_collate"))?;
            ctype.ok_or_else(|| missing("lc_ctype"))?;
            let made = MadeCollation { provider: 'c', encoding: 6, told };
            let is_of_bytes = ["C", "POSIX", "C.UTF-8", "C.utf8"].contains(&made.told.as_str());
            if !is_of_bytes && made.locale().is_none() {
                let error = SqlError::new("22023", format!("could not create locale \"{}\"", made.told));
                return Err(error.hint("There are C, POSIX and locales such as de_AT and de_AT.utf8."));
            }
            Ok(made)
        }
        Some(other) => Err(SqlError::new("42P17", format!("unrecognized collation provider: {other}"))),
    }
}

fn check_deterministic(text: &str) -> Result<()> {
    match text.to_lowercase().as_str() {
        "true" | "on" | "1" | "yes" => Ok(()),
        "false" | "off" | "0" | "no" => {
            let hint = "For texts that are equal whatever their case, use the type citext, or compare lower(text).";
            Err(SqlError::unsupported("a nondeterministic collation").hint(hint))
        }
        _ => Err(SqlError::syntax("deterministic requires a Boolean value")),
    }
}

fn text_of(value: &Expr) -> String {
    match value {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => text.clone(),
        Expr::Identifier(word) => word.value.clone(),
        other => other.to_string(),
    }
}

/// `DROP COLLATION`.
pub(crate) fn drop(session: &mut Session, statement: &Statement, source: &Source) -> Result<Command> {
    let Statement::Drop { names, if_exists, cascade, .. } = statement else {
        return Err(SqlError::new("XX000", "not a DROP COLLATION"));
    };
    let mut known = Vec::with_capacity(names.len());
    for name in names {
        let found = collations::found(name, source);
        known.push((found.ok().flatten().map(|found| found.name), table_name(name, source)?, position(name, source)));
    }
    session.write("DROP COLLATION", |_, write| {
        let mut command = Command::new("DROP COLLATION");
        for (found, said, at) in &known {
            let remembered = write.transaction.remembered()?;
            let made = found.as_ref().filter(|name| find(&remembered, name).is_some());
            let Some(name) = made else {
                if *if_exists {
                    command = command.with_notice(format!("collation \"{}\" does not exist, skipping", local(said)));
                    continue;
                }
                let message = format!("collation \"{}\" for encoding \"UTF8\" does not exist", local(said));
                return Err(SqlError::new("42704", message).at(*at));
            };
            let users = held_collations::users_of(write.transaction, name);
            if !users.is_empty() {
                return Err(match cascade {
                    true => SqlError::unsupported(format!("dropping what has collation {}", spelled(name)))
                        .detail(users.join("\n"))
                        .hint("Give the columns another collation first."),
                    false => held_collations::still_used(name, &users),
                }
                .at(*at));
            }
            made_collations::set(write.transaction, name, None)?;
        }
        Ok(command)
    })
}
