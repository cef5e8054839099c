//! `\du` and `\dg`: the roles, of which lstore has the one that every session works as.
use super::ask::{Ask, is_true, text};
use super::pattern::{Columns, Pattern};
use crate::output::rows::{Column, Footer, Row};
use crate::output::table::Table;
use crate::shell::{Failure, Shell};

impl Shell {
    pub(super) fn list_roles(&mut self, ask: &Ask) -> Result<(), Failure> {
        let columns = Columns { schema: None, name: "r.rolname", other: None, is_visible: None };
        let conditions = match &ask.pattern {
            Some(pattern) => Pattern::read(pattern)?.conditions(columns),
            None if ask.with_system => String::new(),
            None => "\n  AND r.rolname !~ '^pg_'".to_owned(),
        };
        let query = format!(
            "SELECT r.rolname, r.rolsuper, r.rolinherit,\n  r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolreplication, \
             r.rolbypassrls\nFROM pg_catalog.pg_roles r\nWHERE true{conditions}\nORDER BY 1;"
        );
        let mut columns: Vec<Column> = ["Role name", "Attributes", "Member of"].map(Column::text).into();
        let mut rows: Vec<Row> = self.ask(&query)?.iter().map(role).collect();
        if ask.is_verbose {
            columns.push(Column::text("Description"));
            rows.iter_mut().for_each(|row| row.push(Some(String::new())));
        }
        Ok(self.write_table(&Table {
            title: Some("List of roles".to_owned()),
            columns,
            rows,
            footer: Footer::Nothing,
        })?)
    }
}

fn role(row: &Row) -> Row {
    let facts = [
        (is_true(row, 1), "Superuser"),
        (!is_true(row, 2), "No inheritance"),
        (is_true(row, 3), "Create role"),
        (is_true(row, 4), "Create DB"),
        (!is_true(row, 5), "Cannot login"),
        (is_true(row, 6), "Replication"),
        (is_true(row, 7), "Bypass RLS"),
    ];
    let facts: Vec<&str> = facts.iter().filter(|(holds, _)| *holds).map(|(_, words)| *words).collect();
    vec![Some(text(row, 0).to_owned()), Some(facts.join(", ")), Some("{}".to_owned())]
}
