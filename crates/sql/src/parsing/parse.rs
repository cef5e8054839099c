//! From a statement's text to its syntax tree, with errors that point into the text.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, LimitClause, ObjectName, ObjectNamePart, Query, Select, SetExpr, Statement, Value as SqlValue, VisitMut,
    VisitorMut,
};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::interrupt;
use crate::names::tables::CATALOG;
use crate::parsing::control::parse_control;
use crate::parsing::do_block::parse_do;
use crate::parsing::join_alias;
use crate::parsing::lock_clauses::{self, Taken};
use crate::parsing::materialized_statement::MaterializedStatement;
use crate::parsing::schema_elements;
use crate::parsing::search_cycle;
use crate::parsing::select_into;
use crate::parsing::ties;
use crate::parsing::view_statement::ViewStatement;
use crate::parsing::{OwnStatement, ParsedStatement};
use crate::syntax::alter_tokens;
use crate::syntax::chains;
use crate::syntax::composed;
use crate::syntax::conflict_tokens;
use crate::syntax::constraint_tokens;
use crate::syntax::create_as_tokens;
use crate::syntax::cursor_tokens;
use crate::syntax::dialect::SqlDialect;
use crate::syntax::exclude_tokens;
use crate::syntax::explain_tokens;
use crate::syntax::fetch_tokens;
use crate::syntax::identifiers::fold;
use crate::syntax::identity_tokens;
use crate::syntax::like_tokens;
use crate::syntax::limits;
use crate::syntax::reserved;
use crate::syntax::row_tokens;
use crate::syntax::source::Source;
use crate::syntax::stack;
use crate::syntax::subscript_tokens;
use crate::syntax::tablespace_tokens;
use crate::syntax::text_tokens;
use crate::syntax::tokens;
use crate::syntax::type_tokens;
use crate::syntax::value_tokens;
use crate::syntax::walk::WalkMut;

impl Source<'_> {
    /// PostgreSQL's syntax error for what stands at a place.
    fn syntax_error(&self, position: Option<usize>, why: String) -> SqlError {
        let rest = position.map_or("", |at| &self.text[at..]);
        let message = match first_token(rest) {
            Some(token) => format!("syntax error at or near \"{token}\""),
            None => "syntax error at end of input".to_owned(),
        };
        SqlError::syntax(message).at(position.or(Some(self.text.len()))).detail(reserved::without_marks(&why))
    }
}

/// The text of the token at the start of `rest`.
fn first_token(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    let first = rest.chars().next()?;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let end = if is_word(first) {
        rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())
    } else if first == '\'' || first == '"' {
        rest[1..].find(first).map_or(rest.len(), |at| at + 2)
    } else {
        first.len_utf8()
    };
    Some(&rest[..end])
}

/// Parses exactly one statement.
pub(crate) fn parse(text: &str) -> Result<ParsedStatement> {
    parse_source(&Source::new(text))
}

/// Whether a tree tells where its parts stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Places {
    /// In the text that was parsed.
    Known,
    /// Nowhere: it becomes part of the tree of another text.
    Unknown,
}

/// Parses the query that a view is.
pub(crate) fn parse_query(text: &str, places: Places) -> Result<Box<Query>> {
    let source = Source::new(text);
    let mut tokens = source.tokens()?;
    if places == Places::Unknown {
        tokens.iter_mut().for_each(|token| token.span = Span::empty());
    }
    if let ParsedStatement::Statement(statement) = stack::with_room(text.len(), || parse_tokens(tokens, &source))?
        && let Statement::Query(query) = *statement
    {
        return Ok(query);
    }
    Err(SqlError::new("XX000", format!("the definition of a view is no query: {text}")))
}

