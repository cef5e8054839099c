//! `CREATE FUNCTION`, `DROP FUNCTION`, `ALTER FUNCTION` and `COMMENT ON FUNCTION`.
//!
//! A function's body is kept as it was written, and planned when the function is made with NULL for each argument, so that errors are
//! found and its columns are known. What it gives is then planned again with each statement that calls it.
use datafusion::sql::sqlparser::ast::{DataType as SqlType, Ident, ObjectName};
use engine::{
    Column, DataType, FunctionArgument, FunctionBody, FunctionDefinition, FunctionResult, FunctionVolatility,
    PUBLIC_SCHEMA, Schema, Transaction, ViewDefinition, name_in_schema, schema_and_name,
};

use crate::error::{Result, SqlError};
use crate::interrupt::made_types::MadeFunction;
use crate::names::made_functions::{entry, is_alike, of_kept};
use crate::names::schemas::{is_temporary, schema_of};
use crate::names::{fold, position, table_name};
use crate::parsing::function_statement::{FunctionStatement, Mode, NamedFunction, NewArgument, NewFunction, Returns};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::choices::CHECK_BODIES;
use crate::state::comments::{self, About};
use crate::state::outcome::Command;
use crate::statements::dependents::{Dependents, Object};
use crate::statements::function_users::{self, all};
use crate::statements::{function_body, schemas};
use crate::syntax::source::Source;
use crate::values::pg_types::{number_of, shown_name};
use crate::values::types::{column_type, domain_of};

/// Arguments at most, as in PostgreSQL.
const ARGUMENTS_MAX: usize = 100;

/// Runs a statement about functions.
pub(crate) fn run(session: &mut Session, statement: &FunctionStatement, source: &Source) -> Result<Command> {
    match statement {
        FunctionStatement::Create(new) => create(session, new, source),
        FunctionStatement::Drop { functions, if_exists, cascade, tag } => session.write(tag, |session, write| {
            let (mut command, mut found) = (Command::new(*tag), Vec::with_capacity(functions.len()));
            for named in functions {
                let (known, told) = dropped(session, write, named, *if_exists, command, source)?;
                found.extend(known);
                command = told;
            }
            let objects: Vec<Object> = found.iter().cloned().map(Object::Function).collect();
            let dependents = Dependents::of(write.transaction, session, &objects)?;
            let command = dependents.tell(*cascade, command)?;
            dependents.drop_along(write.transaction)?;
            found.iter().try_for_each(|known| function_users::drop(write.transaction, known))?;
            Ok(command)
        }),
        FunctionStatement::Rename(named, to) => session.write("ALTER FUNCTION", |session, write| {
            let (known, function) = find(write.transaction, session, named, source)?;
            let new = MadeFunction { name: fold(to), ..function.clone() };
            rename(session, write, (&known, &function), new)?;
            Ok(Command::new("ALTER FUNCTION"))
        }),
        FunctionStatement::SetSchema(named, schema) => session.write("ALTER FUNCTION", |session, write| {
            let (known, function) = find(write.transaction, session, named, source)?;
            let new = MadeFunction { schema: fold(schema), ..function.clone() };
            if new.schema != function.schema {
                rename(session, write, (&known, &function), new)?;
            }
            Ok(Command::new("ALTER FUNCTION"))
        }),
        FunctionStatement::Comment(named, text) => session.write("COMMENT", |session, write| {
            let (known, _) = find(write.transaction, session, named, source)?;
            let text = text.as_deref().filter(|text| !text.is_empty());
            write.transaction.remember(&About::Function(&known).key(), text)?;
            Ok(Command::new("COMMENT"))
        }),
        FunctionStatement::Owner(named) => session.write("ALTER FUNCTION", |session, write| {
            find(write.transaction, session, named, source)?;
            Ok(Command::new("ALTER FUNCTION"))
        }),
    }
}

