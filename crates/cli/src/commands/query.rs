//! The commands about what has been typed: `\g` and its kin send it, `\p`, `\r`, `\w` and `\e` show, forget, write and edit it, `\s`
//! shows what has been typed before.
use std::thread;
use std::time::Duration;

use super::arguments::Call;
use super::files::{from_home, sink_name};
use crate::output::options::set_option;
use crate::output::style::Expanded;
use crate::shell::lines::LineSource;
use crate::shell::reading::{Destination, Next, Reading};
use crate::shell::{Failure, Shell, trouble};

/// How long `\watch` waits at a time before it looks whether the user has had enough.
const PATIENCE: Duration = Duration::from_millis(50);

/// What `\ef` and `\ev` have the user edit where none is named.
const NEW_FUNCTION: &str = "CREATE FUNCTION ( )\n RETURNS \n LANGUAGE sql\nAS $function$\n\n$function$\n";
const NEW_VIEW: &str = "CREATE VIEW  AS\n SELECT \n";

impl Shell {
    /// Runs one of these commands; `None` where it is another one.
    pub(super) fn run_query_command(
        &mut self,
        call: &Call,
        reading: &mut Reading,
        source: &mut dyn LineSource,
    ) -> Result<Option<Next>, Failure> {
        let destination = match call.name.as_str() {
            "g" | "gx" => self.destination_of(call)?,
            "gset" => Destination { variables: Some(call.word(0).to_owned()), ..Destination::default() },
            "gexec" => Destination { executes: true, ..Destination::default() },
            "gdesc" => Destination { describes: true, ..Destination::default() },
            "crosstabview" => Destination { crosstab: Some(call.words.clone()), ..Destination::default() },
            "watch" => {
                self.watch(call.word(0), reading, source)?;
                return Ok(Some(Next::Line));
            }
            "bind" => {
                self.bound = Some(call.words.clone());
                return Ok(Some(Next::Line));
            }
            "p" | "print" => {
                let text = reading.buffer.current().trim_end().to_owned();
                let shown = if text.is_empty() { "Query buffer is empty.".to_owned() } else { text };
                writeln!(self.out(), "{shown}")?;
                return Ok(Some(Next::Line));
            }
            "r" | "reset" => {
                reading.buffer.clear();
                self.say("Query buffer reset (cleared).")?;
                return Ok(Some(Next::Line));
            }
            "s" => {
                let entries = source.history().concat();
                match call.word(0) {
                    "" => self.paged(|out| out.write_all(entries.as_bytes()))?,
                    file => std::fs::write(from_home(file), entries).map_err(|error| trouble(file, &error))?,
                }
                return Ok(Some(Next::Line));
            }
            "w" | "write" => {
                self.write_buffer(reading, call.word(0))?;
                return Ok(Some(Next::Line));
            }
            "e" | "edit" | "ef" | "ev" => {
                self.edit_command(call, reading)?;
                let is_whole = reading.buffer.text.trim_end().ends_with(';');
                return Ok(Some(if is_whole { Next::Send(Box::default()) } else { Next::Line }));
            }
            _ => return Ok(None),
        };
        Ok(Some(Next::Send(Box::new(destination))))
    }

    /// Has the user edit what has been typed, a file, or the definition of a function or a view.
    fn edit_command(&mut self, call: &Call, reading: &mut Reading) -> Result<(), Failure> {
        let name = call.words.join(" ");
        let definition = match (call.name.as_str(), name.is_empty()) {
            ("ef", true) => NEW_FUNCTION.to_owned(),
            ("ef", false) => self.function_definition(&name)?,
            ("ev", true) => NEW_VIEW.to_owned(),
            ("ev", false) => self.view_definition(&name)?,
            _ => return self.edit(reading, call.word(0)),
        };
        reading.buffer.replace(&definition);
        self.edit(reading, "")
    }

    /// Where `\g` sends rows, and how they look there: `\g (format=csv tuples_only=on) rows.csv`.
    fn destination_of(&self, call: &Call) -> Result<Destination, String> {
        let mut style = self.settings.style.clone();
        let mut words = call.words.iter().peekable();
        if words.peek().is_some_and(|word| word.starts_with('(')) {
            for word in words.by_ref() {
                let option = word.trim_start_matches('(').trim_end_matches(')');
                let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
                if !name.is_empty() {
                    set_option(&mut style, name, value)?;
                }
                if word.ends_with(')') {
                    break;
                }
            }
        }
        if call.name == "gx" {
            style.expanded = Expanded::On;
        }
        let sink = words.next().map(|word| sink_name(word));
        let changed = style != self.settings.style;
        Ok(Destination { sink, style: changed.then_some(style), ..Destination::default() })
    }

    /// Sends what has been typed again and again, until it fails or the user has had enough.
    fn watch(&mut self, seconds: &str, reading: &mut Reading, source: &mut dyn LineSource) -> Result<(), Failure> {
        let seconds = if seconds.is_empty() { Ok(2.0) } else { seconds.parse::<f64>() };
        let pause = seconds.ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let pause = pause.ok_or("\\watch: the interval is a number of seconds")?;
        if reading.buffer.current().trim().is_empty() {
            return Err(Failure::Message("\\watch cannot be used with an empty query".to_owned()));
        }
        self.interrupts.begin();
        let title = self.settings.style.title.clone();
        let mut done = Ok(());
        while done.is_ok() && !self.interrupts.has_come() {
            let now = self.query("SELECT pg_catalog.to_char(pg_catalog.now(), 'Dy Mon DD HH24:MI:SS YYYY')");
            let now = now.ok().and_then(|rows| rows.into_iter().flatten().flatten().next()).unwrap_or_default();
            let every = format!("{now} (every {}s)\n", pause.as_secs_f64());
            self.settings.style.title = Some(title.as_ref().map_or(every.clone(), |title| format!("{title}\t{every}")));
            done = self.send(reading, Destination::default(), source);
            self.out().flush()?;
            let mut left = pause;
            while done.is_ok() && !left.is_zero() && !self.interrupts.has_come() {
                let part = left.min(PATIENCE);
                thread::sleep(part);
                left -= part;
            }
        }
        self.settings.style.title = title;
        done
    }
}
