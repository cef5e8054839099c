//! The TPC-H benchmark, which is `lab`'s: here it gets a database, a progress bar and standard output.
use std::env;
use std::io;
use std::path::Path;

use lab::LabError;
use lab::tpch::TpchArgs;

use crate::opening::open;
use crate::progress::BenchProgress;

/// Runs the benchmark and writes its report to standard output.
pub fn bench(args: &TpchArgs) -> Result<(), LabError> {
    let db = open(args.dir.as_deref()).map_err(LabError::Failed)?;
    let (progress, command) = (BenchProgress::on_stderr(), shell_command(args));
    lab::tpch::bench(args, &db, command.as_deref(), &progress, &mut io::stdout().lock())
}

/// The command that opens a shell on the data, as it can be typed where the user is; none for data in memory.
fn shell_command(args: &TpchArgs) -> Option<String> {
    let dir = args.dir.as_ref()?;
    if let Some(command) = &args.shell_command {
        return Some(command.clone());
    }
    let program = env::args().next().unwrap_or_else(|| "lstore".to_owned());
    Some(format!("{} {}", shell_word(Path::new(&program)), shell_word(dir)))
}

/// A path as a word for a shell.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-+,=@%".contains(char);
    match !text.is_empty() && text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_can_be_typed_as_they_are_printed() {
        assert_eq!(shell_word(Path::new("../data/x-1")), "../data/x-1");
        assert_eq!(shell_word(Path::new("my data's")), "'my data'\\''s'");
    }
}
