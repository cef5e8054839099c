//! `ALTER TABLE` that adds, drops, renames and retypes columns, or changes whether they take NULL.
//!
//! A new table takes the name of the old one, and gets its rows within the same transaction:
//!
//! ```text
//! old table   id a b c        kept columns, some of another type ─┐
//! new table   id b c new  ◀── columns that are added, filled ─────┴─ rows, then indexes
//! ```
//!
//! So others see either table and never a mixture: those that read the old one go on with it, also as of a moment before, and
//! those that want to write wait for the end of the transaction. What goes is settled first, then what gets another type, then
//! what is added, in whatever order the statement says it, as in PostgreSQL. Defaults, sequences, indexes, constraints and views follow.
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, DataType as SqlType, DropBehavior, Expr, Ident,
    ObjectName,
};
use engine::{Check, Column, ColumnDefault, ColumnDomain, DomainDefinition, Schema, Table, TableSettings};

use crate::access::index_expressions::text::parsed;
use crate::error::{DOMAIN_RULE, Result, SqlError};
use crate::names::{find_column, fold, table_name};
use crate::planning::default_define::define;
use crate::semantics::spelling::collations;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::comments;
use crate::state::outcome::{Command, Notice};
use crate::statements::alter_column::{self, Change as Filled};
use crate::statements::altered::{Pass, altered, renamed_in};
use crate::statements::checks::{check_rows, names_of};
use crate::statements::columns::{self, NewColumn};
use crate::statements::dependents::{Dependents, Object};
use crate::statements::index_columns::{self, Moved};
use crate::statements::sequence_users;
use crate::statements::table_rows::{KeptColumn, Rows};
use crate::statements::{
    alter_constraint, domain_rules, foreign_keys, generated, held_types, kept_constraints, view_columns,
};
use crate::syntax::alter_tokens;
use crate::syntax::source::Source;
use crate::values::long_name;
use crate::values::types::{column_type, domain_of};

/// What a statement does with the columns of a table.
#[derive(Clone)]
pub(crate) enum Change<'a> {
    Add {
        definition: &'a ColumnDef,
        if_not_exists: bool,
    },
    Drop {
        column: &'a Ident,
        if_exists: bool,
        cascade: bool,
    },
    NotNull {
        column: &'a Ident,
        is_set: bool,
    },
    Type {
        column: &'a Ident,
        data_type: &'a SqlType,
        using: Option<&'a Expr>,
    },
    /// What fills a column.
    Filled(&'a Ident, Filled<'a>),
}

impl Change<'_> {
    /// What PostgreSQL calls it.
    pub(crate) fn action(&self) -> &'static str {
        match self {
            Change::Add { .. } => "ADD COLUMN",
            Change::Drop { .. } => "DROP COLUMN",
            Change::NotNull { is_set: true, .. } => "ALTER COLUMN ... SET NOT NULL",
            Change::NotNull { is_set: false, .. } => "ALTER COLUMN ... DROP NOT NULL",
            Change::Type { .. } => "ALTER COLUMN ... SET DATA TYPE",
            Change::Filled(..) => "ALTER COLUMN ... SET DEFAULT",
        }
    }

    /// When it is done among the actions of a statement.
    pub(crate) fn pass(&self) -> Pass {
        match self {
            Change::Drop { .. } | Change::NotNull { is_set: false, .. } => Pass::Drop,
            Change::Type { .. } => Pass::Type,
            Change::Add { .. } => Pass::Add,
            Change::NotNull { is_set: true, .. } => Pass::NotNull,
            Change::Filled(_, filled) if filled.takes_away() => Pass::Drop,
            Change::Filled(_, Filled::OtherIdentity(_)) => Pass::Rest,
            Change::Filled(..) => Pass::Constraint,
        }
    }
}

