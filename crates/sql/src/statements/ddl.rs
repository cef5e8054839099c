//! `CREATE TABLE`, `DROP TABLE` and `TRUNCATE`.
use datafusion::sql::sqlparser::ast::{
    CascadeOption, CreateTable, Expr, IndexColumn, ObjectName, ObjectType, OnCommit, Statement, TableConstraint,
    Truncate, TruncateIdentityOption,
};
use engine::{Check, Column, ColumnDefault, DataType, Deferral, Retention, Schema, TableSettings, Transaction};

use crate::error::{Result, SqlError};
use crate::names::schemas::{beside, is_temporary, local, schema_of};
use crate::names::{fold, position, table_name};
use crate::parsing::table_options;
use crate::session::Session;
use crate::session::temporary::AtCommit;
use crate::state::comments;
use crate::state::outcome::{Command, Notice};
use crate::statements::checks::{AskedCheck, Names, table_of_key};
use crate::statements::columns::{self, NewColumn, key_deferral};
use crate::statements::dependents::{Dependents, Object};
use crate::statements::foreign_keys::{self, AskedKey};
use crate::statements::indexes::{self, Unique};
use crate::statements::like::{self, Copied};
use crate::statements::{domain_rules, generated, held_types, schemas, sequence_users, wrong_kind};
use crate::syntax::constraint_tokens::INCLUDE;
use crate::syntax::source::Source;

/// The table that a `CREATE TABLE` asks for.
pub(crate) struct NewTable {
    pub(crate) name: String,
    pub(crate) settings: TableSettings,
    pub(crate) if_not_exists: bool,
    pub(crate) position: Option<usize>,
    /// What becomes of it at the end of its transaction, where it is temporary.
    at_commit: Option<AtCommit>,
}

impl NewTable {
    /// Reads the name, and refuses every clause that has no meaning here.
    pub(crate) fn read(create: &CreateTable, source: &Source) -> Result<NewTable> {
        let refuse = |what: &str, word: &str| Err(SqlError::unsupported(what).at(source.find_word(word)));
        match create {
            _ if create.on_commit.is_some() && !create.temporary => {
                let message = "ON COMMIT can only be used on temporary tables";
                return Err(SqlError::new("42P16", message).at(source.find_word("commit")));
            }
            _ if create.or_replace => refuse("CREATE OR REPLACE TABLE", "replace")?,
            _ if create.external || create.file_format.is_some() || create.location.is_some() => {
                refuse("an external table", "external")?;
            }
            _ if create.like.is_some() || create.clone.is_some() => refuse("CREATE TABLE LIKE", "like")?,
            _ if create.inherits.is_some() => refuse("INHERITS", "inherits")?,
            _ if create.partition_of.is_some() || create.partition_by.is_some() => {
                refuse("a partitioned table", "partition")?;
            }
            _ if create.without_rowid || create.strict => refuse("a table option", "table")?,
            _ => {}
        }
        let mut settings = table_options::read(&create.table_options, source)?;
        if create.temporary {
            // Nobody reads the past of what one session has.
            settings.retention = Retention::None;
        }
        let at_commit = match create.on_commit {
            Some(OnCommit::DeleteRows) => Some(AtCommit::DeleteRows),
            Some(OnCommit::Drop) => Some(AtCommit::Drop),
            Some(OnCommit::PreserveRows) | None => None,
        };
        let name = table_name(&create.name, source)?;
        let (if_not_exists, position) = (create.if_not_exists, position(&create.name, source));
        Ok(NewTable { name, settings, if_not_exists, position, at_commit })
    }

    /// The answer where the table is there already, if it is.
    pub(crate) fn skip(&self, transaction: &Transaction, tag: &str) -> Option<Command> {
        let exists = self.if_not_exists && transaction.table(&self.name).is_ok();
        let notice = || Notice::skipping("42P07", format!("relation \"{}\" already exists", self.name));
        exists.then(|| Command::new(tag).with_notice(notice()))
    }