/// Gives a function another name or schema. Views go on calling it, bodies of other functions call it no more, as in PostgreSQL.
pub(super) fn rename(
    session: &Session,
    write: &mut Write<'_>,
    (known, function): (&str, &MadeFunction),
    new: MadeFunction,
) -> Result<()> {
    let to = entry(&new.schema, &new.name, &new.types());
    schemas::check_there(write.transaction, &name_in_schema(&new.schema, &new.name))?;
    write.transaction.claim_name(known)?;
    write.transaction.claim_name(&to)?;
    if write.transaction.table(&to).is_ok() {
        let signature = new.signature().replace(',', ", ");
        let message = format!("function {signature} already exists in schema \"{}\"", new.schema);
        return Err(SqlError::new("42723", message));
    }
    function_users::rename(write.transaction, session, function, (&new.schema, &new.name))?;
    write.transaction.create_view(&to, no_columns()?, ViewDefinition::of_function(function.definition.clone()))?;
    write.transaction.drop_view(known)?;
    comments::rename_one(write.transaction, About::Function(known), Some(About::Function(&to)))
}

/// A type of an argument or a result.
fn type_of(data_type: &SqlType, at: Option<usize>) -> Result<DataType> {
    if let Some((domain, _)) = domain_of(data_type) {
        let what = format!("domain {} in a function", schema_and_name(&domain).1);
        return Err(SqlError::unsupported(what).at(at).hint("Use the type below it."));
    }
    let name = data_type.to_string().to_lowercase();
    match name.as_str() {
        "void" => {
            Err(SqlError::unsupported("type void here").at(at).hint("A function may return void, and no set of it."))
        }
        "trigger" => {
            let error = SqlError::unsupported("a function that returns trigger").at(at);
            Err(error.hint("There are no triggers."))
        }
        "record" => {
            let error = SqlError::unsupported("a function that returns record without columns").at(at);
            Err(error.hint("Name them by RETURNS TABLE or arguments with OUT."))
        }
        _ if name.starts_with("any") => Err(SqlError::unsupported(format!("type {name}")).at(at)),
        _ => column_type(data_type).map(|(found, _)| found).map_err(|error| error.at(at)),
    }
}

/// The name of a new function with the schema in which it will be.
fn new_name(session: &Session, name: &ObjectName, source: &Source) -> Result<(String, String)> {
    let known = table_name(name, source)?;
    let (schema, local) = schema_and_name(&known);
    let schema = match name.0.len() {
        1 if !session.path().is_plain() => session.schema_to_make_in()?,
        _ if is_temporary(schema) => {
            return Err(SqlError::unsupported("a temporary function").at(position(name, source)));
        }
        _ => schema.to_owned(),
    };
    Ok((schema, local.to_owned()))
}

fn create(session: &mut Session, new: &NewFunction, source: &Source) -> Result<Command> {
    let at = position(&new.name, source);
    let (schema, name) = new_name(session, &new.name, source)?;
    check_language(new, source)?;
    let Some((form, body)) = &new.body else {
        return Err(SqlError::new("42P13", "no function body specified"));
    };
    session.write("CREATE FUNCTION", |session, write| {
        let (result, returns_set) = result_of(write.transaction, session, new, source)?;
        let definition = FunctionDefinition {
            arguments: arguments_of(new, source)?,
            result,
            returns_set,
            body: body.clone(),
            form: *form,
            volatility: new.volatility.unwrap_or(FunctionVolatility::Volatile),
            is_strict: new.is_strict,
            options: new.options.clone(),
        };
        let function = MadeFunction { schema: schema.clone(), name: name.clone(), definition };
        let view = session.view(write.moment()?, Vec::new());
        let checks_body = view.is_on(CHECK_BODIES);
        // The parts of the standard's forms are looked at whatever a session says of texts.
        if checks_body || *form != FunctionBody::Text {
            function_body::check(session, view, &function)?;
        }
        write.end_reading();
        keep(write.transaction, function, new.or_replace).map_err(|error| error.at(at))?;
        Ok(Command::new("CREATE FUNCTION"))
    })
}

