//! `NATURAL JOIN` in the text of a view's query, written as a join of the columns that both sides have as the view is made: another
//! column that gets the same name later joins nothing.
//!
//! ```text
//! SELECT ... FROM t NATURAL LEFT JOIN u AS v      ->  SELECT ... FROM t LEFT JOIN u AS v USING (id)
//! SELECT ... FROM t NATURAL JOIN (u JOIN v ON x)  ->  SELECT ... FROM t JOIN (u JOIN v ON x) ON TRUE      without such columns
//! ```
use std::ops::Range;

use datafusion::sql::sqlparser::ast::{Select, Spanned, TableFactor, TableWithJoins};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::semantics::naming::columns::{Scope, natural_names};
use crate::syntax::source::Source;

/// What takes the place of parts of the text: the word goes, and the columns come behind what is joined. A join of which the columns
/// are not known stays.
pub(super) fn edits(
    select: &Select,
    scope: &mut Scope<'_>,
    source: &Source,
    name: impl Fn(&str) -> String,
) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    select.from.iter().for_each(|table| joins(table, scope, &mut found));
    if found.is_empty() {
        return Vec::new();
    }
    let mut tokens = source.tokens().unwrap_or_default();
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let edits = found.into_iter().filter_map(|(relation, names)| {
        let natural = word_before(&tokens, relation)?;
        let (start, after) = (source.start(tokens[natural].span)?, source.start(tokens.get(natural + 1)?.span)?);
        let end = end_of(relation, &tokens[natural..], source)?;
        let names: Vec<String> = names.iter().map(|column| name(column)).collect();
        let condition = if names.is_empty() { " ON TRUE".to_owned() } else { format!(" USING ({})", names.join(", ")) };
        Some([(start..after, String::new()), (end..end, condition)])
    });
    edits.flatten().collect()
}

/// What is joined naturally, with the columns of both sides.
fn joins<'q>(table: &'q TableWithJoins, scope: &mut Scope<'_>, found: &mut Vec<(&'q TableFactor, Vec<String>)>) {
    let factors = std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation));
    for factor in factors {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            joins(table_with_joins, scope, found);
        }
    }
    for (at, join) in table.joins.iter().enumerate() {
        let left = TableWithJoins { relation: table.relation.clone(), joins: table.joins[..at].to_vec() };
        let names = natural_names(&join.join_operator, scope, &left, &join.relation);
        found.extend(names.map(|names| (&join.relation, names)));
    }
}

/// The token `NATURAL` of what is joined.
fn word_before(tokens: &[TokenWithSpan], relation: &TableFactor) -> Option<usize> {
    let start = relation.span().start;
    let is_natural = |token: &Token| matches!(token, Token::Word(word) if word.keyword == Keyword::NATURAL);
    tokens.iter().rposition(|token| token.span.end <= start && is_natural(&token.token))
}

/// Where the text of what is joined ends.
fn end_of(relation: &TableFactor, tokens: &[TokenWithSpan], source: &Source) -> Option<usize> {
    let alias = match relation {
        TableFactor::Table { alias, args: None, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => alias.as_ref(),
        _ => return None,
    };
    let end = match (alias, relation) {
        (Some(alias), _) if alias.columns.is_empty() => alias.name.span.end,
        (Some(alias), _) => closing(tokens, alias.name.span.end)?,
        (None, TableFactor::Table { name, .. }) => name.span().end,
        (None, _) => closing(tokens, tokens.first()?.span.end)?,
    };
    source.offset(end)
}

/// The end of the parentheses that open next behind a place.
fn closing(tokens: &[TokenWithSpan], from: Location) -> Option<Location> {
    let mut depth = 0;
    for token in tokens.iter().filter(|token| token.span.start >= from) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => return Some(token.span.end),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}
