//! The statements that make, run and forget prepared statements.
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, DiscardObject, Expr, Ident, ObjectName, Reset, SelectItem, SetExpr, Spanned, Statement,
};

use engine::{DataType, Value};

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::parsing::ParsedStatement;
use crate::session::Session;
use crate::session::kept_statements::Maker;
use crate::session::prepared::PreparedStatement;
use crate::session::substitute;
use crate::state::outcome::{Command, Outcome};
use crate::statements::copy::input::CopyInput;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::values::assign::{Texts, assign, is_assignable};
use crate::values::literals::{Literal, literal};
use crate::values::read_value;
use crate::values::text::text_value;
use crate::values::types::{parameter_type, type_name_of_field};

fn is_number(data_type: DataType) -> bool {
    use DataType::{BigInt, Decimal, Double, Integer, Real, SmallInt};
    matches!(data_type, SmallInt | Integer | BigInt | Real | Double | Decimal { .. })
}

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
        let types = types.iter().map(|name| parameter_type(name).map(Some));
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
        self.statements.add(&fold(name), prepared, Maker::Sql)?;
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
        let prepared = self.statements.get(&name_of(name)?)?;
        let values = self.arguments(&prepared, name, arguments, source)?;
        self.execute_bound(&prepared, &values, input)
    }

    /// An `EXPLAIN` of an `EXECUTE` as one of the statement that this would run; any other as it is.
    pub(super) fn explained_execution(&mut self, explain: Statement, source: &Source) -> Result<Statement> {
        let mut explain = explain;
        let Statement::Explain { statement, .. } = &mut explain else { return Ok(explain) };
        let Statement::Execute { name, parameters, .. } = statement.as_ref() else { return Ok(explain) };
        let prepared = self.statements.get(&name_of(name.as_ref())?)?;
        let values = self.arguments(&prepared, name.as_ref(), parameters, source)?;
        let mut bound = substitute::parameters(prepared.parsed.clone(), prepared.types(), &values)?;
        self.qualify(&mut bound, &Source::new(&prepared.text))?;
        if let ParsedStatement::Statement(bound) = bound {
            *statement = bound;
        }
        Ok(explain)
    }

    /// The values of the arguments of an `EXECUTE`.
    fn arguments(
        &mut self,
        prepared: &PreparedStatement,
        name: Option<&ObjectName>,
        arguments: &[Expr],
        source: &Source,
    ) -> Result<Vec<Value>> {
        if arguments.len() != prepared.parameters.len() {
            let name = name_of(name)?;
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let (expected, given) = (prepared.parameters.len(), arguments.len());
            return Err(SqlError::syntax(message).detail(format!("Expected {expected} parameters but got {given}.")));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for (at, (argument, data_type)) in arguments.iter().zip(&prepared.parameters).enumerate() {
            values.push(match literal(argument) {
                Some(Literal::Null) => Value::Null,
                Some(Literal::Text(text)) => read_value(&text, *data_type)?,
                Some(Literal::Number(text))
                    if is_number(*data_type)
                        && let Ok(value) = read_value(&text, *data_type) =>
                {
                    value
                }
                _ => self.compute((argument, at + 1), *data_type, source)?,
            });
        }
        Ok(values)
    }

    /// The value of an expression without columns as that of a parameter, to which it is assigned.
    fn compute(&mut self, (argument, number): (&Expr, usize), to: DataType, source: &Source) -> Result<Value> {
        let mut query = template("SELECT 1")?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection = vec![SelectItem::UnnamedExpr(argument.clone())];
        }
        let plan = self.plan(Statement::Query(query), source)?;
        let field = plan.schema().field(0).clone();
        if !is_assignable(&field, to, Texts::Stay) {
            let found = type_name_of_field(&field);
            let message = format!("parameter ${number} of type {found} cannot be coerced to the expected type {to}");
            let error = SqlError::mismatch(message).at(source.start(argument.span()));
            return Err(error.hint("You will need to rewrite or cast the expression."));
        }
        let batches = plan.collect()?;
        let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else { return Ok(Value::Null) };
        let assigned = assign(batch.column(0), &field, "", to, Texts::Stay);
        let assigned = assigned.map_err(|error| SqlError { detail: None, ..error })?;
        text_value(&assigned, 0).map_or(Ok(Value::Null), |text| read_value(&text, to))
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
                self.activity.notifications.unlisten(None);
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
