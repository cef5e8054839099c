//! Expressions and predicates of indexes: what they mean, and how they are written.
//!
//! ```text
//! CREATE INDEX ──> checked, planned (`compile`) ──> written out (`write`) ──> the catalog, as text
//! opening      ──> the text parsed, planned ──> worked out for rows, by DataFusion's physical expressions
//! a query      ──> its conditions compared with the planned form (`index_path`)
//! ```
//!
//! The engine knows none of this: it asks [`Expressions`], which is supplied where a database is opened (`opening`) and
//! wherever a session begins.
mod compile;
mod write;

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType as ArrowType;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::ast::{VisitMut, VisitorMut};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use engine::{
    Column, DataType, ExpressionCompiler, ExpressionError, IndexDefinition, IndexExpression, IndexPart, RowExpression,
    Schema, Table,
};

use crate::diagnose::diagnose;
use crate::dialect::SqlDialect;
use crate::error::{Result, SqlError};
use crate::headings::heading;
use crate::names::fold;
use crate::parse::Source;
use crate::pg_catalog::quoted;
pub(crate) use compile::{Kind, compile};
pub(crate) use write::{Style, in_list, is_call, written};

/// Works out the expressions of indexes: what the engine is supplied with.
#[derive(Debug)]
pub(crate) struct Expressions;

impl ExpressionCompiler for Expressions {
    fn compile(
        &self,
        expression: &IndexExpression,
        columns: &[Column],
    ) -> Result<Arc<dyn RowExpression>, ExpressionError> {
        let told = |error: SqlError| ExpressionError::new(error.sqlstate, format!("{}: {error}", expression.text));
        let parsed = parsed(&expression.text).map_err(told)?;
        let mut compiled = compile(&parsed, columns, Kind::Expression, &Source::new("")).map_err(told)?;
        // The type that it had when the index was made.
        compiled.data_type = expression.data_type;
        Ok(Arc::new(compiled))
    }
}

/// The form in which the catalog keeps an expression, or the predicate, of a new index.
///
/// # Errors
/// PostgreSQL's, where an index can't be of it.
pub(crate) fn define(expr: &ast::Expr, table: &Table, kind: Kind, source: &Source) -> Result<IndexExpression> {
    let (mut expr, columns) = (expr.clone(), table.schema().columns());
    if let ControlFlow::Break(error) = expr.visit(&mut WithoutTable { table: table.name(), source }) {
        return Err(*error);
    }
    let compiled = compile(&expr, columns, kind, source)?;
    let text = in_list(&expr, columns, Style::Pretty);
    // It is read again whenever the database is opened, and has to mean the same.
    let again = parsed(&text).and_then(|expr| compile(&expr, columns, kind, &Source::new(&text)));
    let text = match again {
        Ok(again) if again.logical == compiled.logical => text,
        _ => format!("({expr})"),
    };
    Ok(IndexExpression { text, columns: compiled.columns, data_type: compiled.data_type })
}

/// Takes the name of the table away that stands before its columns, and refuses that of any other. Names of columns are spelled as
/// the catalog has them.
struct WithoutTable<'a> {
    table: &'a str,
    source: &'a Source<'a>,
}

impl VisitorMut for WithoutTable<'_> {
    type Break = Box<SqlError>;

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<Self::Break> {
        if let ast::Expr::CompoundIdentifier(parts) = expr
            && let [table, column] = &parts[..]
        {
            if fold(table) != self.table {
                let message = format!("missing FROM-clause entry for table \"{}\"", fold(table));
                let error = SqlError::new("42P01", message).at(self.source.start(table.span));
                return ControlFlow::Break(Box::new(error));
            }
            *expr = ast::Expr::Identifier(column.clone());
        }
        if let ast::Expr::Identifier(ident) = expr {
            let (name, span) = (fold(ident), ident.span);
            let quote_style = Some('"').filter(|_| quoted(&name) != name);
            *ident = ast::Ident { value: name, quote_style, span };
        }
        ControlFlow::Continue(())
    }
}

/// The names of the columns of an index as PostgreSQL finds them: that of a column, or of a function, or `expr`.
pub(crate) fn part_names(definition: &IndexDefinition, schema: &Schema) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(definition.parts.len());
    for part in &definition.parts {
        let name = match part {
            IndexPart::Column(column) => schema.columns()[*column].name.clone(),
            IndexPart::Expression(expression) => {
                parsed(&expression.text).ok().and_then(|expr| heading(&expr)).unwrap_or_else(|| "expr".to_owned())
            }
        };
        let numbered = (1..).map(|number| format!("{name}{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
        names.push(free.unwrap_or(name));
    }
    names
}

/// The syntax tree of an expression that the catalog has as text.
pub(crate) fn parsed(text: &str) -> Result<ast::Expr> {
    let (dialect, source) = (SqlDialect::default(), Source::new(text));
    let parser = Parser::new(&dialect).try_with_sql(text);
    let mut parser = parser.map_err(|error| source.parser_error(error))?;
    let expr = parser.parse_expr().map_err(|error| source.parser_error(error))?;
    match parser.next_token().token {
        Token::EOF => Ok(expr),
        other => Err(SqlError::syntax(format!("syntax error at or near \"{other}\""))),
    }
}

/// An expression that can be worked out for rows.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// As the planner has it where a query says the same; see [`comparable`].
    logical: Expr,
    physical: Arc<dyn PhysicalExpr>,
    pub(crate) data_type: DataType,
    /// The columns that it names, by their positions.
    pub(crate) columns: Vec<usize>,
}

impl Compiled {
    /// The one behind what the engine holds.
    pub(crate) fn of(expression: &dyn RowExpression) -> Option<&Compiled> {
        (expression as &dyn std::any::Any).downcast_ref()
    }

    /// The expression that a query's expression is compared with.
    pub(crate) fn logical(&self) -> &Expr {
        &self.logical
    }
}

impl RowExpression for Compiled {
    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef, ExpressionError> {
        let form: ArrowType = self.data_type.to_arrow();
        let value = self.physical.evaluate(rows).and_then(|value| value.into_array(rows.num_rows()));
        let values = value.and_then(|values| match *values.data_type() == form {
            true => Ok(values),
            false => Ok(cast(&values, &form)?),
        });
        values.map_err(|error| {
            let error = diagnose(&error, &Source::new(""));
            ExpressionError::new(error.sqlstate, error.message)
        })
    }
}

/// An expression of a plan in the form in which two that mean the same are equal: without the names of tables.
pub(crate) fn comparable(expr: Expr) -> Expr {
    unnormalize_col(expr.unalias_nested().data)
}
