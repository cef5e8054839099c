//! Runs the `lstore` program for the tests.
#![allow(dead_code, reason = "each test file uses the part that it needs")]
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The result of a run of the program.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// The run, which must have ended well.
    #[track_caller]
    pub fn ok(self) -> Ran {
        assert_eq!(self.status, 0, "{self:?}");
        self
    }

    /// The text that the run wrote to standard error; it must have failed with this status.
    #[track_caller]
    pub fn failed(self, status: i32) -> String {
        assert_eq!(self.status, status, "{self:?}");
        self.err
    }
}

/// Runs the program with these arguments and this standard input, in an empty environment but for the path.
pub fn lstore_in(dir: Option<&Path>, args: impl IntoIterator<Item = impl AsRef<OsStr>>, stdin: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lstore"));
    command
        .args(args)
        .env("LSTORE_HISTORY", "")
        .env("LSTORERC", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    let mut child = command.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("standard input is a pipe");
    // A program that stops at an error leaves the rest of its input unread.
    let _ = input.write_all(stdin.as_bytes());
    drop(input);
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
    Ran { status: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs the program with these arguments and nothing on standard input.
pub fn lstore(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    lstore_in(None, args, "")
}

/// Runs a script from standard input on a database in memory.
pub fn script(text: &str) -> Ran {
    lstore_in(None, [""; 0], text)
}

/// Runs SQL on the database in a directory.
pub fn sql(dir: &Path, text: &str) -> Ran {
    lstore([dir.as_os_str(), OsStr::new("-c"), OsStr::new(text)])
}

/// The answer to a query on the database in a directory, as CSV without the names of the columns.
#[track_caller]
pub fn answer(dir: &Path, query: &str) -> String {
    let args = [dir.as_os_str(), OsStr::new("--format"), OsStr::new("csv"), OsStr::new("--no-header")];
    lstore(args.into_iter().chain([OsStr::new("-c"), OsStr::new(query)])).ok().out
}
