//! `CREATE TYPE ... AS ENUM`, `ALTER TYPE` and `DROP TYPE`.
use datafusion::sql::sqlparser::ast::{
    AlterType, AlterTypeAddValue, AlterTypeAddValuePosition, AlterTypeOperation, AlterTypeRenameValue, Ident,
    ObjectName, Statement, UserDefinedTypeRepresentation,
};
use engine::{
    Column, DataType, DomainDefinition, EnumDefinition, EnumType, IndexPart, PUBLIC_SCHEMA, Schema, Table, Transaction,
    TypeDefinition, ViewDefinition, name_in_schema, schema_and_name,
};

use crate::error::{Result, SqlError};
use crate::names::made_types::{definition, entry, name_of};
use crate::names::schemas::{is_temporary, schema_of, spelled};
use crate::names::{fold, position, table_name};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::comments;
use crate::state::outcome::{Command, Notice};
use crate::statements::dependents::{Dependents, Object};
use crate::statements::held_types::{columns_of, is_of_enum};
use crate::statements::{alter_columns, schemas, view_users};
use crate::syntax::source::Source;

/// Bytes of a label at most, as in PostgreSQL.
const LABEL_BYTES_MAX: usize = 63;

/// `CREATE TYPE`.
pub(crate) fn create(session: &mut Session, statement: &Statement, source: &Source) -> Result<Command> {
    let Statement::CreateType { name, representation } = statement else {
        return Err(SqlError::new("XX000", "not a CREATE TYPE"));
    };
    let labels = match representation {
        Some(UserDefinedTypeRepresentation::Enum { labels }) => labels,
        Some(UserDefinedTypeRepresentation::Composite { .. }) => {
            let error = SqlError::unsupported("a composite type").at(source.find_word("type"));
            let hint = "A function may return TABLE (...) or rows of a table, and a column of jsonb has fields.";
            return Err(error.hint(hint));
        }
        Some(UserDefinedTypeRepresentation::Range { .. }) => {
            return Err(SqlError::unsupported("a range type").at(source.find_word("range")));
        }
        _ => return Err(SqlError::unsupported("this form of CREATE TYPE").at(source.find_word("type"))),
    };
    let labels = labels.iter().map(|label| text_of(label, source)).collect::<Result<Vec<String>>>()?;
    let (known, at) = (new_name(session, name, source)?, position(name, source));
    session.write("CREATE TYPE", |_, write| {
        let of = free_number(write.transaction)?;
        for (place, label) in labels.iter().enumerate() {
            check_label(label)?;
            if labels[..place].contains(label) {
                let index = "pg_enum_typid_label_index";
                let error =
                    SqlError::new("23505", format!("duplicate key value violates unique constraint \"{index}\""));
                let key = format!("Key (enumtypid, enumlabel)=({}, {label}) already exists.", of.number());
                return Err(error.detail(key));
            }
        }
        let definition = EnumDefinition::new(of, known.clone(), labels.iter().cloned());
        make(write.transaction, &known, TypeDefinition::Enum(definition)).map_err(|error| error.at(at))?;
        Ok(Command::new("CREATE TYPE"))
    })
}

/// The name of a type that is about to be made, with the schema in which it will be.
pub(crate) fn new_name(session: &Session, name: &ObjectName, source: &Source) -> Result<String> {
    let known = table_name(name, source)?;
    match name.0.len() {
        1 if !session.path().is_plain() => Ok(name_in_schema(&session.schema_to_make_in()?, &known)),
        _ if is_temporary(schema_of(&known)) => {
            Err(SqlError::unsupported("a temporary type").at(position(name, source)))
        }
        _ => Ok(known),
    }
}

