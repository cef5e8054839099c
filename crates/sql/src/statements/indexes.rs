//! `CREATE INDEX`, `DROP INDEX`, and the indexes behind UNIQUE constraints.
use datafusion::sql::sqlparser::ast::{
    AlterIndexOperation, ConstraintCharacteristics, CreateIndex, Expr, Ident, IndexColumn, IndexOption, IndexType,
    NullsDistinctOption, ObjectName, UniqueConstraint,
};
use engine::{
    DataType, Deferral, IndexDefinition, IndexMethod, Table, TermClass, Transaction, name_in_schema, schema_and_name,
};

use crate::access::folded_parts;
use crate::access::index_expressions::text::column_names as names_of;
use crate::error::{Result, SqlError};
use crate::names::schemas::{beside, local};
use crate::names::{find_column, fold, made_names, position, table_name};
use crate::planning::index_compile::Kind;
use crate::session::Session;
use crate::state::comments::{self, About};
use crate::state::outcome::{Command, Notice};
use crate::statements::checks::{rename_key, table_of_key};
use crate::statements::dependents::{Dependents, Object};
use crate::statements::exclusion::AskedExclusion;
use crate::statements::index_parts::{collation, order, part, term_class};
use crate::statements::{foreign_keys, index_options, index_parts, operator_classes, told_methods, wrong_kind};
use crate::syntax::constraint_tokens::INCLUDE;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;

/// `CREATE INDEX`. Others go on writing to the table meanwhile, with CONCURRENTLY and without.
pub(crate) fn create(session: &mut Session, create: &CreateIndex, source: &Source) -> Result<Command> {
    let refuse = |what: &str, word: &str| Err(SqlError::unsupported(what).at(source.find_word(word)));
    match create {
        _ if !create.alter_options.is_empty() => refuse("an option of an index", "index")?,
        _ => {}
    }
    if create.concurrently && session.block.is_some() {
        let message = "CREATE INDEX CONCURRENTLY cannot run inside a transaction block";
        return Err(SqlError::new("25001", message));
    }
    let method = method(create, source)?;
    let said = index_options::said(&create.with, method, source)?;
    told_methods::check(method, create.unique, !create.include.is_empty(), create.columns.len())?;
    let table = table_name(&create.table_name, source)?;
    let name = create.name.as_ref().map(|name| table_name(name, source)).transpose()?;
    // An index is in the schema of its table.
    let name = name.map(|name| name_in_schema(schema_and_name(&table).0, local(&name)));
    let at = create.name.as_ref().and_then(|name| position(name, source));
    session.write("CREATE INDEX", |_, write| {
        let mut command = Command::new("CREATE INDEX");
        let found = write.transaction.table(&table);
        let found = found.map_err(|error| SqlError::from(error).at(position(&create.table_name, source)))?;
        wrong_kind::check_is_no_view(&found, || format!("cannot create index on relation \"{table}\""))?;
        if let Some(name) = name.as_ref().filter(|name| create.if_not_exists && is_taken(write.transaction, name)) {
            command = command.with_notice(Notice::skipping("42P07", format!("relation \"{name}\" already exists")));
            return Ok(command);
        }
        let included = |ident: &Ident| find_column(&found, &fold(ident), source.start(ident.span));
        let included = create.include.iter().map(included).collect::<Result<_>>()?;
        let part = |column| part(column, &found, method, source);
        let parts = create.columns.iter().map(part).collect::<Result<Vec<_>>>()?;
        let types: Vec<DataType> = parts.iter().map(|part| index_parts::type_of(part, &found)).collect();
        let kept = told_methods::keeping(method, &types)?;
        let orders = create.columns.iter().map(order).collect();
        let terms = |(column, part)| term_class(column, part, &found);
        let classes: Option<Vec<TermClass>> = create.columns.iter().zip(&parts).map(terms).collect();
        let mut definition = IndexDefinition::of(String::new(), parts).using(kept).told_as(method);
        definition = definition.ordered(orders).including(included);
        let named = |column: &IndexColumn| {
            column.operator_class.as_ref().and_then(last_part).filter(|name| operator_classes::is_other(name, method))
        };
        definition = definition.classed(create.columns.iter().map(named).collect());
        let parts = create.columns.iter().zip(&definition.parts);
        let collations = parts.map(|(column, part)| collation(column, part, &found, source)).collect::<Result<_>>()?;
        definition = definition.collated(collations);
        if method == IndexMethod::Gin {
            definition.classes = classes.unwrap_or_default();
        }
        (definition.unique, definition.budget_bytes) = (create.unique, said.budget);
        definition.options.clone_from(&said.others);
        definition.nulls_equal = create.unique && create.nulls_distinct == Some(false);
        let predicate = create.predicate.as_ref();
        let predicate = predicate.map(|of| crate::planning::index_define::define(of, &found, Kind::Predicate, source));
        definition.predicate = predicate.transpose()?;
        let columns = names_of(&definition, found.schema());
        let free = || free_name(write.transaction, &found, &columns, "idx");
        definition.name = name.clone().unwrap_or_else(free);
        check_no_key(write.transaction, &definition.name).map_err(|error| error.at(at))?;
        write.transaction.create_index(&table, definition).map_err(|error| match error {
            // It is about a row.
            error @ engine::Error::Expression(_) => error.into(),
            error => SqlError::from(error).at(at),
        })?;
        Ok(command)
    })
}

