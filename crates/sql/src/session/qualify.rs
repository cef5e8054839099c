//! Schemas for names that say none: by the session's search path each is given the schema in which it is found, and new ones that in
//! which they are made. Statements of sessions with the plain path are left as they are.
//!
//! ```text
//! SELECT t.a FROM t JOIN s.u ...       ->  SELECT t.a FROM pg_temp_7.t JOIN s.u ...
//! CREATE TEMP TABLE t (a INT)          ->  CREATE TEMP TABLE pg_temp_7.t (a INT)
//! ```
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AlterTableOperation, ColumnOption, CommentObject, CreateTable, DataType as SqlType, ForeignKeyConstraint, Ident,
    ObjectName, ObjectNamePart, ObjectType, Query, Statement, TableConstraint, TableFactor, VisitorMut,
};
use engine::{PUBLIC_SCHEMA, name_in_schema, schema_and_name};

use crate::error::{Result, SqlError};
use crate::names::position;
use crate::names::schemas::{OWN_TEMPORARY, SearchPath, is_temporary};
use crate::names::tables::Tables;
use crate::parsing::copy_options::Subject;
use crate::parsing::grant_statement::{GrantedKind, GrantedOn};
use crate::parsing::maintenance::Maintenance;
use crate::parsing::materialized_statement::MaterializedStatement;
use crate::parsing::owner::OwnedKind;
use crate::parsing::sequence_statement::{PlacedName, SequenceStatement};
use crate::parsing::view_statement::ViewStatement;
use crate::parsing::{OwnStatement, ParsedStatement};
use crate::session::Session;
use crate::syntax::identifiers::fold;
use crate::syntax::like_tokens::LIKE;
use crate::syntax::source::Source;
use crate::syntax::walk::WalkMut;
use crate::syntax::with_scope::WithScope;

impl Session {
    /// Says the schema of each name of a statement.
    pub(crate) fn qualify(&self, parsed: &mut ParsedStatement, source: &Source) -> Result<()> {
        if let ParsedStatement::Statement(statement) | ParsedStatement::Composed(statement, _) = parsed
            && let Statement::CreateTable(create) = statement.as_mut()
        {
            self.new_table(create, source)?;
        }
        if let ParsedStatement::Statement(statement) = parsed
            && let Statement::Prepare { .. } = **statement
        {
            // Its names are looked up whenever it is run.
            return Ok(());
        }
        let path = self.tables.path();
        if path.is_plain() && !source.text.contains(OWN_TEMPORARY) && !makes_temporary(parsed) {
            return Ok(());
        }
        let mut names = Names { path, tables: &self.tables, scope: WithScope::default() };
        if let Some(query) = parsed.query_mut() {
            let _ = query.walk_mut(&mut names);
        }
        match parsed {
            ParsedStatement::Statement(statement) | ParsedStatement::Composed(statement, _) => {
                names.statement(statement);
                let _ = statement.walk_mut(&mut names);
            }
            ParsedStatement::Own(own) => self.own(own, &mut names)?,
            ParsedStatement::Locking(..) | ParsedStatement::Empty | ParsedStatement::Control(_) => {}
        }
        Ok(())
    }

