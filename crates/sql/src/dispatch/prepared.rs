//! Statements with parameters: parsed once, their parameters' types found out, and run again and again with values.
//!
//! ```text
//! text ──parse──▶ syntax tree with $1, $2, ...      types: given, or found where the parameters stand (`infer`)
//!                      │ execute: the tree with each parameter replaced by a literal of its value (`substitute`)
//!                      ▼
//!                 the way of any other statement
//! ```
//!
//! So parameters mean the same in every statement, whether DataFusion or our own code answers it. Statements that touch a row
//! by its key go a shorter way (`point`), unless a value keeps them from it.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::Statement;
use engine::{DataType, Value};

use crate::dispatch::Request;
use crate::error::{Result, SqlError};
use crate::names::headings;
use crate::names::moment::Moment;
use crate::names::tables::Tables;
use crate::parsing::parse::{ParsedStatement, parse};
use crate::point::Point;
use crate::session::Session;
use crate::session::block::Block;
use crate::session::kept_statements::Statements;
use crate::session::prepared::PreparedStatement;
use crate::session::{infer, substitute};
use crate::state::outcome::{Command, Outcome};
use crate::state::view::View;
use crate::statements::copy::input::CopyInput;
use crate::statements::set_config;
use crate::syntax::source::Source;
use crate::syntax::stack;

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
        let (parameters, items) = infer::types(&parsed, &self.tables, known)?;
        let point = match &parsed {
            ParsedStatement::Statement(statement) => Point::plan(statement, &self.tables, &parameters),
            _ => None,
        };
        let oid_arrays = oid_arrays(text);
        Ok(PreparedStatement { text: text.to_owned(), parsed, parameters, items, oid_arrays, point })
    }

    /// The tables that a statement would see now.
    fn look_at_tables(&mut self) {
        let own = self.block.as_ref().and_then(Block::begun);
        self.tables = match own {
            Some(own) => Tables::of(&self.db, own),
            None if self.block.is_some() => self.activity.tables(&self.db),
            None => Tables::published(&self.db),
        };
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
        if let Some(schema) = prepared.point.as_ref().and_then(|point| point.schema(&self.tables)) {
            return Ok(schema);
        }
        let unknown = vec![Value::Null; prepared.parameters.len()];
        let parsed = substitute::parameters(prepared.parsed.clone(), prepared.types(), &unknown)?;
        let source = Source::new(&prepared.text);
        let mut query = match parsed {
            ParsedStatement::Locking(query, _) => query,
            ParsedStatement::Statement(statement) => match *statement {
                Statement::Query(query) => query,
                Statement::ShowVariable { variable } => return self.show(&variable).map(|shown| shown.schema()),
                Statement::Execute { name, .. } => {
                    let inner = self.statements.get(&crate::dispatch::prepared_statements::name_of(name.as_ref())?)?;
                    return stack::with_room(inner.text.len(), || self.describe_rows(&inner));
                }
                Statement::ShowTables { .. } => return Ok(text_column("table_name")),
                _ => return Ok(text_column("QUERY PLAN")),
            },
            _ => return Err(SqlError::new("XX000", "a statement without rows is described")),
        };
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

    /// Runs a prepared statement with a value for each parameter.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn execute_prepared(
        &mut self,
        prepared: &Arc<PreparedStatement>,
        values: &[Value],
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        let read = |_: &str| match &prepared.point {
            Some(_) => Ok(Request::Point(prepared.clone(), values.to_vec())),
            None => substitute::parameters(prepared.parsed.clone(), prepared.types(), values).map(Request::from),
        };
        self.run_statement(&prepared.text, read, input)
    }

    /// Runs it within a statement.
    pub(crate) fn execute_bound(
        &mut self,
        prepared: &PreparedStatement,
        values: &[Value],
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        if let Some(point) = &prepared.point
            && let Some(done) = point.run(self, values)?
        {
            return Ok(done);
        }
        stack::with_room(prepared.text.len(), || {
            let parsed = substitute::parameters(prepared.parsed.clone(), prepared.types(), values)?;
            self.dispatch(parsed, &Source::new(&prepared.text), input)
        })
    }

    /// Keeps a prepared statement under a name of the session, as `PREPARE` does.
    ///
    /// # Errors
    /// 42P05 if the name is taken.
    pub fn keep_statement(&mut self, name: &str, prepared: PreparedStatement) -> Result<Arc<PreparedStatement>> {
        self.statements.add(name, prepared)
    }

    /// The prepared statement of a name.
    ///
    /// # Errors
    /// 26000 if there is none.
    pub fn kept_statement(&self, name: &str) -> Result<Arc<PreparedStatement>> {
        self.statements.get(name)
    }

    /// Forgets the prepared statement of a name, if there is one.
    pub fn forget_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Runs `DEALLOCATE` of one statement, or of all.
    pub(crate) fn deallocate(&mut self, name: Option<&str>) -> Result<Command> {
        match name {
            None => {
                self.statements = Statements::default();
                Ok(Command::new("DEALLOCATE ALL"))
            }
            Some(name) => {
                self.statements.get(name)?;
                self.statements.remove(name);
                Ok(Command::new("DEALLOCATE"))
            }
        }
    }
}

/// The numbers of the parameters that a text casts to `oid[]`.
fn oid_arrays(text: &str) -> HashSet<usize> {
    let number = |(at, _): (usize, &str)| text[..at].rsplit_once('$')?.1.parse().ok();
    text.match_indices("::oid[]").filter_map(number).collect()
}

fn text_column(name: &str) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(name, ArrowType::Utf8View, true)]))
}