    pub(crate) fn create(
        &self,
        session: &Session,
        transaction: &mut Transaction,
        schema: Schema,
        defaults: Vec<ColumnDefault>,
        checks: Vec<Check>,
    ) -> Result<engine::Table> {
        let settings = TableSettings { defaults, checks, ..self.settings.clone() };
        schemas::check_there(transaction, &self.name).map_err(|error| error.at(self.position))?;
        held_types::check_no_type(transaction, &self.name)?;
        held_types::hold(transaction, schema.columns(), &settings.defaults)?;
        let created = transaction.create_table_with(&self.name, schema, settings);
        let created = created.map_err(|error| SqlError::from(error).at(self.position))?;
        comments::forget(transaction, &self.name)?;
        if is_temporary(schema_of(&self.name)) {
            session.temporary.note(&self.name, self.at_commit);
        }
        Ok(created)
    }
}

/// `CREATE TABLE` with a list of columns.
pub(crate) fn create_table(session: &mut Session, create: &CreateTable, source: &Source) -> Result<Command> {
    if !like::is_asked(create) {
        return create_with(session, create, None, source);
    }
    let copied = session.write("CREATE TABLE", |_, write| like::spelled_out(write.transaction, create, source))?;
    create_with(session, &copied.create, Some(&copied), source)
}

/// Makes a table whose columns are all spelled out, and what is copied from other tables.
fn create_with(
    session: &mut Session,
    create: &CreateTable,
    copied: Option<&Copied>,
    source: &Source,
) -> Result<Command> {
    let mut new = NewTable::read(create, source)?;
    let mut command = Command::new("CREATE TABLE");
    let mut columns = Vec::with_capacity(create.columns.len());
    let (mut key, mut uniques): (Option<Key>, Vec<Unique>) = (None, Vec::new());
    let (mut checks, mut foreign_keys) = (Vec::new(), Vec::new());
    for definition in &create.columns {
        let mut column = columns::read(definition, &new.name, source)?;
        uniques.extend(column.unique.take());
        checks.append(&mut column.checks);
        foreign_keys.append(&mut column.foreign_keys);
        if let Some(of_column) = Key::of_column(&mut column) {
            set_key(&mut key, of_column, &new.name)?;
        }
        if let Some(notice) = column.notice {
            command = command.with_notice(format!("column \"{}\": {notice}", column.column.name));
        }
        columns.push(column);
    }
    for constraint in &create.constraints {
        match constraint {
            TableConstraint::Unique(constraint) => uniques.push(Unique::of_table(constraint, source)?),
            TableConstraint::Check(check) => checks.push(AskedCheck::read(check, None, source)?),
            TableConstraint::ForeignKey(key) => foreign_keys.push(AskedKey::of_table(key, source)?),
            _ => set_key(&mut key, Key::read(constraint, source)?, &new.name)?,
        }
    }
    let key = key.map(|key| key.over(columns.iter().map(|new| &new.column)));
    if let Some(key) = &key {
        new.settings.key_name = key.own_name(&new.name);
    }
    let key = key.map_or_else(Vec::new, |key| key.of_table(&mut columns, &mut uniques));
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    let schema = Schema::new(columns.iter().map(|new| new.column.clone()).collect(), &key)
        .map_err(|error| SqlError::from(engine::Error::from(error)))?;
    let skipped =
        session.write("CREATE TABLE", |session, write| match new.skip(write.transaction, "CREATE TABLE") {
            Some(skipped) => Ok(Some(skipped)),
            None => {
                let mut defaults = Vec::new();
                for (at, column) in columns.iter().enumerate() {
                    let default = column.default(at, &new.name, session, write, source)?;
                    defaults.extend(default.filter(|_| column.generated().is_none()));
                }
                defaults.extend(generated_columns(&columns, (&new.name, &schema), source)?);
                write.end_reading();
                check_key_name(write.transaction, &new)?;
                let mut checks = define_checks(write.transaction, (&new.name, &schema), &checks, source)?;
                for (at, column) in columns.iter().enumerate() {
                    if let Some(domain) = &column.domain {
                        let rules = domain_rules::rules(domain, at, (&new.name, schema.columns()), &checks)?;
                        checks.extend(rules);
                    }
                }
                let table = new.create(session, write.transaction, schema.clone(), defaults, checks)?;
                uniques.iter().try_for_each(|unique| unique.create(write.transaction, &table, source))?;
                add_foreign_keys(write.transaction, &table, &foreign_keys, source)?;
                copied.map_or(Ok(()), |copied| copied.complete(write.transaction, &table, source))?;
                Ok(None)
            }
        })?;
    Ok(skipped.unwrap_or(command))
}

