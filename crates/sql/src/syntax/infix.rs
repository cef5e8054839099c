//! Comparisons that the parser's library does not read: `BETWEEN SYMMETRIC`, `LIKE ANY` and its kin, `ANY` of a set
//! operation or of `VALUES`, and `IN` of a list that begins with a query; and `IS DISTINCT FROM`, whose right operand it takes to
//! reach over `AND` and `OR`, `IS JSON`, `ISNULL`, and `COLLATE` behind any operand.
//!
//! `x BETWEEN SYMMETRIC a AND b` is `x BETWEEN a AND b OR x BETWEEN b AND a`, as in PostgreSQL. As its operands are there twice
//! then, it costs as many steps as they have parts.
use std::ops::ControlFlow;

use crate::syntax::operators;
use crate::syntax::walk::walk_expressions;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, ObjectNamePart, Query, UnaryOperator, Value,
};
use datafusion::sql::sqlparser::dialect::{Dialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// Reads what follows an operand, if it is one of these; and how many steps it is worth.
pub(crate) fn parse(
    dialect: &impl Dialect,
    parser: &mut Parser,
    left: &Expr,
) -> Option<Result<(Expr, u64), ParserError>> {
    let negated = keyword(parser, 0) == Keyword::NOT;
    let at = usize::from(negated);
    let (first, second) = (keyword(parser, at), keyword(parser, at + 1));
    match (first, second) {
        (Keyword::BETWEEN, Keyword::SYMMETRIC | Keyword::ASYMMETRIC) => {
            skip(parser, at + 2);
            let precedence = dialect.prec_value(Precedence::Between);
            Some(between(parser, left, precedence, negated, second == Keyword::SYMMETRIC))
        }
        (Keyword::LIKE | Keyword::ILIKE, Keyword::ANY | Keyword::SOME | Keyword::ALL) => {
            if parser.peek_nth_token_ref(at + 2).token != Token::LParen {
                return None;
            }
            skip(parser, at + 3);
            let op = match (first, negated) {
                (Keyword::LIKE, false) => BinaryOperator::PGLikeMatch,
                (Keyword::LIKE, true) => BinaryOperator::PGNotLikeMatch,
                (_, false) => BinaryOperator::PGILikeMatch,
                (_, true) => BinaryOperator::PGNotILikeMatch,
            };
            Some(quantified(parser, left, op, second == Keyword::ALL).map(|expr| (expr, 0)))
        }
        (Keyword::IN, _) => {
            let is_open = |nth: usize| parser.peek_nth_token_ref(at + nth).token == Token::LParen;
            if !is_open(1) || !is_open(2) {
                return None;
            }
            skip(parser, at + 2);
            Some(membership(parser, left, negated).map(|expr| (expr, 0)))
        }
        (Keyword::COLLATE, _) if !negated => {
            skip(parser, 1);
            let collated = |collation| (Expr::Collate { expr: Box::new(left.clone()), collation }, 0);
            Some(parser.parse_object_name(false).map(collated))
        }
        (Keyword::IS, _) if is_json(parser) => Some(Ok((json(parser, left), 0))),
        (Keyword::IS, _) => distinct(dialect, parser, left).transpose().map(|read| read.map(|expr| (expr, 0))),
        _ if operators::is_isnull(&parser.peek_token_ref().token) => {
            skip(parser, 1);
            Some(Ok((Expr::IsNull(Box::new(left.clone())), 0)))
        }
        _ => {
            let op = comparison(&parser.peek_nth_token_ref(0).token)?;
            let is_all = match keyword(parser, 1) {
                Keyword::ANY | Keyword::SOME => false,
                Keyword::ALL => true,
                _ => return None,
            };
            let is_open = |at: usize| parser.peek_nth_token_ref(at).token == Token::LParen;
            if !is_open(2) || !(is_open(3) || keyword(parser, 3) == Keyword::VALUES) {
                return None;
            }
            skip(parser, 3);
            Some(quantified(parser, left, op, is_all).map(|expr| (expr, 0)))
        }
    }
}

/// `left IS [NOT] DISTINCT FROM right`, if that is what follows.
fn distinct(dialect: &impl Dialect, parser: &mut Parser, left: &Expr) -> Result<Option<Expr>, ParserError> {
    let negated = keyword(parser, 1) == Keyword::NOT;
    let at = 1 + usize::from(negated);
    if keyword(parser, at) != Keyword::DISTINCT || keyword(parser, at + 1) != Keyword::FROM {
        return Ok(None);
    }
    skip(parser, at + 2);
    let right = Box::new(parser.parse_subexpr(dialect.prec_value(Precedence::Is))?);
    let left = Box::new(left.clone());
    Ok(Some(if negated { Expr::IsNotDistinctFrom(left, right) } else { Expr::IsDistinctFrom(left, right) }))
}

/// The function that tells whether a text is JSON, of the value, a kind and the word `unique` or another.
pub(crate) const IS_JSON: &str = "is json";

/// Whether `IS [NOT] JSON` follows.
fn is_json(parser: &Parser) -> bool {
    keyword(parser, 1 + usize::from(keyword(parser, 1) == Keyword::NOT)) == Keyword::JSON
}

/// `left IS [NOT] JSON [VALUE | SCALAR | ARRAY | OBJECT] [{ WITH | WITHOUT } UNIQUE [KEYS]]`.
fn json(parser: &mut Parser, left: &Expr) -> Expr {
    let negated = keyword(parser, 1) == Keyword::NOT;
    skip(parser, 2 + usize::from(negated));
    let word = |parser: &Parser, at: usize| match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
        _ => String::new(),
    };
    let mut kind = word(parser, 0);
    match ["value", "scalar", "array", "object"].contains(&kind.as_str()) {
        true => skip(parser, 1),
        false => "value".clone_into(&mut kind),
    }
    let is_unique = word(parser, 0) == "with";
    let says = (is_unique || word(parser, 0) == "without") && word(parser, 1) == "unique";
    if says {
        skip(parser, 2 + usize::from(word(parser, 2) == "keys"));
    }
    let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
    let args = [left.clone(), text(&kind), text(if says && is_unique { "unique" } else { "any" })];
    let plain = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    let list = FunctionArgumentList { duplicate_treatment: None, args: args.map(plain).into(), clauses: Vec::new() };
    let call = Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote('"', IS_JSON))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    });
    match negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(call) },
        false => call,
    }
}