/// The changes of columns that an action asks for, if it asks for any.
///
/// # Errors
/// If options of an identity column contradict each other.
pub(crate) fn change_of(operation: &AlterTableOperation) -> Result<Option<Vec<Change<'_>>>> {
    Ok(Some(match operation {
        AlterTableOperation::AddColumn { if_not_exists, column_def, column_position: None, .. } => {
            vec![Change::Add { definition: column_def, if_not_exists: *if_not_exists }]
        }
        AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
            let (if_exists, cascade) = (*if_exists, *drop_behavior == Some(DropBehavior::Cascade));
            column_names.iter().map(|column| Change::Drop { column, if_exists, cascade }).collect()
        }
        AlterTableOperation::AlterColumn { column_name: column, op } => vec![match op {
            AlterColumnOperation::SetNotNull => Change::NotNull { column, is_set: true },
            AlterColumnOperation::DropNotNull => Change::NotNull { column, is_set: false },
            AlterColumnOperation::SetDataType { data_type, using, .. } => {
                Change::Type { column, data_type, using: using.as_ref() }
            }
            _ => match alter_column::change_of(operation)? {
                Some((column, change)) => Change::Filled(column, change),
                None => return Ok(None),
            },
        }],
        _ => return Ok(None),
    }))
}

/// Changes the columns of a table, which the statement has for itself.
pub(crate) fn apply(
    session: &Session,
    write: &mut Write<'_>,
    table: &Table,
    changes: &[Change<'_>],
    source: &Source,
) -> Result<Vec<Notice>> {
    let filled = changes.iter().map(|change| match change {
        Change::Filled(column, change) => Some((*column, change.clone())),
        _ => None,
    });
    if let Some(filled) = filled.collect::<Option<Vec<_>>>() {
        return alter_column::apply(session, write, table, &filled, source);
    }
    let name = table.name().to_owned();
    let mut new = NewTable::of(session, write, table, source);
    changes.iter().try_for_each(|change| new.take_away(write, change))?;
    new.settings = write.transaction.settings(table);
    changes.iter().try_for_each(|change| new.change_type(change))?;
    changes.iter().try_for_each(|change| new.add(change))?;
    changes.iter().try_for_each(|change| new.refuse_null(change))?;
    new.make(write)?;
    new.fill(write, changes)?;
    let made = write.transaction.table(&name)?;
    let constraints = names_of(write.transaction, &made, &name);
    comments::keep_constraints(write.transaction, &name, &constraints)?;
    Ok(new.command.notices)
}

/// Drops a column with all that depends on it, and says nothing of that.
pub(crate) fn drop_column(
    session: &Session,
    write: &mut Write<'_>,
    table: &str,
    column: &str,
    source: &Source,
) -> Result<()> {
    write.transaction.lock_table(table)?;
    let column = Ident::with_quote('"', column);
    let change = Change::Drop { column: &column, if_exists: false, cascade: true };
    let old = write.transaction.table(table)?;
    let mut new = NewTable::of(session, write, &old, source);
    new.take_away(write, &change)?;
    new.settings = write.transaction.settings(&old);
    new.make(write)
}

/// The table that takes the old one's place.
struct NewTable<'a> {
    session: &'a Session,
    source: &'a Source<'a>,
    old: Table,
    settings: TableSettings,
    kept: Vec<KeptColumn<'a>>,
    added: Vec<NewColumn<'a>>,
    /// The sequences of columns that go.
    sequences: Vec<String>,
    /// The columns that go, by their places in the old table.
    dropped: Vec<usize>,
    /// The columns of a primary key that a transaction may put off.
    put_off_key: Vec<usize>,
    command: Command,
}