/// Makes a type of a name that neither a type nor a relation has.
pub(crate) fn make(transaction: &mut Transaction, known: &str, of_type: TypeDefinition) -> Result<()> {
    schemas::check_there(transaction, known)?;
    transaction.claim_name(known)?;
    transaction.claim_name(&entry(known))?;
    if transaction.table(&entry(known)).is_ok() || transaction.table(known).is_ok() {
        return Err(SqlError::new("42710", format!("type \"{}\" already exists", schema_and_name(known).1)));
    }
    comments::forget_type(transaction, known)?;
    Ok(transaction.create_view(&entry(known), no_columns()?, ViewDefinition::of_type(of_type))?)
}

/// The columns of what is kept as a view and is none.
fn no_columns() -> Result<Schema> {
    let columns = Schema::new(vec![Column::new("type", DataType::TEXT)], &[]);
    columns.map_err(|error| SqlError::from(engine::Error::from(error)))
}

/// An id of which no type of the process has the number.
pub(crate) fn free_number(transaction: &Transaction) -> Result<EnumType> {
    let taken = |of: &EnumType| EnumType::numbered(of.number()).is_some() || is_domain(transaction, of.number());
    for _ in 0..100 {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|error| SqlError::new("58000", format!("no random number: {error}")))?;
        let of = EnumType(u64::from_le_bytes(bytes));
        if !taken(&of) {
            return Ok(of);
        }
    }
    Err(SqlError::new("54000", "there is no number left for a type"))
}

fn is_domain(transaction: &Transaction, number: u32) -> bool {
    let mut views = transaction.views_now().into_iter();
    views.any(|(_, kept)| matches!(definition(&kept), Some(TypeDefinition::Domain(domain)) if domain.number == number))
}

/// A label as the text that it has to be.
fn text_of(label: &Ident, source: &Source) -> Result<String> {
    match label.quote_style {
        Some('\'') => Ok(label.value.clone()),
        _ => Err(SqlError::syntax(format!("syntax error at or near \"{label}\"")).at(source.start(label.span))),
    }
}

fn check_label(label: &str) -> Result<()> {
    if label.is_empty() || label.len() > LABEL_BYTES_MAX {
        let error = SqlError::new("42602", format!("invalid enum label \"{label}\""));
        return Err(error.detail(format!("Labels must be {LABEL_BYTES_MAX} bytes or less.")));
    }
    Ok(())
}

/// The name by which the catalog knows a type that a statement names, and the type.
pub(crate) fn find(
    transaction: &Transaction,
    session: &Session,
    name: &ObjectName,
    source: &Source,
) -> Result<Option<(String, TypeDefinition)>> {
    let known = table_name(name, source)?;
    let names: Vec<String> = match (name.0.len(), schema_and_name(&known)) {
        (1, (PUBLIC_SCHEMA, local)) => session.path().names(local).collect(),
        _ => vec![known],
    };
    let of = |known: String| Some((definition(&transaction.table(&entry(&known)).ok()?)?.clone(), known));
    Ok(names.into_iter().find_map(of).map(|(of_type, known)| (known, of_type)))
}

pub(crate) fn not_there(name: &ObjectName, source: &Source) -> SqlError {
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(fold).collect();
    SqlError::new("42704", format!("type \"{}\" does not exist", parts.join("."))).at(position(name, source))
}

/// `ALTER TYPE`, but for another name.
pub(crate) fn alter(session: &mut Session, alter: &AlterType, source: &Source) -> Result<Command> {
    session.write("ALTER TYPE", |session, write| {
        let transaction = &mut *write.transaction;
        let found = find(transaction, session, &alter.name, source)?;
        let (known, of_type) = found.ok_or_else(|| not_there(&alter.name, source))?;
        transaction.claim_name(&entry(&known))?;
        // Another transaction, for which the claim may have waited, may have changed it.
        let of_type = match transaction.table(&entry(&known)) {
            Ok(kept) => definition(&kept).cloned().unwrap_or(of_type),
            Err(_) => return Err(not_there(&alter.name, source)),
        };
        let command = Command::new("ALTER TYPE");
        let TypeDefinition::Enum(mut labels) = of_type else {
            return Err(SqlError::new("42809", format!("\"{}\" is not an enum", schema_and_name(&known).1)));
        };
        let notice = match &alter.operation {
            AlterTypeOperation::AddValue(add) => add_label(&mut labels, add, source)?,
            AlterTypeOperation::RenameValue(rename) => rename_label(&mut labels, rename, source)?,
            AlterTypeOperation::Rename(_) => None,
        };
        if let Some(notice) = notice {
            return Ok(command.with_notice(notice));
        }
        if let AlterTypeOperation::RenameValue(rename) = &alter.operation {
            check_unnamed(transaction, &text_of(&rename.from, source)?)?;
        }
        replace(transaction, &known, TypeDefinition::Enum(labels))?;
        Ok(command)
    })
}

