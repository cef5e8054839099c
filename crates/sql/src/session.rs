//! One connection: its settings, its open transaction, and the dispatch of statements.
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion::sql::sqlparser::ast::{Query, Statement};
use engine::{Database, Table};

use crate::block::{Block, Write};
use crate::catalog::View;
use crate::error::{Result, SqlError};
use crate::moment::{Moment, Past};
use crate::outcome::{Command, Outcome, Rows};
use crate::parse::{Parsed, Source, parse};
use crate::planner::{Plan, Planner};
use crate::settings::Settings;
use crate::{Progress, change, copy, create_as, ddl, explain, headings, insert, table_options};

/// Whether `COPY` may touch files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// `COPY` from or to a file is refused.
    #[default]
    Denied,
    /// `COPY` reads and writes files with the rights of this process.
    Allowed,
}

/// How a session behaves.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Whether `COPY` may touch files.
    pub files: FileAccess,
    /// How many partitions a query runs in; the number of cores where it is not given.
    pub target_partitions: Option<usize>,
}

/// One connection to a database.
///
/// Statements outside of `BEGIN ... COMMIT` are transactions of their own, and are tried again for a while when they
/// meet another transaction's writes. Calls block; call from a thread that may.
pub struct Session {
    pub(crate) db: Database,
    pub(crate) files: FileAccess,
    pub(crate) progress: Option<Arc<dyn Progress>>,
    pub(crate) planner: Planner,
    block: Block,
    settings: Settings,
}

impl Session {
    /// A connection to `db`.
    pub fn new(db: &Database, options: SessionOptions) -> Session {
        Session {
            db: db.clone(),
            files: options.files,
            progress: None,
            planner: Planner::new(options.target_partitions),
            block: Block::None,
            settings: Settings::new(db),
        }
    }

    /// The database that this session is connected to.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// Has `progress` told of statements that read or write files.
    pub fn set_progress(&mut self, progress: Arc<dyn Progress>) {
        self.progress = Some(progress);
    }

    /// Runs exactly one statement (a trailing `;` is allowed) and blocks until it is done, or until its rows can be
    /// read.
    ///
    /// # Errors
    /// Whatever is wrong with the statement or its data. Nothing of a statement that failed stays behind; in a
    /// transaction block all that is left to do is `ROLLBACK`.
    pub fn execute(&mut self, statement: &str) -> Result<Outcome, SqlError> {
        self.block.refresh();
        let source = Source { text: statement };
        let done = parse(statement).and_then(|parsed| self.dispatch(parsed, &source));
        if done.is_err() {
            self.block.fail();
        }
        done
    }

    fn dispatch(&mut self, parsed: Parsed, source: &Source) -> Result<Outcome> {
        if let Parsed::Statement(statement) = &parsed
            && let Some(command) = self.end_block(statement)
        {
            return Ok(command?.into());
        }
        if self.block.has_failed() {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(SqlError::new("25P02", message));
        }
        match parsed {
            Parsed::Empty => Ok(Command::new("").into()),
            Parsed::Copy(statement) => copy::run(self, statement, source),
            Parsed::Statement(statement) => self.run(*statement, source),
        }
    }

    /// `COMMIT` and `ROLLBACK`, which work in a failed block too.
    fn end_block(&mut self, statement: &Statement) -> Option<Result<Command>> {
        match statement {
            Statement::Commit { chain: true, .. } | Statement::Rollback { chain: true, .. } => {
                Some(Err(SqlError::unsupported("AND CHAIN")))
            }
            Statement::Rollback { savepoint: Some(_), .. } => Some(Err(SqlError::unsupported("ROLLBACK TO SAVEPOINT"))),
            Statement::Commit { modifier: None, .. } => Some(self.block.commit()),
            Statement::Rollback { .. } => Some(Ok(self.block.rollback())),
            _ => None,
        }
    }

