//! Preparing statements with parameters: they are parsed once, their parameters' types found out, and described.
//!
//! ```text
//! text ──parse──▶ syntax tree with $1, $2, ...      types: given, or found where the parameters stand (`infer`)
//!                      │ execute: the tree with each parameter replaced by a literal of its value (`substitute`)
//!                      ▼
//!                 the way of any other statement
//! ```
//!
//! So parameters mean the same in every statement, whether DataFusion or our own code answers it.

use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::Statement;
use engine::{DataType, Value};

use crate::error::{Result, SqlError};
use crate::names::moment::Moment;
use crate::names::{find_table, headings};
use crate::parsing::cursor_statement::CursorStatement;
use crate::parsing::parse::parse;
use crate::parsing::{OwnStatement, ParsedStatement};
use crate::planning::functions::changing;
use crate::session::Session;
use crate::session::infer::asked::Known;
use crate::session::prepared::PreparedStatement;
use crate::session::{infer, substitute};
use crate::state::view::View;
use crate::state::with_rows::WithRows;
use crate::statements::{change, explain, function_run, insert, set_config, view_target};
use crate::syntax::source::Source;
use crate::syntax::stack;
use crate::values::types::type_of_field;

impl Session {
    /// Parses a statement that may have parameters. `types` are those of the first parameters as far as they are known; the
    /// others are found out.
    ///
    /// # Errors
    /// What is wrong with the text, as far as that can be seen without running it.
    pub fn prepare(&mut self, text: &str, types: &[Option<DataType>]) -> Result<PreparedStatement> {
        self.looking(text, |session| session.prepare_parsed(text, parse(text)?, types))
    }

    pub(super) fn prepare_parsed(
        &mut self,
        text: &str,
        mut parsed: ParsedStatement,
        types: &[Option<DataType>],
    ) -> Result<PreparedStatement> {
        let is_harmless = matches!(&parsed, ParsedStatement::Control(control) if control.ends_block());
        if !is_harmless && !matches!(parsed, ParsedStatement::Empty) {
            self.check_block()?;
        }
        self.look_at_tables();
        let source = Source::new(text);
        let count = infer::count(&mut parsed, &source)?.max(types.len());
        if count > infer::PARAMETERS_MAX {
            return Err(SqlError::new("54000", "a statement has too many parameters"));
        }
        let mut known = types.to_vec();
        known.resize(count, None);
        // The names are looked up again when it is run.
        let mut qualified = parsed.clone();
        self.qualify(&mut qualified, &source)?;
        let ask = |query, known: &Known| self.type_of_query(query, known);
        let (parameters, items) = infer::types(&qualified, &self.tables, known, &ask)?;
        Ok(PreparedStatement::new(text, parsed, (parameters, items), &self.tables))
    }

    /// The type of the one column of a query that is not run; `None` where it can't be planned.
    fn type_of_query(&self, query: ParsedStatement, known: &Known) -> Option<DataType> {
        let unknown = vec![Value::Null; known.types.len()];
        let types = substitute::Types { plain: &known.types, items: &known.items };
        let ParsedStatement::Statement(statement) = substitute::parameters(query, types, &unknown).ok()? else {
            return None;
        };
        let view = View { tables: self.tables.clone(), ..self.view(Moment::now(&self.db).ok()?, Vec::new()) };
        let plan = self.planner.plan(*statement, view, &Source::new("")).ok()?;
        type_of_field(plan.schema().fields().first()?)
    }

    /// The columns of the rows that a statement gives, if it gives any. Nothing is run.
    ///
    /// # Errors
    /// What running it would fail with at once, such as a column that is not there.
    pub fn describe(&mut self, prepared: &PreparedStatement) -> Result<Option<SchemaRef>> {
        if !prepared.gives_rows() {
            return Ok(None);
        }
        self.looking(&prepared.text, |session| session.describe_rows(prepared)).map(Some)
    }

    fn describe_rows(&mut self, prepared: &PreparedStatement) -> Result<SchemaRef> {
        self.check_block()?;
        self.look_at_tables();
        if let Some(schema) = prepared.point.as_ref().and_then(|point| point.schema(&self.tables))
            && self.tables.path().is_plain()
        {
            return Ok(schema);
        }
        let unknown = vec![Value::Null; prepared.parameters.len()];
        let mut parsed = substitute::parameters(prepared.parsed.clone(), prepared.types(), &unknown)?;
        let source = Source::new(&prepared.text);
        self.qualify(&mut parsed, &source)?;
        let mut query = match parsed {
            ParsedStatement::Locking(query, _) => query,
            ParsedStatement::Composed(statement, _) => return self.describe_composed(*statement, &source),
            ParsedStatement::Own(OwnStatement::Cursor(CursorStatement::Fetch { name, .. })) => {
                return self.cursors.schema(&name);
            }
            ParsedStatement::Statement(statement) => match *statement {
                Statement::Query(query) => query,
                Statement::ShowVariable { variable } => return self.show(&variable).map(|shown| shown.schema()),
                Statement::Execute { name, .. } => {
                    let inner = self.statements.get(&crate::dispatch::prepared_statements::name_of(name.as_ref())?)?;
                    return stack::with_room(inner.text.len(), || self.describe_rows(&inner));
                }
                Statement::ShowTables { .. } => return Ok(text_column("table_name")),
                Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                    return self.describe_changed(&statement, &WithRows::default(), &source);
                }
                explained @ Statement::Explain { .. } => return explain::describe(explained),
                _ => return Err(SqlError::new("XX000", "a statement without rows is described")),
            },
            _ => return Err(SqlError::new("XX000", "a statement without rows is described")),
        };
        if let Some(run) = changing::asked(&query, &self.tables)? {
            return function_run::describe(self, &run);
        }
        let names = headings::of(&query);
        set_config::describe(&mut query)?;
        let view = match self.settings.as_of() {
            Some(at) => self.view(Moment::after(&self.db, at)?, Vec::new()),
            // Nothing is read, so the names may be those of another moment: of the transaction that is parked, if there is one.
            None => View { tables: self.tables.clone(), ..self.view(Moment::now(&self.db)?, Vec::new()) },
        };
        let plan = self.planner.plan(Statement::Query(query), view, &source)?;
        Ok(headings::apply(&plan.schema(), &names))
    }
}

impl Session {
    /// The columns of the rows that a statement gives back of those that it changes.
    pub(super) fn describe_changed(
        &self,
        statement: &Statement,
        with: &WithRows,
        source: &Source,
    ) -> Result<SchemaRef> {
        let (name, returning) = match statement {
            Statement::Insert(insert) => insert::returning(insert, &self.planner, source)?,
            Statement::Update(update) => change::returning_of_update(update, self, with, source)?,
            Statement::Delete(delete) => change::returning_of_delete(delete, self, with, source)?,
            _ => return Err(SqlError::new("XX000", "a statement that changes nothing is described")),
        };
        let returning = returning.ok_or_else(|| SqlError::new("XX000", "a statement without rows is described"))?;
        let (table, view) = view_target::look(self, &find_table(&self.tables, name, source)?);
        returning.through(view).schema(self, &table, with, source)
    }
}

fn text_column(name: &str) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(name, ArrowType::Utf8View, true)]))
}
