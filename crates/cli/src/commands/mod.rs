//! The backslash commands.
use std::io;
use std::path::Path;

use clap::ValueEnum;
use engine::Table as EngineTable;
use sql::{Outcome, SqlError};

use crate::diagnostics::ScriptPlace;
use crate::output::Format;
use crate::output::table::Table;
use crate::shell::{Shell, Stop};

/// The commands: name, arguments, what they do.
pub(crate) const COMMANDS: [(&str, &str, &str); 9] = [
    ("\\d", "[TABLE]", "list the tables, or describe one"),
    ("\\dt", "", "list the tables"),
    ("\\timing", "[on|off]", "tell how long each statement takes"),
    ("\\i", "FILE", "run a script"),
    ("\\o", "[FILE]", "write rows to a file, or to the terminal again"),
    ("\\format", "[FORMAT]", "table, csv, json or markdown"),
    ("\\echo", "[TEXT]", "write a line"),
    ("\\q", "", "leave (so does Ctrl-D)"),
    ("\\?", "", "this list"),
];

impl Shell {
    /// Runs one backslash command.
    pub(crate) fn run_command(&mut self, text: &str, place: Option<&ScriptPlace>) -> Result<(), Stop> {
        if self.restricted.is_some() && !text.starts_with("\\unrestrict") {
            let message = "backslash commands are restricted; only \\unrestrict is allowed";
            return Err(self.fail(message, place));
        }
        self.dispatch(text, place)?;
        Ok(self.out().flush()?)
    }

    fn dispatch(&mut self, text: &str, place: Option<&ScriptPlace>) -> Result<(), Stop> {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        // A semicolon is a habit, not part of a name.
        let name = name.trim_end_matches(';');
        let argument = rest.trim().trim_end_matches(';').trim_end();
        let done = match name {
            "\\q" | "\\quit" => return Err(Stop::Quit),
            "\\?" | "\\h" | "\\help" => self.help(),
            "\\dt" => self.list_tables(),
            "\\d" if argument.is_empty() => self.list_tables(),
            "\\d" => return self.describe(&unquoted(argument), place),
            "\\timing" => return self.set_timing(argument, place),
            "\\format" => return self.set_format(argument, place),
            "\\restrict" | "\\unrestrict" => return self.restrict(name == "\\restrict", argument, place),
            "\\echo" => writeln!(self.out(), "{}", rest.trim()),
            "\\o" => return self.set_output(argument, place),
            "\\i" | "\\include" if argument.is_empty() => return Err(self.fail("\\i: which file?", place)),
            "\\i" | "\\include" => return self.run_file(Path::new(&unquoted_text(argument))),
            _ => {
                let message = format!("invalid command {name}; \\? lists the commands");
                return Err(self.fail(&message, place));
            }
        };
        Ok(done?)
    }

    fn help(&mut self) -> io::Result<()> {
        for (name, arguments, meaning) in COMMANDS {
            let usage = format!("{name} {arguments}");
            writeln!(self.out(), "  {usage:<20} {meaning}")?;
        }
        writeln!(self.out(), "Everything else is SQL and ends with a semicolon. Tab completes, Ctrl-C clears the line.")
    }

    fn list_tables(&mut self) -> io::Result<()> {
        let names = self.db.table_names();
        if names.is_empty() {
            return writeln!(self.out(), "There are no tables.");
        }
        let mut list = Table::new([("table", false), ("columns", true), ("primary key", false), ("records", true)]);
        for name in names {
            // Another session may have dropped it since.
            let Ok(table) = self.db.table(&name) else { continue };
            let columns = table.schema().columns().len().to_string();
            list.push_texts([
                engine::shown_name(&name),
                columns,
                key_columns(&table),
                table.stats().records.to_string(),
            ]);
        }
        list.write(self.out(), true, true, false)
    }

    fn describe(&mut self, name: &str, place: Option<&ScriptPlace>) -> Result<(), Stop> {
        let within = name.split_once('.').map(|(schema, table)| engine::name_in_schema(schema, table));
        let table = match self.db.table(within.as_deref().unwrap_or(name)) {
            Ok(table) => table,
            Err(error) => return Err(self.fail(&error.to_string(), place)),
        };
        let mut list = Table::new([("column", false), ("type", false), ("nullable", false)]);
        for column in table.schema().columns() {
            let nullable = if column.nullable { "" } else { "not null" };
            list.push_texts([column.name.clone(), column.data_type.to_string(), nullable.to_owned()]);
        }
        let stats = table.stats();
        let (key, indexes) = (key_columns(&table), self.index_lines(&table));
        let out = self.out();
        writeln!(out, "Table \"{name}\"")?;
        list.write(out, true, false, false)?;
        if !key.is_empty() {
            writeln!(out, "Primary key: ({key})")?;
        }
        if !indexes.is_empty() {
            writeln!(out, "Indexes:\n    {}", indexes.join("\n    "))?;
        }
        writeln!(out, "Records: {} in {} ranges", stats.records, stats.ranges)?;
        let (tails, unmerged) = (stats.tail_records, stats.tail_records_unmerged);
        Ok(writeln!(out, "Tail records: {tails}, {unmerged} of them not merged yet; merges: {}\n", stats.merges)?)
    }