    fn run(&mut self, statement: Statement, source: &Source) -> Result<Outcome> {
        match statement {
            Statement::Query(query) => self.query(query, source),
            Statement::Explain { .. } => {
                let plan = self.plan(explain::read(statement)?, source)?;
                Ok(Outcome::Rows(explain::run(plan)?))
            }
            Statement::Insert(statement) => Ok(insert::run(self, &statement, source)?.into()),
            Statement::Update(statement) => Ok(change::update(self, &statement, source)?.into()),
            Statement::Delete(statement) => Ok(change::delete(self, &statement, source)?.into()),
            Statement::StartTransaction { .. } => Ok(self.block.begin(&self.db, &statement)?.into()),
            Statement::Set(set) => Ok(self.settings.set(&set)?.into()),
            Statement::Reset(reset) => Ok(self.settings.reset(&reset.reset)?.into()),
            Statement::ShowVariable { variable } => self.show(&variable),
            Statement::ShowTables { .. } => Ok(Outcome::Rows(texts(&["table_name"], vec![self.db.table_names()])?)),
            Statement::CreateTable(_) | Statement::AlterTable(_) | Statement::Drop { .. } | Statement::Truncate(_)
                if self.block.is_open() =>
            {
                Err(SqlError::unsupported("changing the catalog inside a transaction block"))
            }
            Statement::CreateTable(create) if create.query.is_some() => {
                Ok(create_as::run(self, create, source)?.into())
            }
            Statement::CreateTable(create) => Ok(ddl::create_table(&self.db, &create, source)?.into()),
            Statement::AlterTable(alter) => Ok(table_options::alter(&self.db, &alter, source)?.into()),
            Statement::Drop { .. } => Ok(ddl::drop(&self.db, &statement, source)?.into()),
            Statement::Truncate(truncate) => Ok(ddl::truncate(&self.db, &truncate, source)?.into()),
            other => Err(SqlError::unsupported(command_of(&other))),
        }
    }

    fn query(&mut self, query: Box<Query>, source: &Source) -> Result<Outcome> {
        let names = headings::of(&query);
        let plan = self.plan(Statement::Query(query), source)?;
        let schema = headings::apply(&plan.schema(), &names);
        let outcome = self.start(plan)?;
        Ok(match outcome {
            Outcome::Rows(rows) => Outcome::Rows(rows.renamed(schema)),
            done => done,
        })
    }

    /// Plans a query that reads what the session sees now.
    pub(crate) fn plan(&self, statement: Statement, source: &Source) -> Result<Plan> {
        let moment = match self.settings.as_of() {
            Some(at) => Moment::after(&self.db, at)?,
            None => self.block.moment(&self.db)?,
        };
        self.planner.plan(statement, self.view(moment, None), *source)
    }

    fn start(&mut self, plan: Plan) -> Result<Outcome> {
        let rows = plan.start()?;
        self.block.watch(&rows.link());
        Ok(Outcome::Rows(rows))
    }

    /// What a statement sees at a moment; `target` is the table that it changes.
    pub(crate) fn view(&self, moment: Moment, target: Option<Table>) -> View {
        View { db: self.db.clone(), moment, past: Past::default(), partitions: self.planner.partitions(), target }
    }

    /// Runs work that writes: see [`Block::write`].
    pub(crate) fn write<T>(
        &mut self,
        command: &str,
        work: impl Fn(&Session, &mut Write<'_>) -> Result<T>,
    ) -> Result<T> {
        if self.settings.as_of().is_some() {
            let message = format!("cannot execute {command} while lstore.as_of is set");
            return Err(SqlError::new("25006", message).hint("RESET lstore.as_of leads back to the present."));
        }
        let mut block = std::mem::take(&mut self.block);
        let done = block.write(&self.db, command, |write| work(self, write));
        self.block = block;
        done
    }

    fn show(&self, words: &[datafusion::sql::sqlparser::ast::Ident]) -> Result<Outcome> {
        let shown = self.settings.show(words)?;
        let rows = match &shown[..] {
            [(name, value)] if words.len() > 1 || !words[0].value.eq_ignore_ascii_case("all") => {
                texts(&[name], vec![vec![value.clone()]])?
            }
            _ => {
                let (names, values) = shown.into_iter().map(|(name, value)| (name.to_owned(), value)).unzip();
                texts(&["name", "setting"], vec![names, values])?
            }
        };
        Ok(Outcome::Rows(rows))
    }
}

/// The words with which a statement that has no place here starts.
fn command_of(statement: &Statement) -> String {
    let text = statement.to_string();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    words.join(" ").trim_end_matches(['(', ';', ',']).to_uppercase()
}

/// Rows of texts, given by columns.
pub(crate) fn texts(names: &[&str], columns: Vec<Vec<String>>) -> Result<Rows> {
    let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Utf8View, false)).collect();
    let array = |texts: Vec<String>| Arc::new(texts.into_iter().map(Some).collect::<StringViewArray>()) as ArrayRef;
    let columns = columns.into_iter().map(array).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    batch.map(Rows::ready).map_err(|error| SqlError::new("XX000", error.to_string()))
}