fn parse_source(source: &Source) -> Result<ParsedStatement> {
    if let Some(at) = source.text.find('\0') {
        return Err(SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00").at(Some(at)));
    }
    let tokens = source.tokens()?;
    limits::guard_depth(&tokens)?;
    limits::guard_readings(&tokens)?;
    stack::with_room(source.text.len(), || parse_tokens(tokens, source))
}

fn parse_tokens(mut tokens: Vec<TokenWithSpan>, source: &Source) -> Result<ParsedStatement> {
    if let Some(steps) = schema_elements::steps(&tokens, source)? {
        return Ok(ParsedStatement::Own(OwnStatement::Do(steps)));
    }
    let locks = lock_clauses::take(&mut tokens, source)?;
    text_tokens::spell_out(&mut tokens, source)?;
    tablespace_tokens::spell_out(&mut tokens, source)?;
    alter_tokens::spell_out(&mut tokens);
    value_tokens::spell_out(&mut tokens);
    cursor_tokens::spell_out(&mut tokens);
    create_as_tokens::spell_out(&mut tokens);
    identity_tokens::spell_out(&mut tokens);
    subscript_tokens::spell_out(&mut tokens);
    fetch_tokens::spell_out(&mut tokens);
    explain_tokens::spell_out(&mut tokens);
    row_tokens::spell_out(&mut tokens);
    join_alias::mark(&mut tokens);
    search_cycle::mark(&mut tokens);
    like_tokens::spell_out(&mut tokens);
    exclude_tokens::spell_out(&mut tokens);
    constraint_tokens::spell_out(&mut tokens);
    conflict_tokens::spell_out(&mut tokens);
    type_tokens::spell_out(&mut tokens);
    tokens::spell_out(&mut tokens);
    let dialect = SqlDialect::of(&tokens);
    let mut parser = limits::parser(&dialect, tokens);
    let parsed = whole_statement(&mut parser, &dialect, source);
    interrupt::check()?;
    if dialect.is_exhausted() {
        return Err(limits::too_many_readings());
    }
    let mut parsed = with_locks(parsed?, locks)?;
    interrupt::walking(|| {
        match &mut parsed {
            ParsedStatement::Statement(statement) | ParsedStatement::Composed(statement, _) => {
                plain(statement.as_mut())?;
                reserved::refuse(statement, source)?;
            }
            ParsedStatement::Own(
                OwnStatement::View(ViewStatement::Create(new))
                | OwnStatement::Materialized(MaterializedStatement::Create { new, .. }),
            ) => plain(new.query.as_mut())?,
            ParsedStatement::Locking(query, _) => {
                plain(query.as_mut())?;
                reserved::refuse(query, source)?;
            }
            other => {
                if let Some(query) = other.query_mut() {
                    plain(query)?;
                }
            }
        }
        Ok(())
    })?;
    Ok(parsed)
}

/// Brings a statement's tree into the form in which it is known elsewhere.
fn plain(statement: &mut impl VisitMut) -> Result<()> {
    search_cycle::spell_out(statement)?;
    let _ = statement.walk_mut(&mut Fetches);
    chains::balance(statement);
    Ok(())
}

/// Makes `FETCH FIRST 2 ROWS ONLY` a `LIMIT 2`, writes the names of joins out, and leaves out the name of the database before those of
/// relations.
struct Fetches;

impl VisitorMut for Fetches {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        if let [ObjectNamePart::Identifier(database), ObjectNamePart::Identifier(schema), _] = &mut relation.0[..]
            && fold(database) == CATALOG
        {
            schema.span = database.span;
            relation.0.remove(0);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && parts.len() == 4
            && fold(&parts[0]) == CATALOG
        {
            parts[1].span = parts[0].span;
            parts.remove(0);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        row_tokens::all_fields(select);
        join_alias::spell_out(select, None);
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        ties::spell_out(query);
        if let SetExpr::Select(select) = query.body.as_mut() {
            join_alias::spell_out(select, query.order_by.as_mut());
        }
        let Some(fetch) = query.fetch.take_if(|fetch| !fetch.with_ties && !fetch.percent) else {
            return ControlFlow::Continue(());
        };
        let count = fetch.quantity.unwrap_or_else(|| Expr::value(SqlValue::Number("1".to_owned(), false)));
        let none = LimitClause::LimitOffset { limit: None, offset: None, limit_by: Vec::new() };
        if let LimitClause::LimitOffset { limit, .. } = query.limit_clause.get_or_insert(none) {
            *limit = Some(count);
        }
        ControlFlow::Continue(())
    }
}

fn whole_statement<'a>(parser: &mut Parser<'a>, dialect: &'a SqlDialect, source: &Source) -> Result<ParsedStatement> {
    while parser.consume_token(&Token::SemiColon) {}
    let parsed = match parser.peek_token().token {
        Token::EOF => ParsedStatement::Empty,
        _ => other_statement(parser, dialect, source)?,
    };
    while parser.consume_token(&Token::SemiColon) {}
    let next = parser.next_token();
    match next.token {
        Token::EOF => Ok(parsed),
        found => Err(source.syntax_error(source.start(next.span), format!("Expected the end, found {found}."))),
    }
}

/// A statement that is read from its tokens here, or else by the library.
fn other_statement<'a>(parser: &mut Parser<'a>, dialect: &'a SqlDialect, source: &Source) -> Result<ParsedStatement> {
    if let Some(block) = parse_do(parser, source)? {
        return Ok(ParsedStatement::Own(OwnStatement::Do(block)));
    }
    if let Some(control) = parse_control(parser, source)? {
        return Ok(ParsedStatement::Control(control));
    }
    if let Some(own) = OwnStatement::parse(parser, source)? {
        return Ok(ParsedStatement::Own(own));
    }
    let start = parser.index();
    let mut tokens = std::mem::replace(parser, Parser::new(dialect)).into_tokens().split_off(start);
    reserved::mark(&mut tokens);
    *parser = limits::parser(dialect, tokens);
    let statement = parser.parse_statement().map_err(|error| source.parser_error(error))?;
    Ok(ParsedStatement::Statement(Box::new(select_into::spelled_out(statement)?)))
}