fn method(create: &CreateIndex, source: &Source) -> Result<IndexMethod> {
    let mut using = create.using.as_ref();
    for option in &create.index_options {
        match option {
            IndexOption::Using(method) => using = Some(method),
            _ => return Err(SqlError::unsupported("an option of an index")),
        }
    }
    let name = match using {
        None => return Ok(IndexMethod::default()),
        Some(IndexType::Custom(name)) => fold(name),
        Some(other) => other.to_string().to_lowercase(),
    };
    IndexMethod::named(&name).ok_or_else(|| {
        SqlError::new("42704", format!("access method \"{name}\" does not exist")).at(source.find_word(&name))
    })
}

/// The names of the columns of a constraint. Whichever order they are asked for in, the index is read from either end.
fn column_names(columns: &[IndexColumn]) -> Result<Vec<String>> {
    let name = |column: &IndexColumn| match &column.column.expr {
        Expr::Identifier(ident) if column.operator_class.is_none() => Ok(fold(ident)),
        Expr::Identifier(_) => Err(SqlError::unsupported("an operator class")),
        other => Err(SqlError::syntax(format!("{other} can't be part of a UNIQUE constraint"))),
    };
    columns.iter().map(name).collect()
}

/// Refuses the name of a primary key for another index.
fn check_no_key(transaction: &Transaction, name: &str) -> Result<()> {
    match table_of_key(transaction, name)? {
        None => Ok(()),
        Some(_) => Err(SqlError::new("42P07", format!("relation \"{}\" already exists", local(name)))),
    }
}

fn is_taken(transaction: &Transaction, name: &str) -> bool {
    transaction.index(name).is_ok() || transaction.table(name).is_ok()
}

/// A name that nothing has yet, made as PostgreSQL does.
fn free_name(transaction: &Transaction, table: &Table, columns: &[String], suffix: &str) -> String {
    free_name_of(transaction, table.name(), columns, suffix)
}

/// A name that nothing has yet, for what belongs to columns of a table of this name.
pub(crate) fn free_name_of(transaction: &Transaction, table: &str, columns: &[String], suffix: &str) -> String {
    made_names::free_name(table, &columns.join("_"), suffix, |name| !is_taken(transaction, name))
}

