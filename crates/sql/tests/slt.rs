//! Runs the scripts in `tests/sql`, each a test of its own, in a fresh database in memory, `__DIR__` standing for a
//! fresh directory. `cargo test -p lstore-sql --test slt NAME` runs those with NAME in their name.
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::Database;
use libtest_mimic::{Arguments, Failed, Trial};
use sql::{FileAccess, Outcome, Session, SessionOptions, SqlError};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};

/// One session as the runner sees it.
struct Connection {
    session: Session,
    directory: String,
}

/// An error with everything that a user would see of it: scripts match against this text.
#[derive(Debug)]
struct Shown(SqlError);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SqlError { message, sqlstate, position, hint, detail, .. } = &self.0;
        write!(f, "{sqlstate}: {message}")?;
        let notes = [("DETAIL", detail), ("HINT", hint)];
        notes
            .iter()
            .filter_map(|(name, note)| note.as_ref().map(|note| (name, note)))
            .try_for_each(|(name, note)| write!(f, " {name}: {note}"))?;
        position.map_or(Ok(()), |at| write!(f, " AT: {at}"))
    }
}

impl std::error::Error for Shown {}

impl DB for Connection {
    type Error = Shown;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Shown> {
        let statement = sql.replace("__DIR__", &self.directory);
        let rows = match self.session.execute(&statement).map_err(Shown)? {
            Outcome::Rows(rows) => rows,
            Outcome::Done(command) if command.notices.is_empty() && !shows_tag(&command.tag) => {
                return Ok(DBOutput::StatementComplete(tag_count(&command.tag)));
            }
            Outcome::Done(command) => {
                let notices = command.notices.into_iter().map(|notice| notice.message);
                let lines = std::iter::once(command.tag).chain(notices);
                let rows = lines.map(|line| vec![line]).collect();
                return Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any], rows });
            }
        };
        let types = vec![DefaultColumnType::Any; rows.schema().fields().len()];
        let (mut lines, _zone) = (Vec::new(), rows.in_zone());
        for batch in rows {
            let batch = batch.map_err(Shown)?;
            for row in 0..batch.num_rows() {
                let columns = batch.columns().iter().zip(batch.schema_ref().fields());
                lines.push(columns.map(|(array, field)| cell(array.as_ref(), field, row)).collect());
            }
        }
        Ok(DBOutput::Rows { types, rows: lines })
    }
}

fn cell(array: &dyn arrow_array::Array, field: &arrow_schema::Field, row: usize) -> String {
    let text = sql::text_value(array, row);
    let is_vector = sql::catalog_type(field).is_some_and(|name| name.ends_with("vector"));
    match text.map(|text| if is_vector { sql::vector_text(&text) } else { text }) {
        None => "NULL".to_owned(),
        Some(text) if text.is_empty() => "(empty)".to_owned(),
        Some(text) => text.replace('\n', "\\n"),
    }
}

/// Tags that scripts read as rows, so that they can be checked.
fn shows_tag(tag: &str) -> bool {
    ["SELECT ", "COPY "].iter().any(|start| tag.starts_with(start))
}

fn tag_count(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn scripts() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sql");
    let files = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.ends_with(".slt") && !name.starts_with("tpch_")
    };
    let mut files: Vec<PathBuf> = files.filter(is_ours).collect();
    files.sort();
    files
}

fn run(script: &Path) -> Result<(), String> {
    let (db, directory) = (Database::in_memory(), tempfile::tempdir().unwrap());
    let mut runner = Runner::new(|| async {
        let options = SessionOptions { files: FileAccess::Allowed, ..SessionOptions::default() };
        let directory = directory.path().to_str().unwrap().to_owned();
        Ok(Connection { session: Session::new(&db, options), directory })
    });
    runner.run_file(script).map_err(|error| format!("{}: {error}", script.display()))
}

fn main() -> ExitCode {
    let scripts = scripts();
    assert!(!scripts.is_empty(), "there are no scripts");
    let trial = |script: PathBuf| {
        let name = script.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        Trial::test(name, move || run(&script).map_err(Failed::from))
    };
    libtest_mimic::run(&Arguments::from_args(), scripts.into_iter().map(trial).collect()).exit_code()
}