fn replace(transaction: &mut Transaction, known: &str, of_type: TypeDefinition) -> Result<()> {
    Ok(transaction.replace_view(&entry(known), no_columns()?, ViewDefinition::of_type(of_type))?)
}

/// Adds a label; what there is to say where it is there already and may be.
fn add_label(labels: &mut EnumDefinition, add: &AlterTypeAddValue, source: &Source) -> Result<Option<Notice>> {
    let label = text_of(&add.value, source)?;
    check_label(&label)?;
    if labels.place(&label).is_some() {
        let message = format!("enum label \"{label}\" already exists");
        return match add.if_not_exists {
            true => Ok(Some(Notice::skipping("42710", message))),
            false => Err(SqlError::new("42710", message)),
        };
    }
    let place = match &add.position {
        Some(AlterTypeAddValuePosition::Before(other)) => place_of(labels, &text_of(other, source)?)?,
        Some(AlterTypeAddValuePosition::After(other)) => place_of(labels, &text_of(other, source)?)? + 1,
        None => labels.labels.len(),
    };
    match labels.insert(place, label) {
        true => Ok(None),
        false => {
            let message = "there is no room for another label between these two: make a new type with all of them";
            Err(SqlError::new("54000", message))
        }
    }
}

fn place_of(labels: &EnumDefinition, label: &str) -> Result<usize> {
    let missing = || SqlError::new("22023", format!("\"{label}\" is not an existing enum label"));
    labels.place(label).ok_or_else(missing)
}

fn rename_label(labels: &mut EnumDefinition, rename: &AlterTypeRenameValue, source: &Source) -> Result<Option<Notice>> {
    let (from, to) = (text_of(&rename.from, source)?, text_of(&rename.to, source)?);
    check_label(&to)?;
    let place = place_of(labels, &from)?;
    if labels.place(&to).is_some() {
        return Err(SqlError::new("42710", format!("enum label \"{to}\" already exists")));
    }
    labels.labels[place].1 = to;
    Ok(None)
}

/// Refuses to rename a label that an expression names which the catalog keeps as text: it would name nothing afterwards.
fn check_unnamed(transaction: &Transaction, label: &str) -> Result<()> {
    let refused = |what: String| {
        let error = SqlError::unsupported(format!("renaming label \"{label}\", which {what} names,"));
        Err(error.hint("Drop it, and make it again afterwards."))
    };
    for (what, text) in kept_texts(transaction)? {
        if has_word(&text, label) {
            return refused(what);
        }
    }
    for user in view_users::users(transaction)? {
        if has_word(&user.query, label) {
            return refused(user.shown());
        }
    }
    Ok(())
}

/// The expressions that tables and domains keep as texts, each with whose it is.
fn kept_texts(transaction: &Transaction) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for name in transaction.table_names() {
        let table = transaction.table(&name)?;
        let settings = transaction.settings(&table);
        let defaults = settings.defaults.into_iter().filter_map(|default| default.expression);
        let checks = settings.checks.into_iter().map(|check| check.condition);
        let indexes = transaction.indexes(&table).into_iter().flat_map(|index| {
            let definition = index.definition().clone();
            let parts = definition.parts.into_iter().filter_map(|part| match part {
                IndexPart::Expression(expression) => Some(expression.text),
                IndexPart::Column(_) => None,
            });
            parts.chain(definition.predicate.map(|predicate| predicate.text)).collect::<Vec<_>>()
        });
        let what = format!("an expression of table {}", spelled(&name));
        found.extend(defaults.chain(checks).chain(indexes).map(|text| (what.clone(), text)));
    }
    for (name, domain) in domains(transaction) {
        let texts = domain.default.into_iter().chain(domain.checks.into_iter().map(|(_, text)| text));
        found.extend(texts.map(|text| (format!("domain {}", spelled(&name)), text)));
    }
    Ok(found)
}

