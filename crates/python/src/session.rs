//! A session as Python holds it: statements run while the interpreter is free, and Ctrl-C ends those of the main thread.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Database, Value};
use parking_lot::Mutex;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use sql::{CancelHandle, Command, NoInput, Outcome, Progress, Rows, Session, SqlError, TransactionStatus, rows_of_tag};

use crate::append::Batches;
use crate::calls::{INSIDE, Raised, is_inside};
use crate::errors::{CLOSED, FORKED, Fault};
use crate::functions::{Manner, PythonFunction};
use crate::interrupt::Interruptible;
use crate::parameter::Parameter;
use crate::process::{self, OfProcess};
use crate::progress::Meter;
use crate::rows::NativeRows;
use crate::statements::{Statements, values_for};
use crate::{capsule, objects};

/// A session with the statements that it keeps.
pub(crate) struct Open {
    pub(crate) session: Session,
    pub(crate) statements: Statements,
    /// Dropped last: what closes a database waits for its sessions.
    _database: Arc<OfProcess<Database>>,
}

/// How many rows of parameters are read before they are run.
const ROWS_AT_ONCE: usize = 10_000;

impl Open {
    /// Runs a statement, in a transaction that begins with it if `begins` says so and there is none.
    fn run(&mut self, text: &str, parameters: &[Parameter], begins: bool) -> Result<Outcome, SqlError> {
        let done = self.run_bound(text, parameters, begins);
        match &done {
            Ok(Outcome::Done(command)) => self.statements.note_done(&command.tag),
            Ok(Outcome::Rows(_)) => {}
            Err(error) => self.statements.note_failed(error),
        }
        done
    }

    fn run_bound(&mut self, text: &str, parameters: &[Parameter], begins: bool) -> Result<Outcome, SqlError> {
        let (prepared, values) = self.statements.bound(&mut self.session, text, parameters)?;
        if begins && !prepared.is_control() {
            self.begin()?;
        }
        self.session.execute_prepared(&prepared, &values, &mut NoInput)
    }

    /// Runs a change by key for many sets of parameters as one statement; `None` where they are to be run one by one.
    fn run_together(&mut self, text: &str, sets: &[Vec<Parameter>], begins: bool) -> Result<Option<u64>, SqlError> {
        let Some(first) = sets.first() else { return Ok(None) };
        let (prepared, _) = self.statements.bound(&mut self.session, text, first)?;
        let values: Option<Vec<_>> = sets.iter().map(|set| values_for(&prepared, set)).collect();
        let Some(values) = values.filter(|_| prepared.is_short_change()) else { return Ok(None) };
        if begins {
            self.begin()?;
        }
        let done = self.session.change_many(&prepared, &values);
        done.inspect_err(|error| self.statements.note_failed(error))
    }

    /// Begins a transaction, if there is none.
    fn begin(&mut self) -> Result<(), SqlError> {
        if self.session.transaction_status() == TransactionStatus::Idle {
            self.session.execute("BEGIN")?;
        }
        Ok(())
    }
}

/// Work that a meter shows while this lives.
struct Shown<'a>(&'a Meter);