/// Refuses the name of a primary key that something else has.
fn check_key_name(transaction: &Transaction, new: &NewTable) -> Result<()> {
    let Some(key) = &new.settings.key_name else { return Ok(()) };
    let name = beside(&new.name, key);
    let is_taken = name == new.name || transaction.table(&name).is_ok() || transaction.index(&name).is_ok();
    match is_taken || table_of_key(transaction, &name)?.is_some() {
        true => Err(SqlError::new("42P07", format!("relation \"{key}\" already exists"))),
        false => Ok(()),
    }
}

/// What the generated columns of a new table are computed by.
fn generated_columns(
    columns: &[NewColumn<'_>],
    (name, schema): (&str, &Schema),
    source: &Source,
) -> Result<Vec<ColumnDefault>> {
    let all: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].generated().is_some()).collect();
    let of = |at: &usize| {
        let Some(expr) = columns[*at].generated() else { return Ok(None) };
        let text = generated::define(expr, *at, (name, schema.columns()), &all, source)?;
        let domain = columns[*at].of_domain(true);
        let plain = ColumnDefault { column: *at, is_generated: true, domain, ..ColumnDefault::default() };
        Ok(Some(ColumnDefault { expression: Some(text), ..plain }))
    };
    all.iter().filter_map(|at| of(at).transpose()).collect()
}

/// The conditions that the rows of a new table are to meet.
fn define_checks(
    transaction: &Transaction,
    (name, schema): (&str, &Schema),
    asked: &[AskedCheck<'_>],
    source: &Source,
) -> Result<Vec<Check>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let mut names = Names::of_new(transaction);
    asked.iter().map(|check| check.define((name, schema.columns()), &mut names, source)).collect()
}

