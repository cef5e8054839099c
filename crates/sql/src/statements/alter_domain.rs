//! `ALTER DOMAIN`: what a domain asks of values, and what fills columns of it.
//!
//! The columns of a domain have its rules as rules of their tables ([`domain_rules`](super::domain_rules)); they get those of the changed
//! domain in place of the old ones, and the rows that are there are looked at where a rule is new.
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName};
use engine::{Check, Column, DomainDefinition, Table, TypeDefinition, ViewDefinition, schema_and_name};

use crate::error::{DOMAIN_RULE, Result, SqlError};
use crate::names::made_types::{definition, entry};
use crate::names::schemas::spelled;
use crate::names::{fold, position};
use crate::parsing::domain_statement::DomainChange;
use crate::planning::default_define::define as define_default;
use crate::planning::index_compile::Kind;
use crate::planning::index_define::define_over;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::comments::{self, About};
use crate::state::outcome::Command;
use crate::statements::checks::check_rows;
use crate::statements::domain_rules::{VALUE, rules};
use crate::statements::domains::{free, taken};
use crate::statements::{held_types, made_types};
use crate::syntax::source::Source;

/// Runs it.
pub(crate) fn run(session: &mut Session, name: &ObjectName, change: &DomainChange, source: &Source) -> Result<Command> {
    session.write("ALTER DOMAIN", |session, write| {
        let found = made_types::find(write.transaction, session, name, source)?;
        let (known, _) = found.ok_or_else(|| made_types::not_there(name, source))?;
        write.transaction.claim_name(&entry(&known))?;
        // Another transaction, for which the claim may have waited, may have changed it.
        let kept = write.transaction.table(&entry(&known)).map_err(|_| made_types::not_there(name, source))?;
        let Some(TypeDefinition::Domain(before)) = definition(&kept).cloned() else {
            let message = format!("{} is not a domain", spelled(&known));
            return Err(SqlError::new("42809", message).at(position(name, source)));
        };
        let mut command = Command::new("ALTER DOMAIN");
        let after = match changed(session, write, (&known, &before), change, source)? {
            Ok(after) => after,
            Err(notice) => {
                command = command.with_notice(notice);
                before.clone()
            }
        };
        if after != before {
            let view = ViewDefinition::of_type(TypeDefinition::Domain(after.clone()));
            write.transaction.replace_view(&entry(&known), kept.schema().as_ref().clone(), view)?;
            change_columns(session, write, (&known, &before), (&known, &after))?;
        }
        Ok(command)
    })
}

/// The domain after a change, or what there is to say where nothing is changed.
fn changed(
    session: &Session,
    write: &mut Write<'_>,
    (known, before): (&str, &DomainDefinition),
    change: &DomainChange,
    source: &Source,
) -> Result<std::result::Result<DomainDefinition, String>> {
    let mut after = before.clone();
    match change {
        DomainChange::Default(expr) => after.default = default(session, write, expr.as_ref(), before, source)?,
        DomainChange::NotNull(not_null) => after.not_null = *not_null,
        DomainChange::AddCheck(name, condition) => {
            let value = Column::new(VALUE, before.base);
            let defined = define_over(condition, ("", std::slice::from_ref(&value)), Kind::Check, source)?;
            let name = match name {
                Some(name) => taken(&after.checks, fold(name), known)?,
                None => free(&after.checks, schema_and_name(known).1),
            };
            after.checks.push((name, defined.text));
        }
        DomainChange::Drop { name, if_exists } => match place(before, name) {
            Some(at) => {
                let (check, _) = after.checks.remove(at);
                comments::rename_one(write.transaction, About::OfDomain(known, &check), None)?;
            }
            None => {
                let error = no_constraint(known, name, source);
                return if *if_exists { Ok(Err(format!("{}, skipping", error.message))) } else { Err(error) };
            }
        },
        DomainChange::Rename(name, to) => {
            let Some(at) = place(before, name) else {
                let message = format!("constraint \"{}\" for domain {} does not exist", fold(name), spelled(known));
                return Err(SqlError::new("42704", message).at(source.start(name.span)));
            };
            let to = taken(&after.checks, fold(to), known)?;
            let about = (About::OfDomain(known, &after.checks[at].0), About::OfDomain(known, &to));
            comments::rename_one(write.transaction, about.0, Some(about.1))?;
            after.checks[at].0 = to;
        }
        // Another name is given by `rename_type`.
        DomainChange::RenameTo(_) => {}
        // All constraints of a domain hold for the rows that there are.
        DomainChange::Validate(name) => {
            place(before, name).ok_or_else(|| no_constraint(known, name, source))?;
        }
    }
    Ok(Ok(after))
}

