//! Opens the database that the command line names.
use std::path::Path;

use engine::{ArchiveSetting, Database, OpenOptions};

use crate::memory::MemoryArgs;
use crate::progress;

/// Opens the database in a directory, or makes one in memory; tells the user if that fails.
pub(crate) fn open(dir: Option<&Path>) -> Result<Database, String> {
    open_with(dir, MemoryArgs::default(), ArchiveSetting::AsBefore)
}

pub(crate) fn open_with(dir: Option<&Path>, memory: MemoryArgs, archive: ArchiveSetting) -> Result<Database, String> {
    let options = OpenOptions { memory_limit_bytes: memory.limit_bytes(), archive, ..OpenOptions::default() };
    let options = sql::with_expressions(options);
    let Some(dir) = dir else { return Ok(Database::in_memory_with(&options)) };
    let options = OpenOptions { progress: progress::replay_progress(), ..options };
    let failed = |error: &dyn std::fmt::Display| format!("can't open {}: {error}", dir.display());
    let db = Database::open_with(dir, options).map_err(|error| failed(&error))?;
    memory.or_remembered(&db).map_err(|error| failed(&error.message))?;
    Ok(db)
}
