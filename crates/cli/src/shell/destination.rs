//! What becomes of the rows of a query: they are written, become variables (`\gset`), are run (`\gexec`), or are turned (`\crosstabview`).
use sql::{Outcome, Rows, SqlError};

use super::lines::LineSource;
use super::reading::{Destination, Reading};
use super::{Failure, Shell, crosstab};
use crate::output::rows::{Column, Footer, Row, RowsError};
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::{columns_of, rows_of, write_rows};
use crate::terminal;

impl Shell {
    /// Has rows become what they are to; returns how many there were.
    pub(crate) fn take_rows(&mut self, rows: Rows, destination: &Destination) -> Result<u64, RowsError> {
        let _zone = rows.in_zone();
        let schema = rows.schema();
        if let Some(prefix) = &destination.variables {
            return self.set_from(gathered(rows).map_err(RowsError::Query)?, prefix);
        }
        if destination.executes {
            let (_, rows) = gathered(rows).map_err(RowsError::Query)?;
            self.cells = rows.into_iter().flatten().flatten().collect();
            return Ok(0);
        }
        let style = self.on_screen(destination.style.as_ref().unwrap_or(&self.settings.style));
        if let Some(names) = &destination.crosstab {
            let (columns, rows) = gathered(rows).map_err(RowsError::Query)?;
            let count = rows.len() as u64;
            let table = crosstab::turned(&columns, &rows, names).map_err(RowsError::Refused)?;
            self.paged(|out| table.write(out, &style))?;
            return Ok(count);
        }
        self.paged(|out| write_rows(out, &schema, rows, &style))
    }

    /// How rows look that go where rows go now.
    pub(crate) fn style(&self) -> Style {
        self.on_screen(&self.settings.style)
    }

    /// A style with the width of the terminal, where rows go to one and no other width is set.
    fn on_screen(&self, style: &Style) -> Style {
        let terminal = || terminal::columns().filter(|_| self.redirected.is_none());
        Style { screen: style.screen.or_else(terminal), ..style.clone() }
    }

    /// Has the values of the one row become variables. NULL takes its variable away.
    fn set_from(&mut self, gathered: (Vec<Column>, Vec<Row>), prefix: &str) -> Result<u64, RowsError> {
        let (columns, rows) = gathered;
        let [row] = <[Row; 1]>::try_from(rows).map_err(|rows| {
            let count = if rows.is_empty() { "no rows" } else { "more than one row" };
            RowsError::Refused(format!("{count} returned for \\gset"))
        })?;
        for (column, value) in columns.iter().zip(row) {
            let name = format!("{prefix}{}", column.name);
            match value {
                Some(value) => self.variables.set(&name, &value).map_err(RowsError::Refused)?,
                None => self.variables.unset(&name),
            }
        }
        Ok(1)
    }

    /// Runs the values that a query has given, one after the other.
    pub(crate) fn run_cells(&mut self, reading: &mut Reading, source: &mut dyn LineSource) -> Result<(), Failure> {
        let mut outcome = Ok(());
        for text in std::mem::take(&mut self.cells) {
            match self.send_text(&text, reading, &Destination::default(), source) {
                Err(Failure::Told) if !self.variables.is_on("ON_ERROR_STOP") => outcome = Err(Failure::Told),
                done => done?,
            }
        }
        outcome
    }

    /// Tells the names and types of the columns that a statement would give.
    pub(crate) fn tell_columns(&mut self, statement: &str) -> Result<(), RowsError> {
        let prepared = self.session.prepare(statement, &[]).map_err(RowsError::Query)?;
        let Some(schema) = self.session.describe(&prepared).map_err(RowsError::Query)? else {
            let message = "The command has no result, or the result has no columns.";
            return Ok(writeln!(self.out(), "{message}")?);
        };
        let mut table = Table::new([("Column", false), ("Type", false)]);
        for (column, field) in columns_of(&schema).into_iter().zip(schema.fields()) {
            let modifier = sql::Origin::of_field(field).modifier;
            let query = format!("SELECT pg_catalog.format_type({}, {modifier})", column.oid);
            let name = self.query(&query).map_err(RowsError::Query)?.into_iter().flatten().flatten().next();
            table.push_texts([column.name, name.unwrap_or_default()]);
        }
        table.footer = Footer::Count(table.rows.len() as u64);
        let style = self.style();
        Ok(table.write(self.out(), &style)?)
    }

    /// The rows of a query of the shell's own, which `ECHO_HIDDEN` shows.
    pub(crate) fn query(&mut self, query: &str) -> Result<Vec<Row>, SqlError> {
        self.query_with_columns(query).map(|(_, rows)| rows)
    }

    /// The columns and rows of a query of the shell's own.
    pub(crate) fn query_with_columns(&mut self, query: &str) -> Result<(Vec<Column>, Vec<Row>), SqlError> {
        if self.variables.text("ECHO_HIDDEN") != "off" {
            let shown = format!("********* QUERY **********\n{query}\n**************************\n\n");
            self.out().write_all(shown.as_bytes()).map_err(|error| SqlError::new("58030", error.to_string()))?;
        }
        match self.session.execute(query)? {
            Outcome::Rows(rows) => gathered(rows),
            Outcome::Done(_) => Ok((Vec::new(), Vec::new())),
        }
    }
}

/// All rows of a query with their columns.
fn gathered(rows: Rows) -> Result<(Vec<Column>, Vec<Row>), SqlError> {
    let _zone = rows.in_zone();
    let columns = columns_of(&rows.schema());
    let mut all = Vec::new();
    for batch in rows {
        let batch = batch?;
        all.extend(rows_of(&batch, &columns));
    }
    Ok((columns, all))
}