impl<'a> NewTable<'a> {
    fn of(session: &'a Session, write: &Write<'_>, old: &Table, source: &'a Source<'a>) -> NewTable<'a> {
        let put_off_key = foreign_keys::put_off_key(write.transaction, old);
        let columns = old.schema().columns().iter().cloned().enumerate();
        NewTable {
            session,
            source,
            old: old.clone(),
            settings: TableSettings::default(),
            kept: columns
                .map(|(from, column)| KeptColumn { column, from, using: None, is_retyped: false, domain: None })
                .collect(),
            added: Vec::new(),
            sequences: Vec::new(),
            dropped: Vec::new(),
            put_off_key,
            command: Command::new("ALTER TABLE"),
        }
    }

    fn name(&self) -> &str {
        self.old.name()
    }

    /// The place of a column among those that are kept.
    fn place(&self, column: &Ident) -> Result<usize> {
        let (name, at) = (fold(column), self.source.start(column.span));
        match self.kept.iter().position(|kept| kept.column.name == name) {
            Some(place) => Ok(place),
            // One that is there and goes is not found either.
            None => find_column(&self.old, &name, at).and_then(|_| {
                let message = format!("column \"{name}\" of relation \"{}\" does not exist", self.name());
                Err(SqlError::new("42703", message).at(at))
            }),
        }
    }

    fn is_of_key(&self, column: usize) -> bool {
        self.old.schema().primary_key().contains(&column) || self.put_off_key.contains(&column)
    }

    /// `DROP COLUMN`, and what is said of columns that PostgreSQL settles with it.
    fn take_away(&mut self, write: &mut Write<'_>, change: &Change<'a>) -> Result<()> {
        match change {
            Change::Drop { column, if_exists, cascade } => {
                let name = fold(column);
                if *if_exists && !self.kept.iter().any(|kept| kept.column.name == name) {
                    let table = self.name();
                    let notice = format!("column \"{name}\" of relation \"{table}\" does not exist, skipping");
                    self.command.notices.push(notice.into());
                    return Ok(());
                }
                let at = self.place(column)?;
                let dropped = [Object::Column(self.old.name().to_owned(), name)];
                let dependents = Dependents::of(write.transaction, self.session, &dropped)?;
                let command = std::mem::replace(&mut self.command, Command::new(""));
                self.command = dependents.tell(*cascade, command)?;
                dependents.drop_along(write.transaction)?;
                for (_, reader) in dependents.columns() {
                    if let Some(at) = self.kept.iter().position(|kept| kept.column.name == reader) {
                        self.release(write, at)?;
                        self.dropped.push(self.kept.remove(at).from);
                    }
                }
                let at = self.place(column).unwrap_or(at);
                self.release(write, at)?;
                self.dropped.push(self.kept.remove(at).from);
                Ok(())
            }
            Change::NotNull { column, is_set: false } => {
                let at = self.place(column)?;
                self.check_may_take_null(write, at)?;
                self.kept[at].column.nullable = true;
                Ok(())
            }
            Change::Filled(column, filled) if filled.takes_away() => {
                self.place(column)?;
                let filled = [(*column, filled.clone())];
                let said = alter_column::apply(self.session, write, &self.old, &filled, self.source)?;
                self.command.notices.extend(said);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes leave of a column: of its constraints, and of the sequences that belong to it.
    fn release(&mut self, write: &mut Write<'_>, at: usize) -> Result<()> {
        let from = self.kept[at].from;
        kept_constraints::release(write.transaction, &self.old, from)?;
        let column = &self.old.schema().columns()[from].name;
        comments::rename_column(write.transaction, self.old.name(), column, None)?;
        let defaults = write.transaction.settings(&self.old).defaults;
        let owned = defaults.into_iter().filter(|default| default.column == from).flat_map(|default| default.sequences);
        let owned: Vec<String> = owned.collect();
        sequence_users::forget(write.transaction, &owned)?;
        self.sequences.extend(owned);
        Ok(())
    }

    fn check_may_take_null(&self, write: &Write<'_>, at: usize) -> Result<()> {
        let KeptColumn { column, from, .. } = &self.kept[at];
        if self.is_of_key(*from) {
            return Err(SqlError::new("42P16", format!("column \"{}\" is in a primary key", column.name)));
        }
        let defaults = write.transaction.settings(&self.old).defaults;
        match defaults.iter().any(|default| default.column == *from && default.identity.is_some()) {
            true => {
                let of = format!("column \"{}\" of relation \"{}\"", column.name, self.name());
                Err(SqlError::syntax(format!("{of} is an identity column")))
            }
            false => Ok(()),
        }
    }

    fn change_type(&mut self, change: &Change<'a>) -> Result<()> {
        let Change::Type { column, data_type, using } = change else { return Ok(()) };
        let at = self.place(column)?;
        let domain = domain_of(data_type);
        let (data_type, notice) = match &domain {
            Some((_, domain)) => (domain.base, None),
            None => column_type(data_type).map_err(|error| error.at(self.source.start(column.span)))?,
        };
        if let Some(notice) = notice {
            self.command.notices.push(format!("column \"{}\": {notice}", fold(column)).into());
        }
        let (using, collation) = match using {
            Some(Expr::Collate { expr, collation }) if let Some(name) = collation_of_column(collation) => {
                let collation = collations::of_type(&name, data_type, self.source)?;
                (Some(expr.as_ref()), collation)
            }
            other => (*other, None),
        };
        let kept = &mut self.kept[at];
        (kept.column.data_type, kept.using, kept.is_retyped) = (data_type, using, true);
        (kept.column.collation, kept.domain) = (collation, domain);
        let from = kept.from;
        let identity = |default: &ColumnDefault| default.column == from && default.identity.is_some();
        let is_identity = self.settings.defaults.iter().any(identity);
        if is_identity && engine::SequenceOptions::bounds(data_type).is_none() {
            return Err(SqlError::new("22023", "identity column type must be smallint, integer, or bigint"));
        }
        Ok(())
    }

    fn add(&mut self, change: &Change<'a>) -> Result<()> {
        let Change::Add { definition, if_not_exists } = change else { return Ok(()) };
        let (name, table) = (fold(&definition.name), self.name().to_owned());
        let mut names = self.kept.iter().map(|kept| &kept.column).chain(self.added.iter().map(|new| &new.column));
        if names.any(|column| column.name == name) {
            let message = format!("column \"{name}\" of relation \"{table}\" already exists");
            if !if_not_exists {
                return Err(SqlError::new("42701", message));
            }
            self.command.notices.push(Notice::skipping("42701", message));
            return Ok(());
        }
        let new = columns::read(definition, &table, self.source)?;
        if new.key_deferral.is_some() {
            let error = SqlError::unsupported("a new column that is a DEFERRABLE key");
            return Err(error.hint("Add the key to the column by ADD PRIMARY KEY."));
        }
        let has_key = self.kept.iter().any(|kept| self.is_of_key(kept.from)) || self.added.iter().any(|new| new.is_key);
        if new.is_key && has_key {
            let message = format!("multiple primary keys for table \"{table}\" are not allowed");
            return Err(SqlError::new("42P16", message));
        }
        if let Some(notice) = new.notice {
            self.command.notices.push(format!("column \"{name}\": {notice}").into());
        }
        self.added.push(new);
        Ok(())
    }

    fn refuse_null(&mut self, change: &Change<'a>) -> Result<()> {
        let Change::NotNull { column, is_set: true } = change else { return Ok(()) };
        let name = fold(column);
        if let Some(new) = self.added.iter_mut().find(|new| new.column.name == name) {
            new.column.nullable = false;
            return Ok(());
        }
        let at = self.place(column)?;
        self.kept[at].column.nullable = false;
        Ok(())
    }

    fn schema(&self) -> Result<Schema> {
        let added = self.added.iter().map(|new| &new.column);
        let columns: Vec<Column> = self.kept.iter().map(|kept| &kept.column).chain(added.clone()).cloned().collect();
        let place = |column: &usize| self.kept.iter().find(|kept| kept.from == *column);
        // A key of which a column goes is none any more.
        let key = self.old.schema().primary_key().iter().map(place).collect::<Option<Vec<_>>>().unwrap_or_default();
        let new_key = self.added.iter().filter(|new| new.is_key).map(|new| new.column.name.as_str());
        let key: Vec<&str> = key.iter().map(|kept| kept.column.name.as_str()).chain(new_key).collect();
        Schema::new(columns, &key).map_err(|error| SqlError::from(engine::Error::from(error)))
    }

    /// What fills the columns that are kept, by their new places.
    fn kept_defaults(&self, write: &mut Write<'_>) -> Result<Vec<ColumnDefault>> {
        let mut defaults = Vec::new();
        for (at, KeptColumn { column, from, is_retyped, domain, .. }) in self.kept.iter().enumerate() {
            let default = self.settings.defaults.iter().find(|default| default.column == *from).cloned();
            if default.is_none() && domain.is_none() {
                continue;
            }
            let mut default = ColumnDefault { column: at, ..default.unwrap_or_default() };
            if *is_retyped {
                // A default of the domain that it was of goes with that.
                default.expression = default.expression.filter(|_| !default.domain.is_some_and(|domain| domain.fills));
                let fills = default.expression.is_none();
                default.domain = domain.as_ref().map(|(name, _)| ColumnDomain { name: name.clone(), fills });
                let of_domain = domain.as_ref().and_then(|(_, domain)| domain.default.clone());
                default.expression = default.expression.or(of_domain);
            }
            if default.is_generated {
                default.expression = self.moved_generation(default.expression.as_deref().unwrap_or_default())?;
                defaults.push(default);
                continue;
            }
            if let Some(text) = default.expression.as_deref().filter(|_| *is_retyped && default.identity.is_none()) {
                let (expr, view) = (parsed(text)?, self.session.view(write.latest_moment()?, Vec::new()));
                let defined = define(&self.session.planner, view, &expr, column, &Source::new(text));
                let to = long_name(column.data_type);
                let refused =
                    || format!("default for column \"{}\" cannot be cast automatically to type {to}", column.name);
                default.expression = defined.map_err(|_| SqlError::new("42804", refused()))?;
            }
            defaults.push(default);
        }
        Ok(defaults)
    }

    /// The text of a generated column's expression with the names that columns have from here on.
    fn moved_generation(&self, text: &str) -> Result<Option<String>> {
        let (old, schema) = (self.old.schema().columns(), self.schema()?);
        let place = |from: usize| self.kept.iter().position(|kept| kept.from == from);
        generated::renamed(text, old, (self.name(), schema.columns()), place).map(Some)
    }

    /// What the generated columns that are added are computed by.
    fn added_generations(&self, defaults: &[ColumnDefault]) -> Result<Vec<ColumnDefault>> {
        let schema = self.schema()?;
        let place = |at: usize| self.kept.len() + at;
        let added = || self.added.iter().enumerate().filter_map(|(at, new)| Some((place(at), new.generated()?)));
        let known = defaults.iter().filter(|default| default.is_generated).map(|default| default.column);
        let all: Vec<usize> = known.chain(added().map(|(at, _)| at)).collect();
        let of = |(at, expr): (usize, &Expr)| {
            let text = generated::define(expr, at, (self.name(), schema.columns()), &all, self.source)?;
            let domain = self.added[at - self.kept.len()].of_domain(true);
            let plain = ColumnDefault { column: at, is_generated: true, domain, ..ColumnDefault::default() };
            Ok(ColumnDefault { expression: Some(text), ..plain })
        };
        added().map(of).collect()
    }

    /// Makes the new table with the old one's rows, and all that belongs to it.
    fn make(&mut self, write: &mut Write<'_>) -> Result<()> {
        for kept in self.kept.iter().filter(|kept| kept.is_retyped) {
            let readers = generated::readers_of(&self.old, &self.settings.defaults, kept.from)?;
            if let Some(reader) = readers.into_iter().find(|reader| self.kept.iter().any(|kept| kept.from == *reader)) {
                return Err(generated::retyped(&kept.column.name, &self.old.schema().columns()[reader].name));
            }
            view_columns::check_retyped(write.transaction, &self.old, kept.from)?;
            if !kept.keeps_values(&self.old) {
                kept_constraints::check_retyped(&self.settings, &self.old, kept.from)?;
            }
        }
        let name = self.name().to_owned();
        let mut defaults = self.kept_defaults(write)?;
        for (at, new) in self.added.iter().enumerate() {
            let default = new.default(self.kept.len() + at, &name, self.session, write, self.source)?;
            defaults.extend(default.filter(|_| new.generated().is_none()));
        }
        let generations = self.added_generations(&defaults)?;
        defaults.extend(generations);
        // The rows that are there are not looked at again.
        let mut constraints = write.transaction.take_constraints(&name)?;
        let is_of_domain = |check: &Check, from: usize| check.name.starts_with(DOMAIN_RULE) && check.columns == [from];
        for kept in self.kept.iter().filter(|kept| kept.is_retyped) {
            constraints.checks.retain(|check| !is_of_domain(check, kept.from));
        }
        let settings = TableSettings { defaults, ..write.transaction.settings(&self.old) };
        held_types::hold(write.transaction, self.schema()?.columns(), &settings.defaults)?;
        let rows = Rows::of(self.session, write, &self.old, &self.kept, self.source)?;
        let indexes = write.transaction.indexes(&self.old);
        let new = write.transaction.replace_table(&name, self.schema()?, settings)?;
        rows.move_to(self.session, write, &new)?;
        write.end_reading();
        let places: Vec<(usize, usize)> = self.kept.iter().map(|kept| kept.from).zip(0..).collect();
        let moved = Moved { old: self.old.schema().columns(), new: &new, places: &places };
        index_columns::rebuild(write.transaction, &indexes, &moved)?;
        let retyped: Vec<usize> = self.kept.iter().filter(|kept| kept.is_retyped).map(|kept| kept.from).collect();
        kept_constraints::give(self.session, write, &constraints, &moved, &retyped)?;
        let given = write.transaction.settings(&new);
        given.foreign_keys.iter().try_for_each(|key| generated::check_key(&new, &given.defaults, key))?;
        for unique in self.added.iter().filter_map(|new| new.unique.as_ref()) {
            unique.create(write.transaction, &new, self.source)?;
        }
        for (at, kept) in self.kept.iter().enumerate() {
            if let Some(domain) = &kept.domain {
                self.rule_by_domain(write, &new, at, domain)?;
            }
        }
        for (at, column) in self.added.iter().enumerate() {
            if let Some(domain) = &column.domain {
                self.rule_by_domain(write, &new, self.kept.len() + at, domain)?;
            }
            for check in &column.checks {
                alter_constraint::add_check(self.session, write, (&new, &name), (check, false), self.source)?;
            }
            for key in &column.foreign_keys {
                alter_constraint::add_foreign_key(write, (&new, &name), (key, false), self.source)?;
            }
        }
        view_columns::forget(write.transaction, &name, &self.dropped)?;
        let sequences = std::mem::take(&mut self.sequences);
        sequences.iter().try_for_each(|sequence| write.transaction.drop_sequence(sequence))?;
        Ok(())
    }

    /// Has the values of a column that was added keep to its domain.
    fn rule_by_domain(
        &self,
        write: &mut Write<'_>,
        new: &Table,
        at: usize,
        domain: &(String, DomainDefinition),
    ) -> Result<()> {
        let (name, mut checks) = (self.name().to_owned(), write.transaction.settings(new).checks);
        let rules = domain_rules::rules(domain, at, (&name, new.schema().columns()), &checks)?;
        checks.extend(rules.iter().cloned());
        write.transaction.set_checks(&name, checks)?;
        rules.iter().try_for_each(|rule| check_rows(self.session, write, (new, &name), rule))
    }

    /// What fills columns from here on.
    fn fill(&mut self, write: &mut Write<'_>, changes: &[Change<'_>]) -> Result<()> {
        for change in changes {
            if let Change::Filled(column, filled) = change
                && !filled.takes_away()
            {
                let table = write.transaction.table(self.name())?;
                let said = alter_column::apply(self.session, write, &table, &[(column, filled.clone())], self.source)?;
                self.command.notices.extend(said);
            }
        }
        Ok(())
    }
}

/// The name of a collation that a column is given with its type.
fn collation_of_column(collation: &ObjectName) -> Option<ObjectName> {
    let (first, name) = collation.0.split_first()?;
    let is_marked = first.as_ident().is_some_and(|first| first.value == alter_tokens::COLLATION);
    is_marked.then(|| ObjectName(name.to_vec()))
}

/// Runs `ALTER TABLE ... RENAME COLUMN`.
pub(crate) fn rename(
    session: &mut Session,
    alter: &AlterTable,
    (from, to): (&Ident, &Ident),
    source: &Source,
) -> Result<Command> {
    let name = table_name(&alter.name, source)?;
    session.write("ALTER TABLE", |session, write| {
        let table = match altered(write.transaction, &name, alter, source)? {
            Ok(table) => table,
            Err(skipped) => return Ok(skipped),
        };
        let command = Command::new("ALTER TABLE");
        if table.view().is_some() {
            crate::statements::views::rename_column(write.transaction, &table, &fold(from), &fold(to))?;
            return Ok(command);
        }
        let table = match renamed_in(write.transaction, &name, alter, source)? {
            Ok(table) => table,
            Err(skipped) => return Ok(skipped),
        };
        rename_column(session, write, (&name, &table), (&fold(from), &fold(to)), source)?;
        Ok(command)
    })
}

/// Gives a column of a table, which no other transaction writes to, another name.
pub(crate) fn rename_column(
    session: &Session,
    write: &mut Write<'_>,
    (name, table): (&str, &Table),
    (from, to): (&str, &str),
    source: &Source,
) -> Result<()> {
    let mut new = NewTable::of(session, write, table, source);
    let Some(at) = table.schema().position(from) else {
        return Err(SqlError::new("42703", format!("column \"{from}\" does not exist")));
    };
    if table.schema().position(to).is_some() {
        let message = format!("column \"{to}\" of relation \"{name}\" already exists");
        return Err(SqlError::new("42701", message));
    }
    to.clone_into(&mut new.kept[at].column.name);
    new.settings = write.transaction.settings(table);
    new.make(write)?;
    comments::rename_column(write.transaction, name, from, Some(to))?;
    let names: Vec<String> = table.schema().columns().iter().map(|column| column.name.clone()).collect();
    crate::statements::view_users::rename_column(write.transaction, name, &names)
}