/// Gives a new table the foreign keys that it is to have.
fn add_foreign_keys(
    transaction: &mut Transaction,
    table: &engine::Table,
    asked: &[AskedKey<'_>],
    source: &Source,
) -> Result<()> {
    if asked.is_empty() {
        return Ok(());
    }
    let name = table.name().to_owned();
    let mut names = Names::of(transaction, table, &name);
    let define = |asked: &AskedKey<'_>| asked.define(transaction, (table, &name), &mut names, source);
    let keys = asked.iter().map(define).collect::<Result<Vec<_>>>()?;
    let defaults = transaction.settings(table).defaults;
    keys.iter().try_for_each(|key| generated::check_key(table, &defaults, key))?;
    Ok(transaction.set_foreign_keys(&name, keys)?)
}

fn set_key(key: &mut Option<Key>, asked: Key, table: &str) -> Result<()> {
    match key.replace(asked) {
        None => Ok(()),
        Some(_) => Err(SqlError::new("42P16", format!("multiple primary keys for table \"{table}\" are not allowed"))),
    }
}

/// A `PRIMARY KEY` that is asked for.
pub(crate) struct Key {
    name: Option<String>,
    pub(crate) columns: Vec<String>,
    /// When it is looked at, if a transaction may put that off.
    deferral: Option<Deferral>,
    /// Whether it is an index beside the table, which has no key itself: one that may be put off, or whose keys are folded.
    is_beside: bool,
}

impl Key {
    /// That of a constraint of a table; other constraints are refused.
    pub(crate) fn read(constraint: &TableConstraint, source: &Source) -> Result<Key> {
        let refuse = |word: &str| Err(SqlError::unsupported(word).at(source.find_word(word)));
        let constraint = match constraint {
            TableConstraint::PrimaryKey(constraint) => constraint,
            _ => return refuse("this constraint"),
        };
        let deferral = key_deferral(constraint, source.find_word("primary"), source)?;
        let column = |column: &IndexColumn| match &column.column.expr {
            Expr::Identifier(ident) if ident.value == INCLUDE => {
                let error = SqlError::unsupported("INCLUDE of a primary key").at(source.find_word("include"));
                Err(error.hint("Leave it out: all columns of a row are read from the table."))
            }
            Expr::Identifier(ident) if column.operator_class.is_none() => Ok(fold(ident)),
            other => Err(SqlError::syntax(format!("{other} can't be part of a primary key"))),
        };
        let columns = constraint.columns.iter().map(column).collect::<Result<_>>()?;
        let is_beside = deferral.is_some();
        Ok(Key { name: constraint.name.as_ref().map(fold), columns, deferral, is_beside })
    }

    /// That of a column.
    fn of_column(column: &mut NewColumn<'_>) -> Option<Key> {
        let (columns, deferral) = (vec![column.column.name.clone()], column.key_deferral);
        let is_beside = deferral.is_some();
        column.is_key.then(|| Key { name: column.key_name.take(), columns, deferral, is_beside })
    }

    /// The name that it has as the key of a table of this name, if that is not made of the table's.
    pub(crate) fn own_name(&self, table: &str) -> Option<String> {
        let said = self.name.clone().filter(|_| !self.is_beside);
        said.filter(|name| *name != format!("{}_pkey", local(table)))
    }

    /// It for a table of these columns.
    pub(crate) fn over<'c>(mut self, columns: impl Iterator<Item = &'c Column>) -> Key {
        let mut own = columns.filter(|column| self.columns.contains(&column.name));
        self.is_beside |= own.any(|column| column.data_type == DataType::CITEXT);
        self
    }

    /// It as a constraint beside the table, if it is one.
    pub(crate) fn put_off(&self) -> Option<Unique> {
        self.is_beside.then(|| Unique::of_key(self.name.clone(), self.columns.clone(), self.deferral))
    }

    /// The columns of the key that a new table of these columns has itself. One that may be put off becomes a constraint beside it.
    fn of_table(self, columns: &mut [NewColumn<'_>], uniques: &mut Vec<Unique>) -> Vec<String> {
        let Some(unique) = self.put_off() else { return self.columns };
        let own = columns.iter_mut().filter(|new| self.columns.contains(&new.column.name));
        own.for_each(|new| new.column.nullable = false);
        uniques.insert(0, unique);
        Vec::new()
    }
}

/// `DROP TABLE`, with `PURGE` the past of the table, too; any other `DROP` is refused.
pub(crate) fn drop(session: &mut Session, statement: &Statement, source: &Source) -> Result<Command> {
    let Statement::Drop { object_type, if_exists, names, purge, temporary, cascade, .. } = statement else {
        return Err(SqlError::new("XX000", "not a DROP"));
    };
    if *object_type == ObjectType::Index && !purge && !temporary {
        return indexes::drop(session, names, (*if_exists, *cascade), source);
    }
    if *object_type != ObjectType::Table || *temporary {
        return Err(SqlError::unsupported(format!("DROP {object_type}")));
    }
    session.write("DROP TABLE", |session, write| {
        let mut command = Command::new("DROP TABLE");
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let table = table_name(name, source)?;
            wrong_kind::check_dropped(write.transaction, &table, "table")?;
            if write.transaction.table(&table).is_ok() {
                found.push((table, position(name, source)));
            } else if *if_exists {
                command = command.with_notice(format!("table \"{table}\" does not exist, skipping"));
            } else {
                let message = format!("table \"{table}\" does not exist");
                return Err(SqlError::new("42P01", message).at(position(name, source)));
            }
        }
        found.dedup();
        drop_found(session, write.transaction, found, (*cascade, *purge), command)
    })
}

