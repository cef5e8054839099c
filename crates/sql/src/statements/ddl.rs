//! `CREATE TABLE`, `DROP TABLE` and `TRUNCATE`.
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable, Expr, IndexColumn, ObjectName, ObjectType, PrimaryKeyConstraint, Spanned,
    Statement, TableConstraint, Truncate,
};
use engine::{Column, Retention, Schema, TableSettings, Transaction};

use crate::error::{Result, SqlError};
use crate::names::{fold, position, table_name};
use crate::parsing::table_options;
use crate::semantics::spelling::collations;
use crate::session::Session;
use crate::state::outcome::Command;
use crate::statements::indexes::{self, Unique};
use crate::syntax::source::Source;
use crate::values::types::column_type;

/// The table that a `CREATE TABLE` asks for.
pub(crate) struct NewTable {
    pub(crate) name: String,
    pub(crate) settings: TableSettings,
    pub(crate) if_not_exists: bool,
    pub(crate) position: Option<usize>,
}

impl NewTable {
    /// Reads the name, and refuses every clause that has no meaning here.
    pub(crate) fn read(create: &CreateTable, source: &Source) -> Result<NewTable> {
        let refuse = |what: &str, word: &str| Err(SqlError::unsupported(what).at(source.find_word(word)));
        match create {
            _ if create.temporary || create.global.is_some() => refuse("a temporary table", "temp")?,
            _ if create.or_replace => refuse("CREATE OR REPLACE TABLE", "replace")?,
            _ if create.external || create.file_format.is_some() || create.location.is_some() => {
                refuse("an external table", "external")?;
            }
            _ if create.like.is_some() || create.clone.is_some() => refuse("CREATE TABLE LIKE", "like")?,
            _ if create.inherits.is_some() => refuse("INHERITS", "inherits")?,
            _ if create.partition_of.is_some() || create.partition_by.is_some() => {
                refuse("a partitioned table", "partition")?;
            }
            _ if create.on_commit.is_some() => refuse("ON COMMIT", "commit")?,
            _ if create.without_rowid || create.strict => refuse("a table option", "table")?,
            _ => {}
        }
        let settings = table_options::read(&create.table_options, source)?;
        let name = table_name(&create.name, source)?;
        Ok(NewTable { name, settings, if_not_exists: create.if_not_exists, position: position(&create.name, source) })
    }

    /// The answer where the table is there already, if it is.
    pub(crate) fn skip(&self, transaction: &Transaction, tag: &str) -> Option<Command> {
        let exists = self.if_not_exists && transaction.table(&self.name).is_ok();
        let notice = || format!("relation \"{}\" already exists, skipping", self.name);
        exists.then(|| Command::new(tag).with_notice(notice()))
    }

    pub(crate) fn create(&self, transaction: &mut Transaction, schema: Schema) -> Result<engine::Table> {
        let created = transaction.create_table_with(&self.name, schema, self.settings);
        created.map_err(|error| SqlError::from(error).at(self.position))
    }
}

/// `CREATE TABLE` with a list of columns.
pub(crate) fn create_table(session: &mut Session, create: &CreateTable, source: &Source) -> Result<Command> {
    let new = NewTable::read(create, source)?;
    let mut command = Command::new("CREATE TABLE");
    let mut columns = Vec::with_capacity(create.columns.len());
    let (mut key, mut uniques): (Option<Vec<String>>, Vec<Unique>) = (None, Vec::new());
    for definition in &create.columns {
        let (column, is_key, unique, notice) = read_column(definition, source)?;
        uniques.extend(unique);
        if is_key {
            set_key(&mut key, vec![column.name.clone()], &new.name)?;
        }
        if let Some(notice) = notice {
            command = command.with_notice(format!("column \"{}\": {notice}", column.name));
        }
        columns.push(column);
    }
    for constraint in &create.constraints {
        if let TableConstraint::Unique(constraint) = constraint {
            uniques.push(Unique::of_table(constraint)?);
            continue;
        }
        set_key(&mut key, key_columns(constraint, source)?, &new.name)?;
    }
    let key = key.unwrap_or_default();
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    let schema = Schema::new(columns, &key).map_err(|error| SqlError::from(engine::Error::from(error)))?;
    let skipped = session.write("CREATE TABLE", |_, write| match new.skip(write.transaction, "CREATE TABLE") {
        Some(skipped) => Ok(Some(skipped)),
        None => {
            let table = new.create(write.transaction, schema.clone())?;
            uniques.iter().try_for_each(|unique| unique.create(write.transaction, &table))?;
            Ok(None)
        }
    })?;
    Ok(skipped.unwrap_or(command))
}

fn set_key(key: &mut Option<Vec<String>>, columns: Vec<String>, table: &str) -> Result<()> {
    match key.replace(columns) {
        None => Ok(()),
        Some(_) => Err(SqlError::new("42P16", format!("multiple primary keys for table \"{table}\" are not allowed"))),
    }
}