/// `ALTER INDEX ... RENAME TO`.
pub(crate) fn alter(
    session: &mut Session,
    name: &ObjectName,
    operation: &AlterIndexOperation,
    source: &Source,
) -> Result<Command> {
    let AlterIndexOperation::RenameIndex { index_name: to } = operation;
    let from = table_name(name, source)?;
    let new = beside(&from, &table_name(to, source)?);
    session.write("ALTER INDEX", |_, write| {
        let missing = || SqlError::new("42P01", format!("relation \"{}\" does not exist", local(&from)));
        let renamed = match write.transaction.index(&from) {
            Ok((table, index)) => rename(write.transaction, &table, index.definition(), new.clone()),
            Err(_) => {
                let keyed = table_of_key(write.transaction, &from)?;
                let keyed = keyed.ok_or_else(|| missing().at(position(name, source)))?;
                if is_taken(write.transaction, &new) || table_of_key(write.transaction, &new)?.is_some() {
                    let message = format!("relation \"{}\" already exists", local(&new));
                    return Err(SqlError::new("42P07", message).at(position(to, source)));
                }
                rename_key(write.transaction, keyed.name(), local(&new).to_owned())
            }
        };
        renamed.map_err(|error| error.at(position(to, source)))?;
        Ok(Command::new("ALTER INDEX"))
    })
}

/// Gives an index another name, and so the constraint that it is behind: it is made anew.
pub(crate) fn rename(transaction: &mut Transaction, table: &str, from: &IndexDefinition, to: String) -> Result<()> {
    check_no_key(transaction, &to)?;
    transaction.drop_index(&from.name)?;
    comments::rename(transaction, &from.name, &to)?;
    let (old, new) = (About::Constraint(table, local(&from.name)), About::Constraint(table, local(&to)));
    comments::rename_one(transaction, old, Some(new))?;
    transaction.create_index(table, IndexDefinition { name: to.clone(), ..from.clone() })?;
    Ok(())
}

/// `DROP INDEX`.
pub(crate) fn drop(
    session: &mut Session,
    names: &[ObjectName],
    (if_exists, cascade): (bool, bool),
    source: &Source,
) -> Result<Command> {
    session.write("DROP INDEX", |session, write| {
        let (mut command, mut dropped) = (Command::new("DROP INDEX"), Vec::with_capacity(names.len()));
        for name in names {
            let (index, at) = (table_name(name, source)?, position(name, source));
            match write.transaction.index(&index) {
                Ok((table, found)) if found.definition().is_constraint => {
                    let what = format!("constraint {index} on table {table}");
                    let error = SqlError::new("2BP01", format!("cannot drop index {index} because {what} requires it"));
                    return Err(error.hint(format!("You can drop {what} instead.")).at(at));
                }
                Ok(_) => {}
                Err(_) if if_exists => {
                    command = command.with_notice(format!("index \"{index}\" does not exist, skipping"));
                    continue;
                }
                Err(error) => return Err(SqlError::from(error).at(at)),
            }
            dropped.push(index);
        }
        let objects: Vec<Object> = dropped.iter().cloned().map(Object::Index).collect();
        let dependents = Dependents::of(write.transaction, session, &objects)?;
        let command = dependents.tell(cascade, command)?;
        dependents.drop_along(write.transaction)?;
        dropped.iter().try_for_each(|index| write.transaction.drop_index(index))?;
        Ok(command)
    })
}

/// When a constraint of uniqueness is looked at, if its characteristics let a transaction put that off.
pub(crate) fn deferral(asked: Option<&ConstraintCharacteristics>, source: &Source) -> Result<Option<Deferral>> {
    Ok(match foreign_keys::deferral(asked, source)? {
        (false, _) => None,
        (true, false) => Some(Deferral::Immediate),
        (true, true) => Some(Deferral::Deferred),
    })
}

/// A UNIQUE constraint, or an exclusion constraint, of a table that is to be made.
#[derive(Default)]
pub(crate) struct Unique {
    name: Option<String>,
    columns: Vec<String>,
    /// The columns that its index is asked to have beside these.
    included: Vec<String>,
    /// Whether NULL equals NULL in it.
    nulls_equal: bool,
    /// When it is looked at, if a transaction may put that off.
    deferral: Option<Deferral>,
    /// Whether it is the primary key.
    is_primary: bool,
    /// What it excludes, if it is no UNIQUE constraint but an exclusion constraint.
    exclusion: Option<AskedExclusion>,
}

