//! `\sf`, `\sv`, `\ef` and `\ev`: the statement that makes a function or a view.
use super::ask::text;
use crate::shell::variables::literal;
use crate::shell::{Failure, Shell};

impl Shell {
    /// Writes the definition of a function, with the numbers of the lines of its body where `is_numbered` says so.
    pub(crate) fn show_function(&mut self, name: &str, is_numbered: bool) -> Result<(), Failure> {
        if name.is_empty() {
            return Err(Failure::Message("function name is required".to_owned()));
        }
        let definition = self.function_definition(name)?;
        let begins_body = |line: &str| ["AS ", "BEGIN ", "RETURN "].iter().any(|word| line.starts_with(word));
        self.show_definition(&definition, is_numbered, begins_body)
    }

    /// Writes the definition of a view.
    pub(crate) fn show_view(&mut self, name: &str, is_numbered: bool) -> Result<(), Failure> {
        if name.is_empty() {
            return Err(Failure::Message("view name is required".to_owned()));
        }
        let definition = self.view_definition(name)?;
        self.show_definition(&definition, is_numbered, |_| true)
    }

    /// The statement that makes a function.
    pub(crate) fn function_definition(&mut self, name: &str) -> Result<String, Failure> {
        let kind = if name.contains('(') { "regprocedure" } else { "regproc" };
        let query = format!("SELECT {}::pg_catalog.{kind}::pg_catalog.oid", literal(name));
        let found = self.query(&query).map_err(|error| match error.sqlstate {
            "22P02" | "42883" => Failure::Message(format!("function \"{name}\" does not exist")),
            _ => self.catalog_failed(&error, &query),
        })?;
        let oid = found.first().map_or("", |row| text(row, 0)).to_owned();
        let answered = self.ask(&format!("SELECT pg_catalog.pg_get_functiondef({oid})"))?;
        Ok(answered.first().map_or("", |row| text(row, 0)).to_owned())
    }

    /// The statement that makes a view.
    pub(crate) fn view_definition(&mut self, name: &str) -> Result<String, Failure> {
        let found = self.ask(&format!("SELECT {}::pg_catalog.regclass::pg_catalog.oid", literal(name)))?;
        let oid = found.first().map_or("", |row| text(row, 0)).to_owned();
        let query = format!(
            "SELECT pg_catalog.quote_ident(nspname) || '.' || pg_catalog.quote_ident(relname), relkind, \
             pg_catalog.pg_get_viewdef(c.oid, true) FROM pg_catalog.pg_class c \
             LEFT JOIN pg_catalog.pg_namespace n ON c.relnamespace = n.oid WHERE c.oid = {oid}"
        );
        let answered = self.ask(&query)?;
        let row = answered.first().ok_or_else(|| format!("relation \"{name}\" does not exist"))?;
        let statement = match text(row, 1) {
            "m" => "CREATE MATERIALIZED VIEW",
            "v" => "CREATE OR REPLACE VIEW",
            _ => return Err(Failure::Message(format!("\"{}\" is not a view", text(row, 0)))),
        };
        Ok(format!("{statement} {} AS\n{}", text(row, 0), text(row, 2).trim_end_matches(';')))
    }

    fn show_definition(
        &mut self,
        definition: &str,
        is_numbered: bool,
        begins_body: impl Fn(&str) -> bool,
    ) -> Result<(), Failure> {
        let mut number = 0;
        for line in definition.trim_end().lines() {
            if is_numbered {
                number += usize::from(number > 0 || begins_body(line));
                let told = if number == 0 { String::new() } else { number.to_string() };
                writeln!(self.out(), "{told:<7} {line}")?;
            } else {
                writeln!(self.out(), "{line}")?;
            }
        }
        Ok(())
    }
}