/// A comparison that may stand before `ANY`. What follows in two parentheses may be a set operation, and the library takes
/// `VALUES` there for a function.
fn comparison(token: &Token) -> Option<BinaryOperator> {
    Some(match token {
        Token::Eq => BinaryOperator::Eq,
        Token::Neq => BinaryOperator::NotEq,
        Token::Lt => BinaryOperator::Lt,
        Token::LtEq => BinaryOperator::LtEq,
        Token::Gt => BinaryOperator::Gt,
        Token::GtEq => BinaryOperator::GtEq,
        _ => return None,
    })
}

fn keyword(parser: &Parser, at: usize) -> Keyword {
    match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

fn skip(parser: &mut Parser, tokens: usize) {
    (0..tokens).for_each(|_| parser.advance_token());
}

fn between(
    parser: &mut Parser,
    left: &Expr,
    precedence: u8,
    negated: bool,
    is_symmetric: bool,
) -> Result<(Expr, u64), ParserError> {
    let low = parser.parse_subexpr(precedence)?;
    parser.expect_keyword_is(Keyword::AND)?;
    let high = parser.parse_subexpr(precedence)?;
    let one = |negated: bool, low: &Expr, high: &Expr| Expr::Between {
        expr: Box::new(left.clone()),
        negated,
        low: Box::new(low.clone()),
        high: Box::new(high.clone()),
    };
    if !is_symmetric {
        return Ok((one(negated, &low, &high), 0));
    }
    let steps = parts(left) + parts(&low) + parts(&high);
    let nested = |expr: Expr| Box::new(Expr::Nested(Box::new(expr)));
    let (left, op, right) = (nested(one(false, &low, &high)), BinaryOperator::Or, nested(one(false, &high, &low)));
    let either = Expr::BinaryOp { left, op, right };
    let expr = match negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: nested(either) },
        false => either,
    };
    Ok((Expr::Nested(Box::new(expr)), steps))
}

/// How many expressions there are in one.
fn parts(expr: &Expr) -> u64 {
    let mut count = 0;
    let _ = walk_expressions(expr, |_| {
        count += 1;
        ControlFlow::<()>::Continue(())
    });
    count
}

/// What follows the parenthesis behind `IN`, where another one follows: a query, or a list that begins with one.
fn membership(parser: &mut Parser, left: &Expr, negated: bool) -> Result<Expr, ParserError> {
    let expr = Box::new(left.clone());
    if let Some(subquery) = parser.maybe_parse(query)? {
        return Ok(Expr::InSubquery { expr, subquery, negated });
    }
    let list = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::InList { expr, list, negated })
}

/// A query and the parenthesis behind it.
fn query(parser: &mut Parser) -> Result<Box<Query>, ParserError> {
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(query)
}

/// What follows the parenthesis behind `ANY` or `ALL`.
fn quantified(parser: &mut Parser, left: &Expr, op: BinaryOperator, is_all: bool) -> Result<Expr, ParserError> {
    let is_query = matches!(keyword(parser, 0), Keyword::SELECT | Keyword::WITH | Keyword::VALUES)
        || parser.peek_nth_token_ref(0).token == Token::LParen;
    let query = if is_query { parser.maybe_parse(query)? } else { None };
    let right = match query {
        Some(query) => Expr::Subquery(query),
        None => {
            let right = parser.parse_expr()?;
            parser.expect_token(&Token::RParen)?;
            right
        }
    };
    let (left, right) = (Box::new(left.clone()), Box::new(right));
    Ok(match is_all {
        true => Expr::AllOp { left, compare_op: op, right },
        false => Expr::AnyOp { left, compare_op: op, right, is_some: false },
    })
}