impl Unique {
    /// The constraint of one column.
    pub(crate) fn of_column(
        column: &str,
        name: Option<&Ident>,
        constraint: &UniqueConstraint,
        nulls_equal: bool,
        source: &Source,
    ) -> Result<Unique> {
        let asked = Unique::of_table(constraint, source)?;
        Ok(Unique { name: name.map(fold), columns: vec![column.to_owned()], nulls_equal, ..asked })
    }

    /// A constraint of a table.
    pub(crate) fn of_table(constraint: &UniqueConstraint, source: &Source) -> Result<Unique> {
        let name = constraint.name.as_ref().map(fold);
        if let exclusion @ Some(_) = AskedExclusion::read(constraint)? {
            let deferral = deferral(constraint.characteristics.as_ref(), source)?;
            return Ok(Unique { name, exclusion, deferral, ..Unique::default() });
        }
        let is_plain =
            constraint.index_type.is_none() && constraint.index_options.is_empty() && constraint.index_name.is_none();
        if !is_plain {
            return Err(SqlError::unsupported("an option of UNIQUE"));
        }
        let deferral = deferral(constraint.characteristics.as_ref(), source)?;
        let nulls_equal = constraint.nulls_distinct == NullsDistinctOption::NotDistinct;
        let mut columns = column_names(&constraint.columns)?;
        let mark = columns.iter().position(|column| column == INCLUDE);
        let included = mark.map_or_else(Vec::new, |at| columns.split_off(at).split_off(1));
        Ok(Unique { name, columns, included, nulls_equal, deferral, ..Unique::default() })
    }

    /// A primary key that a transaction may put off, or whose keys are not its columns as they are.
    pub(crate) fn of_key(name: Option<String>, columns: Vec<String>, deferral: Option<Deferral>) -> Unique {
        Unique { name, columns, deferral, is_primary: true, ..Unique::default() }
    }

    /// Makes the index behind it.
    pub(crate) fn create(&self, transaction: &mut Transaction, table: &Table, source: &Source) -> Result<()> {
        let named = self.name.as_ref().map(|name| name_in_schema(schema_and_name(table.name()).0, name));
        if let Some(exclusion) = &self.exclusion {
            let mut definition = exclusion.define(table, source)?;
            let free = || free_name(transaction, table, &names_of(&definition, table.schema()), "excl");
            definition.name = named.unwrap_or_else(free);
            definition.deferral = self.deferral;
            transaction.create_index(table.name(), definition)?;
            return Ok(());
        }
        let position = |name: &String| {
            let missing = || SqlError::new("42703", format!("column \"{name}\" named in key does not exist"));
            table.schema().position(name).ok_or_else(missing)
        };
        let positions = |names: &[String]| names.iter().map(position).collect::<Result<Vec<_>>>();
        let (columns, included) = (positions(&self.columns)?, positions(&self.included)?);
        let mut types = columns.iter().map(|column| table.schema().columns()[*column].data_type);
        types.try_for_each(|data_type| operator_classes::check_default(data_type, IndexMethod::default()))?;
        let name = named.unwrap_or_else(|| match self.is_primary {
            true => format!("{}_pkey", table.name()),
            false => free_name(transaction, table, &[&self.columns[..], &self.included].concat(), "key"),
        });
        let parts = columns.iter().map(|column| folded_parts::of_column(*column, table.schema().columns()));
        let mut definition = IndexDefinition::of(name, parts.collect()).unique().including(included);
        (definition.is_constraint, definition.nulls_equal) = (true, self.nulls_equal);
        definition.is_primary = self.is_primary;
        check_no_key(transaction, &definition.name)?;
        if let Some(deferral) = self.deferral {
            definition = definition.deferrable(deferral);
        }
        transaction.create_index(table.name(), definition)?;
        Ok(())
    }
}