    /// What a table's other indexes are, a line for each; none where a transaction has failed, as nothing is read then.
    fn index_lines(&mut self, table: &EngineTable) -> Vec<String> {
        let quoted = |index: &engine::Index| {
            format!("'{}'", engine::schema_and_name(&index.definition().name).1.replace('\'', "''"))
        };
        let names: Vec<String> = table.indexes().iter().map(quoted).collect();
        let query = "SELECT indexname, indexdef FROM pg_catalog.pg_indexes WHERE indexname IN";
        match names.is_empty() {
            true => Vec::new(),
            false => self.index_texts(&format!("{query} ({}) ORDER BY 1", names.join(", "))).unwrap_or_default(),
        }
    }

    fn index_texts(&mut self, query: &str) -> Result<Vec<String>, SqlError> {
        let Outcome::Rows(rows) = self.session.execute(query)? else { return Ok(Vec::new()) };
        let mut lines = Vec::new();
        for batch in rows {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                let [name, definition] = [0, 1].map(|at| sql::text_value(batch.column(at), row).unwrap_or_default());
                let unique = if definition.starts_with("CREATE UNIQUE") { "UNIQUE, " } else { "" };
                let method = definition.split_once(" USING ").map_or(&*definition, |(_, method)| method);
                lines.push(format!("\"{name}\" {unique}{method}"));
            }
        }
        Ok(lines)
    }

    fn set_timing(&mut self, argument: &str, place: Option<&ScriptPlace>) -> Result<(), Stop> {
        self.timing = match argument {
            "" => !self.timing,
            "on" => true,
            "off" => false,
            _ => return Err(self.fail("\\timing takes on or off", place)),
        };
        let state = if self.timing { "on" } else { "off" };
        Ok(writeln!(self.out(), "Timing is {state}.")?)
    }

    /// What scripts of `pg_dump` begin and end with: data in them that looks like a command is none, as the key is not known to its author.
    fn restrict(&mut self, is_begun: bool, key: &str, place: Option<&ScriptPlace>) -> Result<(), Stop> {
        match (is_begun, self.restricted.clone()) {
            _ if key.is_empty() => Err(self.fail("\\restrict and \\unrestrict need a key", place)),
            (true, _) => {
                self.restricted = Some(key.to_owned());
                Ok(())
            }
            (false, Some(known)) if known == key => {
                self.restricted = None;
                Ok(())
            }
            (false, Some(_)) => Err(self.fail("\\unrestrict: wrong key", place)),
            (false, None) => Err(self.fail("\\unrestrict: not currently in restricted mode", place)),
        }
    }

    fn set_format(&mut self, argument: &str, place: Option<&ScriptPlace>) -> Result<(), Stop> {
        if !argument.is_empty() {
            match Format::from_str(argument, true) {
                Ok(format) => self.settings.style.format = format,
                Err(_) => return Err(self.fail("\\format takes table, csv, json or markdown", place)),
            }
        }
        if argument.is_empty() || self.settings.interactive {
            let name = self.settings.style.format.name();
            writeln!(self.out(), "Output format is {name}.")?;
        }
        Ok(())
    }

    fn set_output(&mut self, argument: &str, place: Option<&ScriptPlace>) -> Result<(), Stop> {
        let argument = unquoted_text(argument);
        let path = (!argument.is_empty()).then(|| Path::new(&argument));
        self.redirect(path).map_err(|error| self.fail(&format!("{argument}: {error}"), place))
    }
}

fn key_columns(table: &EngineTable) -> String {
    let schema = table.schema();
    let names: Vec<&str> = schema.primary_key().iter().map(|at| schema.columns()[*at].name.as_str()).collect();
    names.join(", ")
}

/// A table's name as the catalog has it: lower case unless quoted.
fn unquoted(name: &str) -> String {
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => name.to_lowercase(),
    }
}

/// A file's name without the quotes that may stand around it.
fn unquoted_text(text: &str) -> String {
    match text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        Some(inner) => inner.replace("''", "'"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_sql() {
        assert_eq!(unquoted("Orders"), "orders");
        assert_eq!(unquoted("\"Odd \"\"one\""), "Odd \"one");
        assert_eq!(unquoted_text("'a b'"), "a b");
    }
}