/// Only queries can lock rows, on their own or within statements that change rows.
fn with_locks(parsed: ParsedStatement, Taken { mut outer, mut inner }: Taken) -> Result<ParsedStatement> {
    let first = outer.first().or(inner.first());
    let (statement, first) = match (parsed, first) {
        (ParsedStatement::Statement(statement), Some(first)) => (statement, first),
        (ParsedStatement::Statement(statement), None) => return Ok(ParsedStatement::of(statement, inner)),
        (parsed, None) => return Ok(parsed),
        (ParsedStatement::Own(OwnStatement::Cursor(mut cursor)), Some(_)) => {
            cursor.lock(outer, &inner)?;
            return Ok(ParsedStatement::Own(OwnStatement::Cursor(cursor)));
        }
        (
            ParsedStatement::Own(OwnStatement::View(_) | OwnStatement::Materialized(_) | OwnStatement::Copy(_)),
            Some(first),
        ) => {
            return Err(SqlError::unsupported(format!("{} in this statement", first.strength)).at(first.position));
        }
        (_, Some(first)) => {
            return Err(SqlError::syntax("syntax error at or near \"for\"").at(first.position));
        }
    };
    let numbers = inner.len()..inner.len() + outer.len();
    match *statement {
        Statement::Query(query) if inner.is_empty() && !composed::writes(&query) => {
            Ok(ParsedStatement::Locking(query, outer))
        }
        // The plan is that of the query; the locks are not shown.
        Statement::Explain { .. } if inner.is_empty() => Ok(ParsedStatement::Statement(statement)),
        Statement::Query(mut query) if !composed::changes_rows(&query.body) => {
            lock_clauses::mark(&mut query, numbers);
            inner.append(&mut outer);
            Ok(ParsedStatement::Composed(Box::new(Statement::Query(query)), inner))
        }
        Statement::Insert(mut insert) if insert.source.is_some() => {
            insert.source.iter_mut().for_each(|query| lock_clauses::mark(query, numbers.clone()));
            inner.append(&mut outer);
            Ok(ParsedStatement::Composed(Box::new(Statement::Insert(insert)), inner))
        }
        Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Merge(_)
            if outer.is_empty() =>
        {
            Ok(ParsedStatement::Composed(statement, inner))
        }
        _ => Err(SqlError::unsupported(format!("{} in this statement", first.strength)).at(first.position)),
    }
}

impl Source<'_> {
    /// A parser's error as PostgreSQL's syntax error.
    pub(crate) fn parser_error(&self, error: ParserError) -> SqlError {
        let text = match error {
            ParserError::RecursionLimitExceeded => return limits::too_deep("It nests too deeply.".to_owned()),
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        };
        let (why, position) = self.take_location(&text);
        self.syntax_error(position, format!("{}.", why.trim_end_matches('.')))
    }

    /// Cuts ` at Line: 1, Column: 8` off a message and finds that place.
    fn take_location<'t>(&self, text: &'t str) -> (&'t str, Option<usize>) {
        let Some((why, place)) = text.rsplit_once(" at Line: ") else { return (text, None) };
        let Some((line, column)) = place.split_once(", Column: ") else { return (text, None) };
        match (line.parse(), column.trim().parse()) {
            (Ok(line), Ok(column)) => (why, self.offset(Location { line, column })),
            _ => (text, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> SqlError {
        match parse(text) {
            Err(error) => error,
            Ok(_) => panic!("{text} was accepted"),
        }
    }

    #[test]
    fn syntax_errors_point_at_the_token() {
        let wrong = error("SELECT 1 +\n  ) FROM t");
        assert_eq!(wrong.message, "syntax error at or near \")\"");
        assert_eq!((wrong.sqlstate, wrong.position), ("42601", Some(13)));
        assert_eq!(error("SELEC 1").position, Some(0));
        assert_eq!(error("SELECT (1").message, "syntax error at end of input");
        assert_eq!(error("SELECT 1; SELECT 2").position, Some(10));
        assert!(error("SELECT 'abc").message.starts_with("unterminated"));
    }

    #[test]
    fn a_statement_without_errors_looks_up_no_place() {
        for text in ["VALUES (1, 'a'), (2, 'b'), (3, 'c')", "SELECT a, b + $1 FROM t WHERE a IN (1, 2, 3)"] {
            let source = Source::new(text);
            assert!(parse_source(&source).is_ok());
            assert!(!source.is_indexed(), "{text}");
        }
    }
}