impl Shown<'_> {
    fn start<'a>(meter: &'a Meter, label: &str, total: Option<u64>) -> Shown<'a> {
        meter.start(label, total);
        Shown(meter)
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// What a short statement answers.
enum Short {
    Row(Option<Vec<Value>>),
    Changed((&'static str, u64)),
}

/// A session.
#[pyclass(frozen, module = "lstore._lstore")]
pub(crate) struct NativeSession {
    open: Mutex<OfProcess<Option<Open>>>,
    cancel: CancelHandle,
    meter: Arc<Meter>,
    raised: Raised,
    /// Whether it has been given functions of Python's.
    calls_python: AtomicBool,
    /// Whether a statement outside of a transaction is one of its own.
    commits_alone: AtomicBool,
}

impl NativeSession {
    pub(crate) fn new(database: Arc<OfProcess<Database>>, mut session: Session) -> NativeSession {
        let (cancel, meter) = (session.cancel_handle(), Arc::<Meter>::default());
        session.set_progress(meter.clone());
        let open = Open { session, statements: Statements::default(), _database: database };
        let open = Mutex::new(OfProcess::new(Some(open)));
        let raised = Raised::default();
        NativeSession {
            open,
            cancel,
            meter,
            raised,
            calls_python: AtomicBool::default(),
            commits_alone: AtomicBool::default(),
        }
    }

    /// Does something with the session while the interpreter is free. Another thread's statement is waited for.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Open) -> Result<T, Fault> + Send) -> PyResult<T> {
        if process::is_child() {
            return Err(FORKED.raised(py));
        }
        if is_inside() {
            return Err(INSIDE.raised(py));
        }
        let entered = Interruptible::enter(py, &self.cancel)?;
        let done = py.detach(|| {
            let mut open = self.open.lock();
            let Some(open) = open.as_mut() else { return Err(CLOSED) };
            open.session.set_asked(true);
            let done = work(open);
            open.session.set_asked(false);
            done
        });
        drop(entered);
        done.map_err(|fault| self.raised.explain(py, fault))
    }

    /// Does something short with the session, if no other thread uses it, and statements outside of a transaction are some of their
    /// own. The interpreter is not let go, and nothing is interrupted: the work must wait for nothing.
    pub(crate) fn at_once<T>(&self, work: impl FnOnce(&mut Open) -> Option<T>) -> Option<T> {
        if process::is_child() || is_inside() || !self.commits_alone.load(Ordering::Relaxed) {
            return None;
        }
        let mut open = self.open.try_lock()?;
        work((**open).as_mut()?)
    }

    /// The row that a statement which was run before finds by its key; `None` where it has to be run. What is this short does not let
    /// the interpreter go, and is not interrupted.
    fn row_by_key(&self, statement: &str, parameters: &[Parameter]) -> Option<Option<Vec<Value>>> {
        if process::is_child() || is_inside() {
            return None;
        }
        let open = self.open.try_lock()?;
        let open = open.as_ref()?;
        let (prepared, values) = open.statements.known(statement, parameters)?;
        // An error comes again where it is run.
        open.session.row_by_key(&prepared, &values).ok()?
    }

    fn rows(&self, rows: Rows) -> NativeRows {
        let functions = self.calls_python.load(Ordering::Relaxed).then(|| self.raised.clone());
        NativeRows::new(rows, self.cancel.clone(), functions)
    }

    fn answer<'py>(&self, py: Python<'py>, outcome: Outcome) -> PyResult<Bound<'py, PyAny>> {
        match outcome {
            Outcome::Rows(rows) => self.rows(rows).into_bound_py_any(py),
            Outcome::Done(Command { tag, notices }) => {
                let notices =
                    notices.into_iter().map(|notice| (notice.severity.to_string(), notice.sqlstate, notice.message));
                (tag, notices.collect::<Vec<_>>()).into_bound_py_any(py)
            }
        }
    }
}

fn parameters_of(parameters: &Bound<'_, PyAny>) -> PyResult<Vec<Parameter>> {
    if let Ok(parameters) = parameters.cast::<PyTuple>() {
        return parameters.iter_borrowed().map(|value| Parameter::of(&value)).collect();
    }
    if let Ok(parameters) = parameters.cast::<PyList>() {
        return parameters.iter().map(|value| Parameter::of(&value)).collect();
    }
    parameters.try_iter()?.map(|value| Parameter::of(&value?)).collect()
}