    fn own(&self, own: &mut OwnStatement, names: &mut Names<'_>) -> Result<()> {
        match own {
            OwnStatement::Copy(copy) => match &mut copy.subject {
                Subject::Table { name, .. } => names.relation(name),
                Subject::Query(query) => {
                    let _ = query.walk_mut(names);
                }
            },
            OwnStatement::View(ViewStatement::Create(new))
            | OwnStatement::Materialized(MaterializedStatement::Create { new, .. }) => {
                let _ = new.query.walk_mut(names);
                self.new_name(&mut new.view, new.is_temporary)?;
            }
            OwnStatement::View(
                ViewStatement::Rename { view, .. }
                | ViewStatement::RenameColumn { view, .. }
                | ViewStatement::SetCheck { view, .. },
            )
            | OwnStatement::Materialized(
                MaterializedStatement::Refresh { view, .. }
                | MaterializedStatement::Rename { view, .. }
                | MaterializedStatement::RenameColumn { view, .. },
            ) => names.placed(view),
            OwnStatement::View(ViewStatement::Drop { views, .. })
            | OwnStatement::Materialized(MaterializedStatement::Drop { views, .. }) => {
                views.iter_mut().for_each(|view| names.placed(view))
            }
            OwnStatement::Sequence(SequenceStatement::Create { sequence, is_temporary, options, .. }) => {
                options.owner.iter_mut().flatten().for_each(|owner| names.named(&mut owner.table, owner.says_schema));
                self.new_name(sequence, *is_temporary)?;
            }
            OwnStatement::Sequence(SequenceStatement::Alter { sequence, options, .. }) => {
                options.owner.iter_mut().flatten().for_each(|owner| names.named(&mut owner.table, owner.says_schema));
                names.placed(sequence);
            }
            OwnStatement::Sequence(SequenceStatement::Rename { sequence, .. }) => names.placed(sequence),
            OwnStatement::Sequence(SequenceStatement::Drop { sequences, .. }) => {
                sequences.iter_mut().for_each(|sequence| names.placed(sequence));
            }
            OwnStatement::Lock(lock) => lock.tables.iter_mut().for_each(|table| names.placed(table)),
            OwnStatement::SetSchema(set) => names.placed(&mut set.name),
            OwnStatement::Owner(owner) | OwnStatement::Maintenance(Maintenance::Indexes { of: owner, .. }) => {
                match owner.kind {
                    OwnedKind::Table | OwnedKind::View | OwnedKind::MaterializedView | OwnedKind::Sequence => {
                        names.relation(&mut owner.name)
                    }
                    OwnedKind::Index => names.index(&mut owner.name),
                    _ => {}
                }
            }
            OwnStatement::AlterIndex(alter) => names.index(&mut alter.name),
            OwnStatement::Grant(grant) => {
                if let GrantedOn::Named(GrantedKind::Relation | GrantedKind::Sequence, relations) = &mut grant.on {
                    relations.iter_mut().for_each(|name| names.relation(name));
                }
            }
            OwnStatement::Comment(comment) if !comment.of_domain => names.relation(&mut comment.of),
            OwnStatement::AlterDatabase(_)
            | OwnStatement::Cursor(_)
            | OwnStatement::Do(_)
            | OwnStatement::Maintenance(Maintenance::Tables { .. })
            | OwnStatement::Domain(_)
            | OwnStatement::Function(_)
            | OwnStatement::Extension(_)
            | OwnStatement::Comment(_) => {}
        }
        Ok(())
    }

    /// The schema in which something is made whose name says none.
    pub(crate) fn schema_to_make_in(&self) -> Result<String> {
        let first = self.tables.path().schemas(&self.tables).into_iter().next();
        first.ok_or_else(|| SqlError::new("3F000", "no schema has been selected to create in"))
    }

    fn new_name(&self, placed: &mut PlacedName, is_temporary: bool) -> Result<()> {
        let (schema, local) = schema_and_name(&placed.name);
        let said = Some(schema).filter(|schema| *schema != PUBLIC_SCHEMA || placed.says_schema);
        if let Some(schema) = self.schema_of_new(said, is_temporary).map_err(|error| error.at(placed.position))? {
            placed.name = name_in_schema(&schema, local);
        }
        Ok(())
    }

    /// The schema in which something is made, where it is another one than its name says.
    fn schema_of_new(&self, said: Option<&str>, is_temporary: bool) -> Result<Option<String>> {
        match (said, is_temporary) {
            (None | Some(OWN_TEMPORARY), true) | (Some(OWN_TEMPORARY), false) => {
                Ok(Some(self.temporary.to_make().to_string()))
            }
            (Some(schema), true) if self.tables.path().temporary() != Some(schema) => {
                Err(SqlError::new("42P16", "cannot create temporary relation in non-temporary schema"))
            }
            (Some(_), _) => Ok(None),
            (None, false) if self.tables.path().is_plain() => Ok(None),
            (None, false) => self.schema_to_make_in().map(Some),
        }
    }

    fn new_table(&self, create: &mut CreateTable, source: &Source) -> Result<()> {
        let parts: Vec<Ident> = create.name.0.iter().filter_map(ObjectNamePart::as_ident).cloned().collect();
        let at = position(&create.name, source);
        let Some(name) = parts.last() else { return Ok(()) };
        let said = parts.len().checked_sub(2).map(|at| fold(&parts[at]));
        let Some(schema) = self.schema_of_new(said.as_deref(), create.temporary).map_err(|error| error.at(at))? else {
            return Ok(());
        };
        create.temporary = is_temporary(&schema);
        create.name = ObjectName::from(vec![Ident::with_quote('"', schema), name.clone()]);
        if said.is_none() {
            // Its keys that refer to its name refer to itself, which is found before all others.
            let itself = create.name.clone();
            let is_meant =
                |other: &ObjectName| matches!(&other.0[..], [part] if part.as_ident().map(fold) == Some(fold(name)));
            foreign_keys(create)
                .filter(|key| is_meant(&key.foreign_table))
                .for_each(|key| key.foreign_table = itself.clone());
        }
        Ok(())
    }
}