fn check_language(new: &NewFunction, source: &Source) -> Result<()> {
    let is_of_standard = matches!(new.body, Some((FunctionBody::Return | FunctionBody::Atomic, _)));
    match &new.language {
        None if is_of_standard => Ok(()),
        None => Err(SqlError::new("42P13", "no language specified")),
        Some(name) if fold(name) == "sql" && new.has_symbol => {
            Err(SqlError::new("42P13", "only one AS item needed for language \"sql\""))
        }
        Some(name) if fold(name) == "sql" => Ok(()),
        Some(_) if is_of_standard => {
            Err(SqlError::new("42P13", "inline SQL function body only valid for language SQL"))
        }
        Some(name) => {
            let error = SqlError::unsupported(format!("language \"{}\"", fold(name)));
            Err(error.at(source.start(name.span)).hint("Write the function in SQL: LANGUAGE sql."))
        }
    }
}

fn arguments_of(new: &NewFunction, source: &Source) -> Result<Vec<FunctionArgument>> {
    let (mut found, mut names) = (Vec::<FunctionArgument>::new(), Vec::new());
    for argument in &new.arguments {
        let at = argument.name.as_ref().and_then(|name| source.start(name.span));
        let name = argument.name.as_ref().map(fold).unwrap_or_default();
        if !name.is_empty() {
            if names.contains(&name) {
                let message = format!("parameter name \"{name}\" used more than once");
                return Err(SqlError::new("42P13", message).at(at));
            }
            names.push(name.clone());
        }
        if argument.mode == Mode::Out {
            if argument.default.is_some() {
                return Err(SqlError::new("42P13", "only input parameters can have default values"));
            }
            continue;
        }
        let data_type = type_of(&argument.data_type, at)?;
        let default = argument.default.as_ref().map(|(_, text)| text.clone());
        if default.is_none() && found.iter().any(|before| before.default.is_some()) {
            let message = "input parameters after one with a default value must also have defaults";
            return Err(SqlError::new("42P13", message));
        }
        found.push(FunctionArgument { name, data_type, default });
    }
    if found.len() > ARGUMENTS_MAX {
        let message = format!("functions cannot have more than {ARGUMENTS_MAX} arguments");
        return Err(SqlError::new("54023", message));
    }
    if let Some(Returns::Table(columns)) = &new.returns
        && let Some((column, _)) = columns.iter().find(|(column, _)| names.contains(&fold(column)))
    {
        let message = format!("parameter name \"{}\" used more than once", fold(column));
        return Err(SqlError::new("42P13", message).at(source.start(column.span)));
    }
    Ok(found)
}

/// What a new function gives, and whether any number of it.
fn result_of(
    transaction: &Transaction,
    session: &Session,
    new: &NewFunction,
    source: &Source,
) -> Result<(FunctionResult, bool)> {
    let out: Vec<&NewArgument> = new.arguments.iter().filter(|argument| argument.mode != Mode::In).collect();
    let column = |name: String, data_type: &SqlType| Ok((name, type_of(data_type, None)?));
    let returns_set = matches!(new.returns, Some(Returns::Set(_) | Returns::Table(_)));
    let said = match &new.returns {
        Some(Returns::Table(columns)) => {
            if !out.is_empty() {
                let message = "OUT and INOUT arguments aren't allowed in TABLE functions";
                return Err(SqlError::new("42P13", message));
            }
            let columns: Result<Vec<_>> =
                columns.iter().map(|(name, data_type)| column(fold(name), data_type)).collect();
            return Ok((FunctionResult::Table(columns?), true));
        }
        Some(Returns::One(said) | Returns::Set(said)) => Some(said),
        None if out.is_empty() => return Err(SqlError::new("42P13", "function result type must be specified")),
        None => None,
    };
    if let [only] = out[..] {
        let data_type = type_of(&only.data_type, None)?;
        check_said(said, &shown_name(data_type))?;
        let name = only.name.as_ref().map(fold).unwrap_or_default();
        return Ok((FunctionResult::Out(vec![(name, data_type)]), returns_set));
    }
    if !out.is_empty() {
        check_said(said, "record")?;
        let name = |(at, argument): (usize, &&NewArgument)| {
            let name = argument.name.as_ref().map(fold).unwrap_or_else(|| format!("column{}", at + 1));
            column(name, &argument.data_type)
        };
        let columns: Result<Vec<_>> = out.iter().enumerate().map(name).collect();
        return Ok((FunctionResult::Out(columns?), returns_set));
    }
    let Some(said) = said else { return Err(SqlError::new("42P13", "function result type must be specified")) };
    if !returns_set && said.to_string().eq_ignore_ascii_case("void") {
        return Ok((FunctionResult::Nothing, false));
    }
    match row_type(transaction, session, said, source)? {
        Some(table) => Ok((FunctionResult::RowOf(table), returns_set)),
        None => Ok((FunctionResult::Value(type_of(said, None)?), returns_set)),
    }
}

