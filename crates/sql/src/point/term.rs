//! Where the values of a statement by key come from.
//!
//! A value is taken here only if it is plainly one of its column's type: a literal that reads as one, a parameter of the same
//! type, an integer of another width that fits. For all else there is the long way.
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, FunctionArguments, Value as SqlValue};
use engine::{Column, ColumnDefault, DataType, Schema, Value};

use super::exact::{bits, decimal, exact, is_integer};
use super::fills::{Fills, is_always_filled};
use crate::names::fold;
use crate::values::builder::ColumnBuilder;
use crate::values::literals::{Literal, append_literal, is_default, literal};
use crate::values::single::value_of_scalar;
use crate::values::types::BARE_NUMERIC;

/// Where a value comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// It is a value of the column's type, or NULL.
    Constant(Value),
    /// A parameter, counted from 0, for a column of this type.
    Parameter(usize, DataType),
    /// The time of the transaction, for a column of this type.
    Now(DataType),
    /// The next number of a sequence, for a column of this type.
    Next(String, DataType),
}

/// The value that a column is set to.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    Value(Origin),
    /// A column of integers plus or minus an integer, or one of decimals plus or minus a number. `width` is the type of
    /// the sum, `column_type` that of the column which it goes to.
    Sum {
        read: usize,
        by: Origin,
        is_minus: bool,
        width: DataType,
        column_type: DataType,
    },
}

impl Term {
    /// The column that it reads.
    pub(crate) fn reads(&self) -> Option<usize> {
        match self {
            Term::Value(_) => None,
            Term::Sum { read, .. } => Some(*read),
        }
    }
}

/// The names and types that a statement's expressions may use.
pub(crate) struct Scope<'a> {
    pub(crate) schema: &'a Schema,
    /// what the table is called by
    pub(crate) label: &'a str,
    /// of the parameters
    pub(crate) types: &'a [DataType],
}

