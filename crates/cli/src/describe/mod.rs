//! `\d` and its kin: what there is in the database, as psql lists and describes it.
//!
//! Everything is asked of the catalog through the shell's own session, with the queries that psql sends, so that the shell sees what
//! its transaction sees, the search path and temporary tables included, and there is one source of the truth for both.
//!
//! `lists` has the queries behind lists of objects, `relations` those behind lists of tables, views, indexes and sequences, `relation`
//! describes one of them with its `footers`, `definitions` writes the source of views and functions, `pattern` reads patterns.
use std::io;

use sql::SqlError;

use crate::output::rows::{Footer, Row};
use crate::output::table::Table;
use crate::shell::{Failure, Shell};

mod ask;
mod definitions;
mod footers;
mod lists;
mod pattern;
mod relation;
mod relations;
mod roles;

pub(crate) use ask::Ask;

impl Shell {
    /// Lists or describes what is asked for. `false` where there is no such command.
    pub(crate) fn describe(&mut self, ask: &Ask) -> Result<bool, Failure> {
        let kinds = ask.command.strip_prefix('d').unwrap_or_default();
        match ask.command.as_str() {
            "d" if ask.pattern.is_some() => self.describe_relations(ask)?,
            "d" => self.list_relations(ask, "tvmsE")?,
            "du" | "dg" => self.list_roles(ask)?,
            "dd" if ask.pattern.is_none() && !ask.with_system => self.list(ask, "dd")?,
            "z" => self.list(ask, "dp")?,
            "list" => self.list(ask, "l")?,
            _ if !kinds.is_empty() && kinds.chars().all(|kind| "tvmsiE".contains(kind)) => {
                self.list_relations(ask, kinds)?;
            }
            command if lists::has(command) => self.list(ask, command)?,
            command => match lists::missing(command) {
                Some(objects) => self.tell(&format!("Did not find any {objects}, as lstore has none."))?,
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    /// The rows of a query of the catalog; an error is told as that of a statement.
    fn ask(&mut self, query: &str) -> Result<Vec<Row>, Failure> {
        self.query(query).map_err(|error| self.catalog_failed(&error, query))
    }

    fn catalog_failed(&mut self, error: &SqlError, query: &str) -> Failure {
        let place = self.place.clone();
        self.tell_error(error, query, place.as_ref()).map_or_else(Failure::from, |()| Failure::Told)
    }

    /// Writes the rows of a query under a title; where there are none, says so if `nothing` is what there is to say.
    fn show(&mut self, title: &str, query: &str, nothing: Option<&str>) -> Result<(), Failure> {
        let answered = self.query_with_columns(query);
        let (columns, rows) = answered.map_err(|error| self.catalog_failed(&error, query))?;
        if let Some(nothing) = nothing.filter(|_| rows.is_empty() && !self.variables.is_on("QUIET")) {
            return Ok(self.tell(nothing)?);
        }
        let footer = if self.settings.style.footer { Footer::Count(rows.len() as u64) } else { Footer::Nothing };
        let table = Table { title: Some(title.to_owned()), columns, rows, footer };
        Ok(self.write_table(&table)?)
    }

    pub(crate) fn write_table(&mut self, table: &Table) -> io::Result<()> {
        let style = self.style();
        self.paged(|out| table.write(out, &style))
    }

    /// Tells something that is no failure, unless the user wants to hear little.
    fn tell(&mut self, message: &str) -> io::Result<()> {
        if self.variables.is_on("QUIET") {
            return Ok(());
        }
        let place = self.place.clone();
        self.tell_failure(message, place.as_ref())
    }
}
