//! Long output at a terminal goes through a program that shows it page by page: what `LSTORE_PAGER` or `PAGER` names, else `less`.
//!
//! Lines are held back until there are more than the screen has; only then the program is run, and takes what comes as it comes.
use std::env;
use std::io::{self, Write};

use super::Shell;
use super::sink::Sink;
use crate::terminal;

/// What is run where the user names nothing: lines are cut rather than broken, and without `less` all is simply written.
const DEFAULT_PAGER: &str = "if command -v less >/dev/null; then exec less -S; else exec cat; fi";

/// Output that may turn out to be long.
struct Pager<'o> {
    out: &'o mut dyn Write,
    program: String,
    /// How many lines the screen shows.
    lines: usize,
    held: Vec<u8>,
    held_lines: usize,
    sink: Option<Sink>,
}

impl Pager<'_> {
    /// All has been written.
    fn finish(&mut self) -> io::Result<()> {
        match self.sink.take() {
            Some(mut sink) => sink.flush(),
            None => self.out.write_all(&std::mem::take(&mut self.held)),
        }
    }
}

impl Write for Pager<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(sink) = &mut self.sink {
            return sink.write(bytes);
        }
        self.held.extend_from_slice(bytes);
        self.held_lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        if self.held_lines >= self.lines {
            let mut sink = Sink::program(&self.program)?;
            sink.write_all(&std::mem::take(&mut self.held))?;
            self.sink = Some(sink);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.as_mut().map_or(Ok(()), Sink::flush)
    }
}

impl Shell {
    /// Writes to where rows go, page by page where that is a terminal and there are many.
    pub(crate) fn paged<T, E: From<io::Error>>(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
    ) -> Result<T, E> {
        let is_wanted = self.settings.interactive && self.has_pager && self.redirected.is_none();
        let Some(lines) = terminal::lines().filter(|_| is_wanted) else { return write(self.out()) };
        self.out().flush()?;
        let named = ["LSTORE_PAGER", "PAGER"].iter().find_map(|name| env::var(name).ok());
        let program = named.filter(|name| !name.is_empty()).unwrap_or_else(|| DEFAULT_PAGER.to_owned());
        let out = self.settings.out.as_mut();
        let mut pager = Pager { out, program, lines, held: Vec::new(), held_lines: 0, sink: None };
        let written = write(&mut pager);
        pager.finish()?;
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_written_and_what_does_not_goes_to_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pages");
        let program = format!("cat > '{}'", file.display());
        let mut out = Vec::new();
        for text in ["one\n", "one\ntwo\nthree\n"] {
            let program = program.clone();
            let mut pager = Pager { out: &mut out, program, lines: 2, held: Vec::new(), held_lines: 0, sink: None };
            text.lines().try_for_each(|line| writeln!(pager, "{line}")).unwrap();
            pager.finish().unwrap();
        }
        assert_eq!(out, b"one\n");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "one\ntwo\nthree\n");
    }
}
