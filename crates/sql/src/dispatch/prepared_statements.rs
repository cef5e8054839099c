//! The statements that make, run and forget prepared statements.
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, DiscardObject, Expr, Ident, ObjectName, Reset, SelectItem, SetExpr, Statement,
};

use engine::Value;

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::parsing::ParsedStatement;
use crate::session::Session;
use crate::state::outcome::{Command, Outcome};
use crate::statements::copy::input::CopyInput;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::values::literals::{Literal, literal};
use crate::values::read_value;
use crate::values::text::text_value;
use crate::values::types::column_or_domain;

/// The name that an `EXECUTE` gives.
pub(crate) fn name_of(name: Option<&ObjectName>) -> Result<String> {
    let ident = name.and_then(|name| name.0.first()).and_then(|part| part.as_ident());
    ident.map(fold).ok_or_else(|| SqlError::syntax("EXECUTE needs the name of a prepared statement"))
}

impl Session {
    /// `PREPARE name [(type, ...)] AS statement`.
    pub(crate) fn prepare_statement(
        &mut self,
        name: &Ident,
        types: &[SqlType],
        statement: Statement,
        source: &Source,
    ) -> Result<Command> {
        let types = types.iter().map(|name| column_or_domain(name).map(|(data_type, _)| Some(data_type)));
        let types: Vec<_> = types.collect::<Result<_>>()?;
        let may_be_prepared = matches!(
            statement,
            Statement::Query(_)
                | Statement::Insert(_)
                | Statement::Update(_)
                | Statement::Delete(_)
                | Statement::Merge(_)
        );
        if !may_be_prepared {
            return Err(SqlError::syntax("only queries, INSERT, UPDATE and DELETE can be prepared"));
        }
        let prepared =
            self.prepare_parsed(source.text, ParsedStatement::of(Box::new(statement), Vec::new()), &types)?;
        self.statements.add(&fold(name), prepared)?;
        Ok(Command::new("PREPARE"))
    }

    /// `EXECUTE name [(value, ...)]`.
    pub(crate) fn execute_statement(
        &mut self,
        name: Option<&ObjectName>,
        arguments: &[Expr],
        source: &Source,
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        let name = name_of(name)?;
        let prepared = self.statements.get(&name)?;
        if arguments.len() != prepared.parameters.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let (expected, given) = (prepared.parameters.len(), arguments.len());
            return Err(SqlError::syntax(message).detail(format!("Expected {expected} parameters but got {given}.")));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, data_type) in arguments.iter().zip(&prepared.parameters) {
            values.push(match literal(argument) {
                Some(Literal::Null) => Value::Null,
                Some(Literal::Text(text) | Literal::Number(text)) => read_value(&text, *data_type)?,
                Some(Literal::Boolean(value)) => read_value(if value { "t" } else { "f" }, *data_type)?,
                _ => self.compute(argument, *data_type, source)?,
            });
        }
        self.execute_bound(&prepared, &values, input)
    }

    /// The value of an expression without columns.
    fn compute(&mut self, argument: &Expr, data_type: engine::DataType, source: &Source) -> Result<Value> {
        let mut query = template("SELECT 1")?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection = vec![SelectItem::UnnamedExpr(argument.clone())];
        }
        let batches = self.plan(Statement::Query(query), source)?.collect()?;
        let cell = batches.iter().find(|batch| batch.num_rows() > 0).map(|batch| batch.column(0).clone());
        match cell.and_then(|cell| text_value(&cell, 0)) {
            None => Ok(Value::Null),
            Some(text) => read_value(&text, data_type),
        }
    }

    /// `DISCARD`: all that a session has of its own, or a part of it.
    pub(crate) fn discard(&mut self, object: &DiscardObject) -> Result<Command> {
        match object {
            DiscardObject::ALL if self.block.is_some() => {
                Err(SqlError::new("25001", "DISCARD ALL cannot run inside a transaction block"))
            }
            DiscardObject::ALL => {
                self.deallocate(None)?;
                self.cursors.close_all();
                self.settings.reset(&Reset::ALL)?;
                self.activity.advisory.end();
                self.drop_temporary()?;
                Ok(Command::new("DISCARD ALL"))
            }
            DiscardObject::TEMP if self.block.is_some() => {
                let error = SqlError::unsupported("DISCARD TEMP in a transaction block");
                Err(error.hint("Drop the tables, or end the block."))
            }
            DiscardObject::TEMP => {
                self.drop_temporary()?;
                Ok(Command::new("DISCARD TEMP"))
            }
            other => Ok(Command::new(format!("DISCARD {other}"))),
        }
    }
}