/// What RETURNS says has to be what the arguments with OUT are.
fn check_said(said: Option<&SqlType>, wanted: &str) -> Result<()> {
    let is_wanted = |said: &SqlType| match column_type(said) {
        Ok((found, _)) => shown_name(found) == wanted,
        Err(_) => said.to_string().eq_ignore_ascii_case(wanted),
    };
    match said.is_none_or(is_wanted) {
        true => Ok(()),
        false => {
            let message = format!("function result type must be {wanted} because of OUT parameters");
            Err(SqlError::new("42P13", message))
        }
    }
}

/// The table or view of whose rows a type is.
fn row_type(
    transaction: &Transaction,
    session: &Session,
    data_type: &SqlType,
    source: &Source,
) -> Result<Option<String>> {
    let SqlType::Custom(name, modifiers) = data_type else { return Ok(None) };
    if !modifiers.is_empty() || column_type(data_type).is_ok() {
        return Ok(None);
    }
    let Ok(known) = table_name(name, source) else { return Ok(None) };
    let names: Vec<String> = match (name.0.len(), schema_and_name(&known)) {
        (1, (PUBLIC_SCHEMA, local)) => session.path().names(local).collect(),
        _ => vec![known],
    };
    let is_there = |name: &String| transaction.table(name).is_ok_and(|table| table.sequence().is_none());
    let found = names.into_iter().find(is_there);
    match found {
        Some(name) if is_temporary(schema_of(&name)) => Err(SqlError::unsupported("a function of a temporary table")),
        found => Ok(found),
    }
}

/// The columns of what is kept as a view and is none.
fn no_columns() -> Result<Schema> {
    let columns = Schema::new(vec![Column::new("function", DataType::TEXT)], &[]);
    columns.map_err(|error| SqlError::from(engine::Error::from(error)))
}

/// Makes a function known, or replaces one.
fn keep(transaction: &mut Transaction, function: MadeFunction, or_replace: bool) -> Result<()> {
    let known = entry(&function.schema, &function.name, &function.types());
    schemas::check_there(transaction, &name_in_schema(&function.schema, &function.name))?;
    transaction.claim_name(&known)?;
    let before = transaction.table(&known).ok().and_then(|kept| of_kept(&known, &kept));
    let shown = function.name.clone();
    let definition = ViewDefinition::of_function(function.definition.clone());
    match before {
        Some(_) if !or_replace => {
            let message = format!("function \"{shown}\" already exists with same argument types");
            Err(SqlError::new("42723", message))
        }
        Some(before) => {
            check_replaces(&before, &function.definition)?;
            Ok(transaction.replace_view(&known, no_columns()?, definition)?)
        }
        None => Ok(transaction.create_view(&known, no_columns()?, definition)?),
    }
}

