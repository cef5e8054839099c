//! Lines from a terminal: editing, history and completion by rustyline.
use std::cell::RefCell;
use std::collections::VecDeque;
use std::env;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;

use engine::Database;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Context, Editor, Helper, Highlighter, Hinter, Validator};

use crate::complete::Completion;
use crate::shell::lines::{Line, LineSource, ROW_PROMPT};
use crate::terminal;

/// How many entries the history keeps.
const HISTORY_ENTRIES: usize = 10_000;

/// How long a row is waited for before the statement may look whether it is to stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// A line editor on the terminal.
pub(crate) struct TerminalEditor {
    /// Lines that were pasted together with the last one.
    pasted: VecDeque<String>,
    /// Whether the prompt for a row stands there.
    is_asking: bool,
    editor: Editor<Assistant, DefaultHistory>,
    history: Option<PathBuf>,
}

impl TerminalEditor {
    /// An editor that completes the names of `db`.
    pub(crate) fn new(db: &Database) -> io::Result<TerminalEditor> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .history_ignore_space(true)
            .max_history_size(HISTORY_ENTRIES)
            .map_err(io::Error::other)?
            .build();
        let mut editor = Editor::with_config(config).map_err(io::Error::other)?;
        editor
            .set_helper(Some(Assistant { names: RefCell::new(Completion::new(db)), files: FilenameCompleter::new() }));
        let history = history_path();
        if let Some(path) = &history {
            // There is none before the first session ends; one that can't be read is no reason not to start.
            let _ = editor.load_history(path);
        }
        Ok(TerminalEditor { pasted: VecDeque::new(), is_asking: false, editor, history })
    }
}

/// Where the history is kept: `$LSTORE_HISTORY`, else `.lstore_history` at home; nowhere if that is set but empty.
fn history_path() -> Option<PathBuf> {
    match env::var_os("LSTORE_HISTORY") {
        Some(path) => (!path.is_empty()).then(|| PathBuf::from(path)),
        None => env::home_dir().map(|home| home.join(".lstore_history")),
    }
}

impl LineSource for TerminalEditor {
    fn read_line(&mut self, prompt: &str) -> io::Result<Line> {
        if let Some(line) = self.pasted.pop_front() {
            return Ok(Line::Text(line));
        }
        match self.editor.readline(prompt) {
            Ok(text) => {
                self.pasted = text.split('\n').map(str::to_owned).collect();
                Ok(Line::Text(self.pasted.pop_front().unwrap_or_default()))
            }
            Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(ReadlineError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn history(&self) -> Vec<String> {
        self.editor.history().iter().map(|entry| format!("{entry}\n")).collect()
    }

    /// Rows are typed without the editor, to which a tab means something else.
    fn read_row(&mut self, line: &mut Vec<u8>) -> io::Result<()> {
        if let Some(pasted) = self.pasted.pop_front() {
            line.extend_from_slice(format!("{pasted}\n").as_bytes());
            return Ok(());
        }
        if !self.is_asking {
            let mut out = io::stdout();
            out.write_all(ROW_PROMPT.as_bytes())?;
            out.flush()?;
            self.is_asking = true;
        }
        if !terminal::has_input(PATIENCE)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.is_asking = false;
        io::stdin().lock().read_until(b'\n', line).map(drop)
    }

    fn remember(&mut self, entry: &str) {
        if matches!(self.editor.add_history_entry(entry), Ok(true))
            && let Some(path) = &self.history
        {
            // Kept after each entry, so that a session that is killed loses none. A full disk must not end the shell.
            let _ = self.editor.append_history(path);
        }
    }
}

/// Answers the editor's questions while the user types.
#[derive(Helper, Hinter, Highlighter, Validator)]
struct Assistant {
    names: RefCell<Completion>,
    files: FilenameCompleter,
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, cursor: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let with_files = ["\\i ", "\\ir ", "\\o ", "\\w ", "\\e ", "\\cd ", "\\g "];
        if with_files.iter().any(|command| line[..cursor].contains(command)) {
            return self.files.complete(line, cursor, context);
        }
        let (start, names) = self.names.borrow_mut().candidates(line, cursor);
        let pair = |name: String| Pair { display: name.clone(), replacement: name };
        Ok((start, names.into_iter().map(pair).collect()))
    }
}