#[pymethods]
impl NativeSession {
    /// Runs a statement with `$1`, `$2`, ...; gives rows, or the tag of a command and its notices.
    fn execute<'py>(
        &self,
        py: Python<'py>,
        statement: &str,
        parameters: Option<&Bound<'py, PyAny>>,
        begins: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let parameters = parameters.map(parameters_of).transpose()?.unwrap_or_default();
        let outcome = self.with(py, |open| Ok(open.run(statement, &parameters, begins)?))?;
        self.answer(py, outcome)
    }

    /// What a short statement answers that was run before: rows, or the number of those that it has changed and its tag. `None` where it
    /// has to be run.
    fn answer_at_once<'py>(
        &self,
        py: Python<'py>,
        statement: &str,
        parameters: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let has_marks = parameters.is_some();
        let Some(prepared) = self.at_once(|open| open.statements.short(statement, has_marks)) else { return Ok(None) };
        // Python may run here, and use the session.
        let parameters = parameters.map(parameters_of).transpose()?.unwrap_or_default();
        let answer = self.at_once(|open| {
            let Some(values) = values_for(&prepared, &parameters) else {
                open.statements.is_other(statement);
                return None;
            };
            match prepared.row_schema() {
                // An error comes again where it is run.
                Some(_) => open.session.row_by_key(&prepared, &values).ok()?.map(|row| Ok(Short::Row(row))),
                None => {
                    open.session.change_at_once(&prepared, &values).map(|rows| rows.map(Short::Changed)).transpose()
                }
            }
        });
        match answer.transpose().map_err(|error| self.raised.explain(py, error.into()))? {
            None => Ok(None),
            Some(Short::Changed((tag, rows))) => (rows, format!("{tag} {rows}")).into_bound_py_any(py).map(Some),
            Some(Short::Row(row)) => {
                let Some(schema) = prepared.row_schema() else { return Ok(None) };
                let rows = NativeRows::of_row(row, schema.clone(), self.cancel.clone());
                rows.into_bound_py_any(py).map(Some)
            }
        }
    }

    /// Whether a statement outside of a transaction is one of its own, as the caller keeps to when it runs one.
    fn set_commits_alone(&self, commits_alone: bool) {
        self.commits_alone.store(commits_alone, Ordering::Relaxed);
    }

    /// Runs a statement once for each row of parameters, and gives the number of rows that it has changed; -1 if it changes none.
    /// `total` is how many rows there are, where that is known.
    fn execute_many(
        &self,
        py: Python<'_>,
        statement: &str,
        rows: &Bound<'_, PyAny>,
        total: Option<u64>,
        begins: bool,
    ) -> PyResult<i64> {
        let mut rows = rows.try_iter()?;
        let mut changed = None;
        let _shown = Shown::start(&self.meter, "executemany", total);
        loop {
            let chunk =
                rows.by_ref().take(ROWS_AT_ONCE).map(|row| parameters_of(&row?)).collect::<PyResult<Vec<_>>>()?;
            if chunk.is_empty() {
                return Ok(changed.unwrap_or(-1));
            }
            self.with(py, |open| {
                if let Some(rows) = open.run_together(statement, &chunk, begins)? {
                    *changed.get_or_insert(0) += i64::try_from(rows).unwrap_or(i64::MAX);
                    self.meter.advance(chunk.len() as u64);
                    return Ok(());
                }
                for parameters in &chunk {
                    let tag = match open.run(statement, parameters, begins)? {
                        Outcome::Done(command) => Some(command.tag),
                        Outcome::Rows(rows) => rows.tag().map(str::to_owned),
                    };
                    if let Some(rows) = tag.as_deref().and_then(rows_of_tag) {
                        *changed.get_or_insert(0) += i64::try_from(rows).unwrap_or(i64::MAX);
                    }
                    self.meter.advance(1);
                }
                Ok(())
            })?;
        }
    }

    /// The first row of a query, as a tuple; `None` if it has none.
    fn row<'py>(
        &self,
        py: Python<'py>,
        statement: &str,
        parameters: &Bound<'py, PyAny>,
        begins: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let parameters = parameters_of(parameters)?;
        if !begins && let Some(found) = self.row_by_key(statement, &parameters) {
            let tuple = |row: Vec<Value>| objects::tuple_of(py, &row).transpose();
            match found.map(tuple) {
                None => return Ok(None),
                Some(Some(row)) => return row.map(|row| Some(row.into_any())),
                Some(None) => {}
            }
        }
        match self.with(py, |open| Ok(open.run(statement, &parameters, begins)?))? {
            Outcome::Rows(rows) => self.rows(rows).first(py),
            Outcome::Done(_) => Ok(None),
        }
    }

    /// Appends rows of an object that gives Arrow data to a table, by the names of its columns; gives their number.
    fn append(&self, py: Python<'_>, table: &str, data: &Bound<'_, PyAny>, begins: bool) -> PyResult<u64> {
        let total = data.len().ok().and_then(|rows| u64::try_from(rows).ok());
        let (schema, batches) = capsule::rows_of(data)?;
        let names: Vec<String> = schema.fields().iter().map(|field| quoted(field.name())).collect();
        let statement = format!("COPY {} ({}) FROM STDIN", quoted(table), names.join(", "));
        let mut input = Batches::new((schema, batches), self.meter.clone());
        self.with(py, |open| {
            if begins {
                open.begin()?;
            }
            let _shown = Shown::start(&self.meter, &format!("append to {table}"), total);
            match open.session.execute_with_input(&statement, &mut input)? {
                Outcome::Done(command) => Ok(command.rows().unwrap_or(0)),
                Outcome::Rows(_) => Ok(0),
            }
        })
    }

    /// Lets queries read an object that gives Arrow data, under a name. It is read now, and its buffers are shared.
    fn register(&self, py: Python<'_>, name: &str, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let (schema, batches) = capsule::rows_of(data)?;
        self.with(py, |open| {
            let unreadable = |error: String| SqlError::new("22P04", format!("the Arrow data can't be read: {error}"));
            let batches = batches.collect::<Result<Vec<_>, String>>().map_err(unreadable)?;
            open.statements.forget();
            Ok(open.session.register(name, &schema, &batches)?)
        })
    }

    /// Takes back what `register` gave; whether there was something of this name.
    fn unregister(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.with(py, |open| {
            open.statements.forget();
            Ok(open.session.unregister(name))
        })
    }

    /// Lets statements call a function of Python's under a name. `types` are its parameters' and its results', by their names in SQL;
    /// `manner` is whether it takes arrays of Arrow, whether it sees NULLs, and whether equal arguments always give equal results.
    fn register_function(
        &self,
        py: Python<'_>,
        name: &str,
        function: Py<PyAny>,
        types: (Vec<String>, String),
        manner: (bool, bool, bool),
    ) -> PyResult<()> {
        let (by_column, sees_null, is_pure) = manner;
        let manner = Manner { by_column, sees_null, is_pure };
        self.with(py, |open| {
            let types = (types.0.as_slice(), types.1.as_str());
            let function = PythonFunction::new(&mut open.session, function, types, manner, self.raised.clone())?;
            open.session.register_function(name, Arc::new(function))?;
            open.statements.forget();
            self.calls_python.store(true, Ordering::Relaxed);
            Ok(())
        })
    }

    /// What is done of how much, under which name, of work that is long and tells of itself.
    fn progress(&self) -> Option<(String, u64, Option<u64>)> {
        self.meter.now().map(|work| (work.label, work.done, work.total))
    }

    /// Takes back what `register_function` gave; whether there was a function of this name.
    fn unregister_function(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.with(py, |open| {
            open.statements.forget();
            Ok(open.session.unregister_function(name))
        })
    }

    /// Stops the statement that runs, from any thread; whether there was one.
    fn cancel(&self) -> bool {
        !process::is_child() && self.cancel.cancel()
    }

    /// Where the session stands: `idle`, `active` in a transaction, or in one that has `failed`.
    fn status(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, |open| {
            Ok(match open.session.transaction_status() {
                TransactionStatus::Idle => "idle",
                TransactionStatus::InBlock => "active",
                TransactionStatus::Failed => "failed",
            })
        })
    }

    /// The settings as they are become those that `RESET` leads back to.
    fn settings_are_defaults(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |open| {
            open.session.settings_are_defaults();
            Ok(())
        })
    }

    /// Ends the session; a transaction is rolled back.
    fn close(&self, py: Python<'_>) {
        if !process::is_child() {
            py.detach(|| drop(self.open.lock().take()));
        }
    }

    /// The statements of a text.
    #[staticmethod]
    fn split(text: &str) -> Vec<&str> {
        sql::split(text).into_iter().map(|piece| piece.text).collect()
    }
}

/// A name as SQL's text.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
