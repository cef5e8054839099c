//! The rows: made by the generator as text, by DuckDB into Parquet, and kept.
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::tables::{TABLES, Table};
use crate::beside::{Rival, done, quoted};
use crate::{LabError, Progress};

/// What Maven fetches: the generator and what it needs.
const POM: &str = include_str!("pom.xml");
/// How often the generator's files are counted.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The Parquet file of a table.
pub(super) fn file(files: &Path, table: &Table) -> PathBuf {
    files.join(format!("{}.parquet", table.name))
}

/// The folder of the Parquet files of a scale factor, which are made unless they are there.
pub(super) fn files(dir: &Path, sf: f64, duckdb: &mut Rival, progress: &dyn Progress) -> Result<PathBuf, LabError> {
    let files = dir.join(format!("tpcds-sf{sf}"));
    if TABLES.iter().all(|table| file(&files, table).is_file()) {
        return Ok(files);
    }
    let rows = files.join("rows");
    let library = generator(dir, Path::new("mvn"), progress)?;
    generate(&library, &rows, sf, progress)?;
    let start = Instant::now();
    progress.start("rows as Parquet", TABLES.len() as u64);
    for table in &TABLES {
        convert(table, &rows, &files, duckdb)?;
        progress.advance(1);
    }
    progress.finish(&format!("rows as Parquet: {:.1} s", start.elapsed().as_secs_f64()));
    fs::remove_dir_all(&rows)?;
    Ok(files)
}

/// The folder of the generator's classes, which Maven fetches unless they are there.
fn generator(dir: &Path, maven: &Path, progress: &dyn Progress) -> Result<PathBuf, LabError> {
    let home = dir.join("tpcds-generator");
    let library = home.join("lib");
    if library.is_dir() {
        return Ok(library);
    }
    progress.start("fetching the generator", 1);
    fs::create_dir_all(&home)?;
    let (pom, fetched) = (home.join("pom.xml"), home.join("fetched"));
    fs::write(&pom, POM)?;
    let output = format!("-DoutputDirectory={}", fetched.display());
    let args = ["--quiet", "--batch-mode", "--file"].map(Path::new);
    let copy = ["dependency:copy-dependencies", &output].map(Path::new);
    done(maven, &[&args[..], &[pom.as_path()], &copy[..]].concat()).map_err(|why| {
        let remedy = "It takes Java 17 or later, Maven (on Debian and Ubuntu the packages default-jre-headless and maven) and the \
                      network";
        LabError::Failed(format!("the generator of TPC-DS could not be fetched: {why}. {remedy}"))
    })?;
    fs::rename(&fetched, &library)?;
    progress.advance(1);
    progress.finish("the generator is there");
    Ok(library)
}

/// Has the generator write its rows, a file for each table.
fn generate(library: &Path, rows: &Path, sf: f64, progress: &dyn Progress) -> Result<(), LabError> {
    fs::create_dir_all(rows)?;
    let start = Instant::now();
    progress.start(&format!("rows of TPC-DS, scale factor {sf}"), TABLES.len() as u64);
    let (classes, sf) = (library.join("*"), sf.to_string());
    let args = ["--overwrite", "--do-not-terminate", "--scale", &sf, "--directory"].map(Path::new);
    let main = [Path::new("-cp"), &classes, Path::new("io.trino.tpcds.Driver")];
    let args = [&main[..], &args[..], &[rows]].concat();
    let ended = thread::scope(|scope| {
        let run = scope.spawn(|| done(Path::new("java"), &args));
        let mut seen = 0;
        while !run.is_finished() {
            thread::sleep(LOOK_EVERY);
            let there = TABLES.iter().filter(|table| rows.join(format!("{}.dat", table.name)).is_file()).count() as u64;
            progress.advance(there.saturating_sub(seen));
            seen = seen.max(there);
        }
        run.join()
    });
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(why)) => {
            let remedy = "It takes Java 17 or later";
            return Err(LabError::Failed(format!("the generator of TPC-DS fails: {why}. {remedy}")));
        }
        Err(panic) => std::panic::resume_unwind(panic),
    }
    progress.finish(&format!("rows of TPC-DS: {:.1} s", start.elapsed().as_secs_f64()));
    Ok(())
}

/// Makes a Parquet file of a table's rows, and throws the rows away.
fn convert(table: &Table, rows: &Path, files: &Path, duckdb: &mut Rival) -> Result<(), LabError> {
    let Table { name, columns, .. } = table;
    let text = rows.join(format!("{name}.dat"));
    let part = files.join(format!("{name}.part"));
    // The generator writes names of countries in Latin-1, and NULL as nothing.
    let options = "FORMAT csv, HEADER false, DELIMITER '|', QUOTE '', ESCAPE '', NULL '', ENCODING 'latin-1'";
    let (from, to) = (quoted(&text), quoted(&part));
    duckdb.execute(&format!(
        "CREATE TABLE {name} ({columns}); COPY {name} FROM {from} ({options}); COPY {name} TO {to} (FORMAT parquet); DROP TABLE {name}"
    ))?;
    fs::rename(&part, file(files, table))?;
    fs::remove_file(&text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;

    #[test]
    fn without_maven_it_is_told_what_to_install() {
        let dir = tempfile::tempdir().unwrap();
        let why = generator(dir.path(), Path::new("no-such-program"), &Quiet).unwrap_err().to_string();
        assert!(why.contains("no-such-program does not start") && why.contains("Java 17 or later, Maven"), "{why}");
        assert!(!dir.path().join("tpcds-generator").join("lib").exists());
    }
}