/// Refuses to replace a function by one that callers would find another.
fn check_replaces(before: &MadeFunction, definition: &FunctionDefinition) -> Result<()> {
    let old = &before.definition;
    let hint = format!("Use DROP FUNCTION {} first.", before.signature());
    let types = |result: &FunctionResult| match result {
        FunctionResult::Value(data_type) => vec![(String::new(), number_of(*data_type))],
        FunctionResult::Table(columns) | FunctionResult::Out(columns) => {
            columns.iter().map(|(name, data_type)| (name.clone(), number_of(*data_type))).collect()
        }
        FunctionResult::RowOf(table) => vec![(table.clone(), 0)],
        FunctionResult::Nothing => vec![("void".to_owned(), 0)],
    };
    let is_of_columns = |result: &FunctionResult| matches!(result, FunctionResult::Table(_) | FunctionResult::Out(_));
    if old.returns_set != definition.returns_set || types(&old.result) != types(&definition.result) {
        let error = SqlError::new("42P13", "cannot change return type of existing function").hint(hint);
        let are_rows = is_of_columns(&old.result) && is_of_columns(&definition.result);
        return Err(match are_rows && old.returns_set == definition.returns_set {
            true => error.detail("Row type defined by OUT parameters is different."),
            false => error,
        });
    }
    for (old, new) in old.arguments.iter().zip(&definition.arguments) {
        if !old.name.is_empty() && old.name != new.name {
            let message = format!("cannot change name of input parameter \"{}\"", old.name);
            return Err(SqlError::new("42P13", message).hint(hint));
        }
        if old.default.is_some() && new.default.is_none() {
            let message = "cannot remove parameter defaults from existing function";
            return Err(SqlError::new("42P13", message).hint(hint));
        }
    }
    Ok(())
}

/// The function that a statement names.
fn find(
    transaction: &Transaction,
    session: &Session,
    named: &NamedFunction,
    source: &Source,
) -> Result<(String, MadeFunction)> {
    let (at, known) = (position(&named.name, source), table_name(&named.name, source)?);
    let (schema, local) = schema_and_name(&known);
    let is_in = |function: &MadeFunction| match named.name.0.len() {
        1 => session.path().names(local).any(|name| schema_of(&name) == function.schema),
        _ => function.schema == schema,
    };
    let types = match &named.types {
        None => None,
        Some(types) => Some(types.iter().map(|of| type_of(of, at)).collect::<Result<Vec<DataType>>>()?),
    };
    let is_it = |function: &MadeFunction| {
        function.name == local
            && is_in(function)
            && types.as_ref().is_none_or(|types| is_alike(&function.definition, types))
    };
    let mut found: Vec<_> = all(transaction).into_iter().filter(|(_, function)| is_it(function)).collect();
    let parts: Vec<String> =
        named.name.0.iter().filter_map(|part| part.as_ident()).map(|part: &Ident| fold(part)).collect();
    let name = parts.join(".");
    match (found.len(), &types) {
        (0, None) => Err(SqlError::new("42883", format!("could not find a function named \"{name}\"")).at(at)),
        (0, Some(types)) => {
            let types: Vec<String> = types.iter().map(|of| shown_name(*of)).collect();
            let message = format!("function {name}({}) does not exist", types.join(", "));
            Err(SqlError::new("42883", message).at(at))
        }
        (1, _) => Ok(found.swap_remove(0)),
        (_, None) => {
            let error = SqlError::new("42725", format!("function name \"{name}\" is not unique")).at(at);
            Err(error.hint("Specify the argument list to select the function unambiguously."))
        }
        // The schemas of the path have one each; the first is meant.
        (_, Some(_)) => Ok(found.swap_remove(0)),
    }
}

/// A function that is to be dropped; none where it is missing and may be, which is told.
fn dropped(
    session: &Session,
    write: &mut Write<'_>,
    named: &NamedFunction,
    if_exists: bool,
    command: Command,
    source: &Source,
) -> Result<(Option<String>, Command)> {
    let (known, _) = match find(write.transaction, session, named, source) {
        Err(error) if if_exists && error.sqlstate == "42883" => {
            let message = match error.message.split_once("could not find a function named \"") {
                Some((_, name)) => format!("function {}() does not exist", name.trim_end_matches('"')),
                None => error.message.replace(", ", ","),
            };
            return Ok((None, command.with_notice(format!("{message}, skipping"))));
        }
        found => found?,
    };
    write.transaction.claim_name(&known)?;
    Ok((Some(known), command))
}
