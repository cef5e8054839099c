//! The 99 queries, which come with a package of Python and are kept as a file.
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::beside::{Query, environment_with};
use crate::{LabError, Progress};

/// The package, and the version of DuckDB that it is for, which only reads it: the rival is the newest.
const PACKAGES: [&str; 2] = ["duckdb==1.5.5", "duckdb-extension-tpcds==1.5.5"];
const SCRIPT: &str = include_str!("queries.py");
/// What query 78 rounds, and what it shows instead: DuckDB divides in floating point, in which 23 / 40 is a little less than 0.575, and
/// rounds that down.
const ROUNDED: [&str; 2] = [
    "round((ss_qty*1.00)/(coalesce(ws_qty,0)+coalesce(cs_qty,0)),2) ratio",
    "(ss_qty*1.00)/(coalesce(ws_qty,0)+coalesce(cs_qty,0)) ratio",
];

/// The queries, or those of some numbers, from the file in a folder, which is made unless it is there.
pub(super) fn queries(dir: &Path, only: &[u32], progress: &dyn Progress) -> Result<Vec<Query>, LabError> {
    let path = dir.join("tpcds-queries.json");
    let fail = |why: String| LabError::Failed(format!("the queries can't be read from {}: {why}", path.display()));
    if !path.is_file() {
        let python =
            environment_with(&dir.join("python-tpcds-queries"), "duckdb_extension_tpcds", &PACKAGES, progress)?;
        let ran = Command::new(&python).args(["-c", SCRIPT]).stdin(Stdio::null()).output();
        let ran = ran.map_err(|error| fail(format!("{} does not start: {error}", python.display())))?;
        if !ran.status.success() {
            let why = String::from_utf8_lossy(&ran.stderr);
            return Err(fail(why.lines().last().unwrap_or("it does not say why").to_owned()));
        }
        fs::write(&path, ran.stdout).map_err(|error| fail(error.to_string()))?;
    }
    let text = fs::read(&path).map_err(|error| fail(error.to_string()))?;
    let texts: Vec<String> = serde_json::from_slice(&text).map_err(|error| fail(error.to_string()))?;
    let numbered = (1..).zip(texts).filter(|(number, _)| only.is_empty() || only.contains(number));
    let query = |(number, text): (u32, String)| Query {
        name: format!("q{number:02}"),
        text: text.replace(ROUNDED[0], ROUNDED[1]),
    };
    Ok(numbered.map(query).collect())
}