impl Scope<'_> {
    /// The column that an expression is.
    pub(crate) fn column(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Identifier(ident) => self.schema.position(&fold(ident)),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [table, column] if fold(table) == self.label => self.schema.position(&fold(column)),
                _ => None,
            },
            Expr::Nested(inner) => self.column(inner),
            _ => None,
        }
    }

    /// Where the values of the primary key come from, if conditions say `column = value` for each of its columns once and
    /// nothing else.
    pub(crate) fn key(&self, conditions: &[&Expr]) -> Option<Vec<Origin>> {
        let key = self.schema.primary_key();
        if key.is_empty() || conditions.len() != key.len() {
            return None;
        }
        let of_column = |wanted: usize| conditions.iter().find_map(|condition| self.equality(condition, wanted));
        key.iter().map(|column| of_column(*column)).collect()
    }

    /// The value that a condition wants a column to have.
    fn equality(&self, condition: &Expr, wanted: usize) -> Option<Origin> {
        let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return None };
        let value = match (self.column(left), self.column(right)) {
            (Some(column), None) if column == wanted => right,
            (None, Some(column)) if column == wanted => left,
            _ => return None,
        };
        self.key_value(value, &self.schema.columns()[wanted])
    }

    /// A value to compare a column with, which nothing may be rounded or cut off of.
    pub(super) fn key_value(&self, expr: &Expr, column: &Column) -> Option<Origin> {
        if let Some(parameter) = self.parameter(expr, column.data_type) {
            return Some(parameter);
        }
        let value = match literal(expr)? {
            Literal::Number(number) => match column.data_type {
                DataType::Decimal { .. } => exact(&Value::Decimal(decimal(&number)?), column.data_type)?,
                _ => exact(&Value::BigInt(number.parse().ok()?), column.data_type)?,
            },
            Literal::Text(text) => match column.data_type {
                DataType::Text { .. } | DataType::Char { .. } => exact(&Value::Text(text), column.data_type)?,
                DataType::Decimal { .. } | DataType::Real | DataType::Double => return None,
                _ => read(Literal::Text(text), column)?,
            },
            Literal::Boolean(value) if column.data_type == DataType::Boolean => Value::Boolean(value),
            Literal::Typed(array, data_type) if data_type == column.data_type => {
                read(Literal::Typed(array, data_type), column)?
            }
            _ => return None,
        };
        Some(Origin::Constant(value)).filter(|_| !matches!(column.data_type, DataType::Real | DataType::Double))
    }

    /// A value that is put into a column.
    pub(crate) fn cell(&self, expr: &Expr, column: &Column) -> Option<Origin> {
        if let Some(parameter) = self.parameter(expr, column.data_type) {
            return Some(parameter);
        }
        if is_now(expr) && matches!(column.data_type, DataType::Timestamp | DataType::TimestampTz) {
            return Some(Origin::Now(column.data_type));
        }
        read(literal(expr)?, column).map(Origin::Constant)
    }

    fn parameter(&self, expr: &Expr, to: DataType) -> Option<Origin> {
        let Expr::Value(value) = expr else { return None };
        let SqlValue::Placeholder(name) = &value.value else { return None };
        let at = name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?;
        let fits = match (self.types.get(at)?, to) {
            (from, to) if is_integer(*from) => is_integer(to),
            (DataType::Text { .. }, DataType::Text { .. } | DataType::Char { .. })
            | (DataType::Decimal { .. }, DataType::Decimal { .. }) => true,
            (from, to) => *from == to,
        };
        fits.then_some(Origin::Parameter(at, to))
    }

    /// A column and what it is set to.
    pub(crate) fn set(&self, name: &str, expr: &Expr) -> Option<(usize, Term)> {
        let at = self.schema.position(name).filter(|_| !is_default(expr))?;
        let column = &self.schema.columns()[at];
        let term = match self.cell(expr, column) {
            Some(value) => Term::Value(value),
            None => self.sum(expr, column.data_type)?,
        };
        Some((at, term))
    }

    fn sum(&self, expr: &Expr, column_type: DataType) -> Option<Term> {
        let (left, right, is_minus) = match expr {
            Expr::Nested(inner) => return self.sum(inner, column_type),
            Expr::BinaryOp { left, op: BinaryOperator::Plus, right } => (left, right, false),
            Expr::BinaryOp { left, op: BinaryOperator::Minus, right } => (left, right, true),
            _ => return None,
        };
        let (read, other) = match (self.column(left), self.column(right)) {
            (Some(read), None) => (read, right),
            (None, Some(read)) if !is_minus => (read, left),
            _ => return None,
        };
        let read_type = self.schema.columns()[read].data_type;
        if let (DataType::Decimal { .. }, DataType::Decimal { .. }) = (read_type, column_type) {
            return Some(Term::Sum { read, by: self.number(other)?, is_minus, width: column_type, column_type });
        }
        let (by, by_type) = self.integer(other)?;
        if !is_integer(read_type) || !is_integer(column_type) {
            return None;
        }
        let width = if bits(read_type) >= bits(by_type) { read_type } else { by_type };
        Some(Term::Sum { read, by, is_minus, width, column_type })
    }

    /// A number that decimals are added to.
    fn number(&self, expr: &Expr) -> Option<Origin> {
        match literal(expr) {
            Some(Literal::Number(number)) => decimal(&number).map(Value::Decimal).map(Origin::Constant),
            _ => self.parameter(expr, BARE_NUMERIC).or_else(|| self.parameter(expr, DataType::BigInt)),
        }
    }

    /// An integer and the type that it has by itself.
    pub(super) fn integer(&self, expr: &Expr) -> Option<(Origin, DataType)> {
        if let Some(Literal::Number(number)) = literal(expr) {
            let number = number.parse::<i64>().ok()?;
            let data_type = if i32::try_from(number).is_ok() { DataType::Integer } else { DataType::BigInt };
            return Some((Origin::Constant(Value::BigInt(number)), data_type));
        }
        match self.parameter(expr, DataType::BigInt)? {
            Origin::Parameter(at, _) => Some((Origin::Parameter(at, DataType::BigInt), *self.types.get(at)?)),
            _ => None,
        }
    }

    /// Whole rows of `VALUES`: columns that are not named are filled with their defaults.
    pub(crate) fn rows(
        &self,
        names: &[String],
        rows: &[&[Expr]],
        defaults: &[ColumnDefault],
    ) -> Option<Vec<Vec<Origin>>> {
        let columns = self.schema.columns();
        let named = names.iter().map(|name| self.schema.position(name)).collect::<Option<Vec<_>>>()?;
        let targets = if names.is_empty() { (0..columns.len()).collect() } else { named };
        let is_twice = |(at, column): (usize, &usize)| targets[..at].contains(column);
        if targets.iter().enumerate().any(is_twice) {
            return None;
        }
        let is_left_out = |at: usize| match targets.iter().position(|target| *target == at) {
            Some(place) => rows.iter().any(|row| row.get(place).is_some_and(is_default)),
            None => true,
        };
        let fills = Fills::of(defaults, self, is_left_out);
        let row = |row: &&[Expr]| {
            if row.len() != targets.len() {
                return None;
            }
            let mut whole: Vec<Option<Origin>> = (0..columns.len()).map(|at| fills.origin(at).cloned()).collect();
            for (expr, at) in row.iter().zip(&targets).filter(|(expr, _)| !is_default(expr)) {
                whole[*at] = self.cell(expr, &columns[*at]).filter(|_| !is_always_filled(defaults, *at));
            }
            whole.into_iter().collect()
        };
        rows.iter().map(row).collect()
    }
}

/// A literal as it is assigned to a column.
fn read(literal: Literal, column: &Column) -> Option<Value> {
    if let Literal::Null = literal {
        return Some(Value::Null);
    }
    let mut builder = ColumnBuilder::new(column.data_type);
    append_literal(&mut builder, literal, column).ok()?;
    let scalar = ScalarValue::try_from_array(&builder.finish(), 0).ok()?;
    value_of_scalar(&scalar, column.data_type)
}

/// Whether an expression is the time of the transaction.
fn is_now(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let [part] = &function.name.0[..] else { return false };
    let Some(ident) = part.as_ident() else { return false };
    let has_no_arguments = match &function.args {
        FunctionArguments::None => ident.value.eq_ignore_ascii_case("current_timestamp"),
        FunctionArguments::List(list) => list.args.is_empty() && ident.value.eq_ignore_ascii_case("now"),
        FunctionArguments::Subquery(_) => false,
    };
    has_no_arguments && ident.quote_style.is_none() && function.filter.is_none() && function.over.is_none()
}
