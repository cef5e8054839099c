//! Where output goes other than to the screen: a file, or the input of a program.
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A file or a program that takes output.
pub(crate) enum Sink {
    File(BufWriter<File>),
    Program { child: Child, input: Option<BufWriter<ChildStdin>> },
}

impl Sink {
    /// Opens what a user names: a file, or `|` and a program with its arguments.
    ///
    /// # Errors
    /// If the file cannot be made, or the program not be run.
    pub(crate) fn open(target: &str) -> io::Result<Sink> {
        match target.strip_prefix('|') {
            None => Ok(Sink::File(BufWriter::new(File::create(target)?))),
            Some(command) => Sink::program(command),
        }
    }

    /// Runs a program that reads what is written.
    ///
    /// # Errors
    /// If there is no `sh` to run it.
    pub(crate) fn program(command: &str) -> io::Result<Sink> {
        let mut child = Command::new("sh").arg("-c").arg(command.trim()).stdin(Stdio::piped()).spawn()?;
        let input = child.stdin.take().map(BufWriter::new);
        Ok(Sink::Program { child, input })
    }

    fn writer(&mut self) -> Option<&mut dyn Write> {
        match self {
            Sink::File(file) => Some(file),
            Sink::Program { input, .. } => input.as_mut().map(|input| input as &mut dyn Write),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer().map_or(Ok(bytes.len()), |writer| writer.write(bytes));
        unless_gone(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.writer().map_or(Ok(()), |writer| writer.flush());
        unless_gone(flushed, ())
    }
}

/// A program may read as much as it likes, as `head` does.
fn unless_gone<T>(done: io::Result<T>, otherwise: T) -> io::Result<T> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(otherwise),
        done => done,
    }
}

impl Drop for Sink {
    /// A program has said all that it has to say before anything else is written.
    fn drop(&mut self) {
        let _ = self.flush();
        if let Sink::Program { child, input } = self {
            drop(input.take());
            let _ = child.wait();
        }
    }
}