fn place(domain: &DomainDefinition, constraint: &Ident) -> Option<usize> {
    domain.checks.iter().position(|(name, _)| *name == fold(constraint))
}

fn no_constraint(known: &str, name: &Ident, source: &Source) -> SqlError {
    let (name, domain, at) = (fold(name), schema_and_name(known).1, source.start(name.span));
    SqlError::new("42704", format!("constraint \"{name}\" of domain \"{domain}\" does not exist")).at(at)
}

fn default(
    session: &Session,
    write: &mut Write<'_>,
    expr: Option<&Expr>,
    before: &DomainDefinition,
    source: &Source,
) -> Result<Option<String>> {
    let Some(expr) = expr else { return Ok(None) };
    let view = session.view(write.moment()?, Vec::new());
    let text = define_default(&session.planner, view, expr, &Column::new(VALUE, before.base), source)?;
    write.end_reading();
    Ok(text)
}

/// Gives all columns of a domain what it asks and fills from here on, and what it is called.
pub(crate) fn change_columns(
    session: &Session,
    write: &mut Write<'_>,
    (known, before): (&str, &DomainDefinition),
    (new, after): (&str, &DomainDefinition),
) -> Result<()> {
    let of_type = TypeDefinition::Domain(before.clone());
    let mut tables: Vec<String> =
        held_types::columns_of(write.transaction, known, &of_type)?.into_iter().map(|(table, _)| table).collect();
    tables.dedup();
    for name in tables {
        write.transaction.lock_table(&name)?;
        let table = write.transaction.table(&name)?;
        let mut defaults = write.transaction.settings(&table).defaults;
        let mut places = Vec::new();
        for default in &mut defaults {
            if let Some(domain) = default.domain.as_mut().filter(|domain| domain.name == known) {
                places.push(default.column);
                domain.name = new.to_owned();
                if domain.fills {
                    default.expression.clone_from(&after.default);
                }
            }
        }
        write.transaction.set_defaults(&name, defaults)?;
        for place in places {
            change_rules(session, write, (&table, &name, place), (known, before), (new, after))?;
        }
    }
    Ok(())
}

/// Puts the rules of a changed domain in the place of those that a column has.
fn change_rules(
    session: &Session,
    write: &mut Write<'_>,
    (table, name, place): (&Table, &str, usize),
    (known, before): (&str, &DomainDefinition),
    (new, after): (&str, &DomainDefinition),
) -> Result<()> {
    let mut checks = write.transaction.settings(table).checks;
    checks.retain(|check| !(check.columns == [place] && rule_of(check).is_some_and(|(domain, _)| domain == known)));
    let own = rules(&(new.to_owned(), after.clone()), place, (name, table.schema().columns()), &checks)?;
    checks.extend(own.iter().cloned());
    write.transaction.set_checks(name, checks)?;
    let column = &table.schema().columns()[place].name;
    for rule in &own {
        let constraint = rule_of(rule).map(|(_, constraint)| constraint).unwrap_or_default();
        let (is_new, sqlstate, what) = match constraint {
            "" => (!before.not_null, "23502", "null values"),
            check => {
                let is_known = before
                    .checks
                    .iter()
                    .any(|(_, condition)| after.checks.iter().any(|(name, text)| name == check && text == condition));
                (!is_known, "23514", "values that violate the new constraint")
            }
        };
        if is_new {
            check_rows(session, write, (table, name), rule).map_err(|error| match error.sqlstate {
                "23502" | "23514" => {
                    SqlError::new(sqlstate, format!("column \"{column}\" of table \"{}\" contains {what}", local(name)))
                }
                _ => error,
            })?;
        }
    }
    Ok(())
}

fn local(name: &str) -> &str {
    schema_and_name(name).1
}

/// The domain and the constraint that a rule of a table is of, if it is of one.
fn rule_of(check: &Check) -> Option<(&str, &str)> {
    let mut parts = check.name.strip_prefix(DOMAIN_RULE)?.splitn(3, DOMAIN_RULE);
    let (_, domain, constraint) = (parts.next()?, parts.next()?, parts.next()?);
    Some((domain, constraint))
}