/// The foreign keys of a new table.
fn foreign_keys(create: &mut CreateTable) -> impl Iterator<Item = &mut ForeignKeyConstraint> {
    let of_columns = create.columns.iter_mut().flat_map(|column| &mut column.options);
    let of_columns = of_columns.filter_map(|option| match &mut option.option {
        ColumnOption::ForeignKey(key) => Some(key),
        _ => None,
    });
    let of_table = create.constraints.iter_mut().filter_map(|constraint| match constraint {
        TableConstraint::ForeignKey(key) => Some(key),
        _ => None,
    });
    of_columns.chain(of_table)
}

/// Whether a statement that is none of the library's makes something temporary.
fn makes_temporary(parsed: &ParsedStatement) -> bool {
    match parsed {
        ParsedStatement::Own(OwnStatement::View(ViewStatement::Create(new))) => new.is_temporary,
        ParsedStatement::Own(OwnStatement::Sequence(SequenceStatement::Create { is_temporary, .. })) => *is_temporary,
        _ => false,
    }
}

/// Finds the schemas of names.
struct Names<'a> {
    path: &'a SearchPath,
    tables: &'a Tables,
    scope: WithScope,
}

impl Names<'_> {
    /// Names that a walk does not come by.
    fn statement(&self, statement: &mut Statement) {
        match statement {
            Statement::Drop { object_type, names, .. } => {
                let is_index = *object_type == ObjectType::Index;
                names.iter_mut().for_each(|name| if is_index { self.index(name) } else { self.relation(name) });
            }
            Statement::AlterIndex { name, .. } => self.index(name),
            Statement::Comment { object_type, object_name: name, .. } => match object_type {
                CommentObject::Table
                | CommentObject::View
                | CommentObject::MaterializedView
                | CommentObject::Sequence => self.relation(name),
                CommentObject::Index => self.index(name),
                CommentObject::Column => {
                    if let Some(column) = name.0.pop() {
                        self.relation(name);
                        name.0.push(column);
                    }
                }
                _ => {}
            },
            Statement::CreateTable(create) => {
                for column in create.columns.iter_mut().filter(|column| column.name.value == LIKE) {
                    if let SqlType::Custom(name, _) = &mut column.data_type {
                        self.relation(name);
                    }
                }
                foreign_keys(create).for_each(|key| self.relation(&mut key.foreign_table));
            }
            Statement::AlterTable(alter) => {
                for operation in &mut alter.operations {
                    match operation {
                        AlterTableOperation::AddConstraint { constraint, .. } => self.constraint(constraint),
                        AlterTableOperation::AddColumn { column_def, .. } => {
                            for option in &mut column_def.options {
                                if let ColumnOption::ForeignKey(key) = &mut option.option {
                                    self.relation(&mut key.foreign_table);
                                }
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn constraint(&self, constraint: &mut TableConstraint) {
        if let TableConstraint::ForeignKey(key) = constraint {
            self.relation(&mut key.foreign_table);
        }
    }

    fn relation(&self, name: &mut ObjectName) {
        self.found_by(name, |local| self.path.find(self.tables, local));
    }

    fn index(&self, name: &mut ObjectName) {
        self.found_by(name, |local| self.path.find_index(self.tables, local));
    }

    fn found_by(&self, name: &mut ObjectName, find: impl Fn(&str) -> Option<String>) {
        let quoted = |name: &str| ObjectNamePart::Identifier(Ident::with_quote('"', name));
        match &mut name.0[..] {
            [ObjectNamePart::Identifier(own)] => {
                if let Some(found) = find(&fold(own)) {
                    let schema = schema_and_name(&found).0;
                    if schema != PUBLIC_SCHEMA {
                        name.0.insert(0, quoted(schema));
                    }
                }
            }
            [ObjectNamePart::Identifier(schema), _] if fold(schema) == OWN_TEMPORARY => {
                name.0[0] = quoted(self.path.spelled(OWN_TEMPORARY));
            }
            _ => {}
        }
    }

    fn placed(&self, placed: &mut PlacedName) {
        self.named(&mut placed.name, placed.says_schema);
    }

    fn named(&self, name: &mut String, says_schema: bool) {
        // What says `public` is there, whatever the path is.
        if schema_and_name(name).0 != PUBLIC_SCHEMA || !says_schema {
            *name = self.tables.resolved(std::mem::take(name));
        }
    }
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scope.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scope.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: None, .. } = factor
            && !self.scope.has(name)
        {
            self.relation(name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        match statement {
            Statement::Insert(insert) => {
                if let datafusion::sql::sqlparser::ast::TableObject::TableName(name) = &mut insert.table {
                    self.relation(name);
                }
            }
            Statement::Truncate(truncate) => {
                truncate.table_names.iter_mut().for_each(|target| self.relation(&mut target.name));
            }
            Statement::AlterTable(alter) => self.relation(&mut alter.name),
            Statement::CreateIndex(create) => self.relation(&mut create.table_name),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