/// A column, whether it is the primary key, whether it is unique, and what there is to say about its type.
type ReadColumn = (Column, bool, Option<Unique>, Option<&'static str>);

fn read_column(definition: &ColumnDef, source: &Source) -> Result<ReadColumn> {
    let position = source.start(definition.span());
    let name = fold(&definition.name);
    let (data_type, notice) = column_type(&definition.data_type).map_err(|error| error.at(position))?;
    let mut column = Column::new(name, data_type);
    let (mut is_key, mut says_null, mut unique) = (false, false, None);
    for option in &definition.options {
        match &option.option {
            ColumnOption::Null => says_null = true,
            ColumnOption::NotNull => column.nullable = false,
            ColumnOption::PrimaryKey(constraint) => {
                check_key(constraint, position)?;
                is_key = true;
            }
            ColumnOption::Collation(collation) => collations::check(collation, source)?,
            ColumnOption::Unique(constraint) => unique = Some(Unique::of_column(&column.name, constraint)?),
            other => {
                let what = refused_option(other);
                let word = what.split(' ').next().unwrap_or(what);
                let position = source.find_word(word).or(position);
                let message = format!("{what} of column \"{}\"", column.name);
                return Err(SqlError::unsupported(message).at(position));
            }
        }
    }
    if says_null && (is_key || !column.nullable) {
        let message = format!("conflicting NULL/NOT NULL declarations for column \"{}\"", column.name);
        return Err(SqlError::syntax(message).at(position));
    }
    Ok((column, is_key, unique, notice))
}

fn refused_option(option: &ColumnOption) -> &'static str {
    match option {
        ColumnOption::Default(_) => "DEFAULT",
        ColumnOption::Check(_) => "CHECK",
        ColumnOption::ForeignKey(_) => "REFERENCES",
        ColumnOption::Generated { .. } | ColumnOption::Identity(_) => "GENERATED",
        _ => "this option",
    }
}

fn check_key(constraint: &PrimaryKeyConstraint, position: Option<usize>) -> Result<()> {
    let is_plain = constraint.index_type.is_none()
        && constraint.index_options.is_empty()
        && constraint.characteristics.is_none()
        && constraint.index_name.is_none();
    match is_plain {
        true => Ok(()),
        false => Err(SqlError::unsupported("an option of PRIMARY KEY").at(position)),
    }
}

/// The columns of a table-level `PRIMARY KEY`; other constraints are refused.
pub(crate) fn key_columns(constraint: &TableConstraint, source: &Source) -> Result<Vec<String>> {
    let refuse = |word: &str| Err(SqlError::unsupported(word).at(source.find_word(word)));
    let constraint = match constraint {
        TableConstraint::PrimaryKey(constraint) => constraint,
        TableConstraint::ForeignKey(_) => return refuse("FOREIGN KEY"),
        TableConstraint::Check(_) => return refuse("CHECK"),
        _ => return refuse("this constraint"),
    };
    check_key(constraint, source.find_word("primary"))?;
    let name = |column: &IndexColumn| match &column.column.expr {
        Expr::Identifier(ident) if column.operator_class.is_none() => Ok(fold(ident)),
        other => Err(SqlError::syntax(format!("{other} can't be part of a primary key"))),
    };
    constraint.columns.iter().map(name).collect()
}

/// `DROP TABLE`, with `PURGE` the past of the table, too; any other `DROP` is refused.
pub(crate) fn drop(session: &mut Session, statement: &Statement, source: &Source) -> Result<Command> {
    let Statement::Drop { object_type, if_exists, names, purge, temporary, .. } = statement else {
        return Err(SqlError::new("XX000", "not a DROP"));
    };
    if *object_type == ObjectType::Index && !purge && !temporary {
        return indexes::drop(session, names, *if_exists, source);
    }
    if *object_type != ObjectType::Table || *temporary {
        return Err(SqlError::unsupported(format!("DROP {object_type}")));
    }
    session.write("DROP TABLE", |_, write| {
        let mut command = Command::new("DROP TABLE");
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let table = table_name(name, source)?;
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
        for (table, position) in found {
            let purged = if *purge { write.transaction.set_retention(&table, Retention::None) } else { Ok(()) };
            let dropped = purged.and_then(|()| write.transaction.drop_table(&table));
            dropped.map_err(|error| SqlError::from(error).at(position))?;
        }
        Ok(command)
    })
}

/// `TRUNCATE`.
pub(crate) fn truncate(session: &mut Session, truncate: &Truncate, source: &Source) -> Result<Command> {
    if truncate.partitions.is_some() || truncate.identity.is_some() || truncate.on_cluster.is_some() {
        return Err(SqlError::unsupported("this form of TRUNCATE"));
    }
    let names: Vec<&ObjectName> = truncate.table_names.iter().map(|target| &target.name).collect();
    session.write("TRUNCATE TABLE", |_, write| {
        for name in &names {
            let emptied = write.transaction.truncate_table(&table_name(name, source)?);
            emptied.map_err(|error| SqlError::from(error).at(position(name, source)))?;
        }
        Ok(())
    })?;
    Ok(Command::new("TRUNCATE TABLE"))
}
