//! Expressions of indexes as the catalog has them: as text.
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use engine::{IndexDefinition, IndexPart, Schema};

use crate::access::folded_parts;
use crate::error::{Result, SqlError};
use crate::names::headings::heading;
use crate::syntax::dialect::SqlDialect;
use crate::syntax::source::Source;

/// The names of the columns of an index as PostgreSQL finds them, those of its keys first: that of a column, or of a function, or
/// `expr`.
pub(crate) fn column_names(definition: &IndexDefinition, schema: &Schema) -> Vec<String> {
    let of_column = |column: &usize| schema.columns()[*column].name.clone();
    let of_part = |part: &IndexPart| match part {
        IndexPart::Column(column) => of_column(column),
        part if let Some(column) = folded_parts::column_of(part) => of_column(&column),
        IndexPart::Expression(expression) => {
            parsed(&expression.text).ok().and_then(|expr| heading(&expr)).unwrap_or_else(|| "expr".to_owned())
        }
    };
    let mut names: Vec<String> = Vec::with_capacity(definition.parts.len() + definition.included.len());
    for name in definition.parts.iter().map(of_part).chain(definition.included.iter().map(of_column)) {
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
