//! Queries in parentheses that begin with one more: `((SELECT 1) UNION (SELECT 2)) IS NOT NULL`. The parser's library takes what is within
//! the outer ones for an expression.
use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::syntax::tokens::keyword;

/// Reads such a query, if one comes next.
pub(crate) fn expression(parser: &mut Parser) -> Result<Option<Expr>, ParserError> {
    if !comes_next(parser) {
        return Ok(None);
    }
    parser.expect_token(&Token::LParen)?;
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Some(Expr::Subquery(query)))
}

fn comes_next(parser: &Parser) -> bool {
    let token = |at: usize| -> TokenWithSpan { parser.peek_nth_token(at) };
    if token(0).token != Token::LParen || token(1).token != Token::LParen {
        return false;
    }
    let Some(first) = (2..).find(|at| token(*at).token != Token::LParen) else { return false };
    if !matches!(keyword(&token(first)), Keyword::SELECT | Keyword::WITH | Keyword::VALUES) {
        return false;
    }
    // What follows the query in the inner parentheses.
    let mut depth = 0_usize;
    for at in 1.. {
        match token(at).token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => {
                let behind = keyword(&token(at + 1));
                return matches!(behind, Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT);
            }
            Token::RParen => depth -= 1,
            Token::EOF => return false,
            _ => {}
        }
    }
    false
}