fn domains(transaction: &Transaction) -> Vec<(String, DomainDefinition)> {
    let of = |(name, table): (String, Table)| match definition(&table)?.clone() {
        TypeDefinition::Domain(domain) => Some((name_of(&name)?, domain)),
        TypeDefinition::Enum(_) => None,
    };
    transaction.views_now().into_iter().filter_map(of).collect()
}

/// Whose expression, kept as a text, has the name of a type.
pub(crate) fn expression_naming(transaction: &Transaction, known: &str) -> Result<Option<String>> {
    let name = schema_and_name(known).1;
    Ok(kept_texts(transaction)?.into_iter().find(|(_, text)| has_word(text, name)).map(|(what, _)| what))
}

/// What needs an enum though no column is of it: an expression or a domain.
fn user_without_column(transaction: &Transaction, known: &str, of: EnumType) -> Result<Option<String>> {
    let over = domains(transaction).into_iter().find(|(_, domain)| is_of_enum(domain.base, of));
    match over {
        Some((name, _)) => Ok(Some(format!("domain {}", spelled(&name)))),
        None => expression_naming(transaction, known),
    }
}

/// Whether a text has a word, or some that follow one another, between what no word has.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
    text.match_indices(word).any(|(at, found)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + found.len()..].chars().next())
    })
}

/// `DROP TYPE`, of any type.
pub(crate) fn drop(session: &mut Session, statement: &Statement, source: &Source) -> Result<Command> {
    let Statement::Drop { names, if_exists, cascade, .. } = statement else {
        return Err(SqlError::new("XX000", "not a DROP TYPE"));
    };
    session.write("DROP TYPE", |session, write| {
        let (mut command, mut dropped) = (Command::new("DROP TYPE"), Vec::with_capacity(names.len()));
        for name in names {
            match find(write.transaction, session, name, source)? {
                Some(found) => dropped.push(found),
                None if *if_exists => {
                    let missing = not_there(name, source).message;
                    command = command.with_notice(format!("{missing}, skipping"));
                }
                None => return Err(not_there(name, source)),
            }
        }
        drop_found(session, write, dropped, *cascade, command, source)
    })
}

/// Drops types, with the columns that are of them and the views and functions that name them, or refuses that.
pub(crate) fn drop_found(
    session: &Session,
    write: &mut Write<'_>,
    found: Vec<(String, TypeDefinition)>,
    cascade: bool,
    command: Command,
    source: &Source,
) -> Result<Command> {
    for (known, of_type) in &found {
        write.transaction.claim_name(&entry(known))?;
        if let TypeDefinition::Enum(labels) = of_type
            && columns_of(write.transaction, known, of_type)?.is_empty()
            && let Some(what) = user_without_column(write.transaction, known, labels.of)?
        {
            let what = format!("type {}, which {what} uses", spelled(known));
            return Err(SqlError::new("2BP01", format!("cannot drop {what}")).hint("Drop that first."));
        }
    }
    let objects: Vec<Object> = found.iter().map(|(known, _)| Object::Type(known.clone())).collect();
    let dependents = Dependents::of(write.transaction, session, &objects)?;
    let command = dependents.tell(cascade, command)?;
    dependents.drop_along(write.transaction)?;
    for (table, column) in dependents.columns() {
        alter_columns::drop_column(session, write, table, column, source)?;
    }
    found.iter().try_for_each(|(known, _)| write.transaction.drop_view(&entry(known)))?;
    Ok(command)
}