/// Drops tables that are there, each with where it is named, and what depends on them or belongs to them.
fn drop_found(
    session: &Session,
    transaction: &mut Transaction,
    found: Vec<(String, Option<usize>)>,
    (cascade, purge): (bool, bool),
    command: Command,
) -> Result<Command> {
    let objects: Vec<Object> = found.iter().map(|(table, _)| Object::Relation(table.clone())).collect();
    let dependents = Dependents::of(transaction, session, &objects)?;
    let command = dependents.tell(cascade, command)?;
    dependents.drop_along(transaction)?;
    drop_tables(transaction, &found, purge)?;
    Ok(command)
}

/// Drops tables, each with where it is named, on which nothing depends any more, and the sequences that belong to them.
pub(crate) fn drop_tables(
    transaction: &mut Transaction,
    tables: &[(String, Option<usize>)],
    purge: bool,
) -> Result<()> {
    // Those that go together may refer to each other.
    for (table, _) in tables {
        if !transaction.settings(&transaction.table(table)?).foreign_keys.is_empty() {
            transaction.set_foreign_keys(table, Vec::new())?;
        }
    }
    let mut sequences = Vec::new();
    for (table, position) in tables {
        sequences.extend(sequence_users::owned_by(transaction, table)?);
        let purged = if purge { transaction.set_retention(table, Retention::None) } else { Ok(()) };
        let dropped = purged.and_then(|()| transaction.drop_table(table));
        dropped.map_err(|error| SqlError::from(error).at(*position))?;
    }
    Ok(sequences.iter().try_for_each(|sequence| transaction.drop_sequence(sequence))?)
}

/// Has the sequences that belong to a table begin again.
fn restart_sequences(transaction: &mut Transaction, table: &str) -> Result<()> {
    for name in sequence_users::owned_by(transaction, table)? {
        if let Some(sequence) = transaction.sequence(&transaction.table(&name)?) {
            let options = *sequence.options();
            transaction.alter_sequence(&name, options, Some(options.start))?;
        }
    }
    Ok(())
}

/// `TRUNCATE`.
pub(crate) fn truncate(session: &mut Session, truncate: &Truncate, source: &Source) -> Result<Command> {
    if truncate.partitions.is_some() || truncate.on_cluster.is_some() {
        return Err(SqlError::unsupported("this form of TRUNCATE"));
    }
    let names: Vec<&ObjectName> = truncate.table_names.iter().map(|target| &target.name).collect();
    let cascade = matches!(truncate.cascade, Some(CascadeOption::Cascade));
    session.write("TRUNCATE TABLE", |_, write| {
        let mut tables = Vec::with_capacity(names.len());
        for name in &names {
            let table = table_name(name, source)?;
            let found = write.transaction.table(&table);
            let found = found.map_err(|error| SqlError::from(error).at(position(name, source)))?;
            if found.is_materialized() {
                wrong_kind::check_is(&found, "table")?;
            }
            tables.push(table);
        }
        let (tables, notices) = foreign_keys::emptied_with(write.transaction, tables, cascade)?;
        for table in tables {
            let at = names.iter().find(|name| table_name(name, source).is_ok_and(|name| name == table));
            let emptied = write.transaction.truncate_table(&table);
            emptied.map_err(|error| SqlError::from(error).at(at.and_then(|name| position(name, source))))?;
            if truncate.identity == Some(TruncateIdentityOption::Restart) {
                restart_sequences(write.transaction, &table)?;
            }
        }
        Ok(notices.into_iter().fold(Command::new("TRUNCATE TABLE"), Command::with_notice))
    })
}
