//! `CREATE FUNCTION`, `DROP FUNCTION`, `ALTER FUNCTION` and `COMMENT ON FUNCTION`, read from their tokens.
//!
//! ```text
//! CREATE [OR REPLACE] FUNCTION name ([[mode] [name] type [{DEFAULT | =} expr], ...])
//!     [RETURNS [SETOF] type | RETURNS TABLE (name type, ...)]
//!     { LANGUAGE lang | IMMUTABLE | STABLE | VOLATILE | STRICT | RETURNS NULL ON NULL INPUT | CALLED ON NULL INPUT
//!       | [NOT] LEAKPROOF | [EXTERNAL] SECURITY {INVOKER | DEFINER} | PARALLEL word | COST n | ROWS n | AS 'body' } ...
//!     [RETURN expr | BEGIN ATOMIC statement; ... END]
//! DROP {FUNCTION | ROUTINE} [IF EXISTS] name [(types)], ... [CASCADE | RESTRICT]
//! ALTER {FUNCTION | ROUTINE} name [(types)] {OWNER TO role | RENAME TO name | SET SCHEMA schema}
//! COMMENT ON {FUNCTION | ROUTINE} name [(types)] IS {'text' | NULL}
//! ```
use datafusion::sql::sqlparser::ast::{DataType as SqlType, Expr, Ident, ObjectName};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use engine::{FunctionBody, FunctionVolatility};

use super::words::{Read, is_word, take_words};
use crate::error::{Result, SqlError};
use crate::parsing::words;
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;

/// What a statement does with functions.
#[derive(Clone)]
pub(crate) enum FunctionStatement {
    Create(Box<NewFunction>),
    Drop { functions: Vec<NamedFunction>, if_exists: bool, cascade: bool, tag: &'static str },
    Owner(NamedFunction),
    Rename(NamedFunction, Ident),
    SetSchema(NamedFunction, Ident),
    Comment(NamedFunction, Option<String>),
}

/// A function by its name and, where they are said, the types of its arguments.
#[derive(Clone)]
pub(crate) struct NamedFunction {
    pub(crate) name: ObjectName,
    pub(crate) types: Option<Vec<SqlType>>,
}

/// Which way an argument goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    In,
    Out,
    Both,
}

/// An argument of a new function.
#[derive(Clone)]
pub(crate) struct NewArgument {
    pub(crate) mode: Mode,
    pub(crate) name: Option<Ident>,
    pub(crate) data_type: SqlType,
    /// What it is where a call leaves it out, and its text.
    pub(crate) default: Option<(Expr, String)>,
}

/// What a new function gives.
#[derive(Clone)]
pub(crate) enum Returns {
    One(SqlType),
    Set(SqlType),
    Table(Vec<(Ident, SqlType)>),
}

/// A function that is asked for.
#[derive(Clone)]
pub(crate) struct NewFunction {
    pub(crate) name: ObjectName,
    pub(crate) or_replace: bool,
    pub(crate) arguments: Vec<NewArgument>,
    pub(crate) returns: Option<Returns>,
    pub(crate) language: Option<Ident>,
    pub(crate) body: Option<(FunctionBody, String)>,
    /// Whether the body is a file with a symbol in it.
    pub(crate) has_symbol: bool,
    pub(crate) volatility: Option<FunctionVolatility>,
    pub(crate) is_strict: bool,
    /// What else is said of it, as it is said again.
    pub(crate) options: Vec<String>,
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_function(parser: &mut Parser, source: &Source) -> Result<Option<FunctionStatement>> {
    let wrong = |error: ParserError| source.parser_error(error);
    let is_of_functions =
        |parser: &Parser, at: usize| is_word(parser, at, "function") || is_word(parser, at, "routine");
    if is_word(parser, 0, "create") {
        let at = if is_word(parser, 1, "or") && is_word(parser, 2, "replace") { 3 } else { 1 };
        if is_word(parser, at, "procedure") {
            let error = SqlError::unsupported("CREATE PROCEDURE").at(source.find_word("procedure"));
            return Err(error.hint("Functions in SQL are made by CREATE FUNCTION."));
        }
        if !is_word(parser, at, "function") {
            return Ok(None);
        }
        (0..=at).for_each(|_| parser.advance_token());
        return create(parser, at == 3, source).map(|new| Some(FunctionStatement::Create(Box::new(new))));
    }
    if is_word(parser, 0, "drop") && is_of_functions(parser, 1) {
        let tag = if is_word(parser, 1, "function") { "DROP FUNCTION" } else { "DROP ROUTINE" };
        (0..2).for_each(|_| parser.advance_token());
        return drop(parser, tag, source).map(Some).map_err(wrong);
    }
    if is_word(parser, 0, "alter") && is_of_functions(parser, 1) {
        (0..2).for_each(|_| parser.advance_token());
        return alter(parser, source).map(Some);
    }
    if is_word(parser, 0, "comment") && is_word(parser, 1, "on") && is_of_functions(parser, 2) {
        (0..3).for_each(|_| parser.advance_token());
        return comment(parser, source).map(Some).map_err(wrong);
    }
    Ok(None)
}

fn alter(parser: &mut Parser, source: &Source) -> Result<FunctionStatement> {
    let wrong = |error: ParserError| source.parser_error(error);
    let named = named(parser, source).map_err(wrong)?;
    let next = parser.peek_token();
    let make: fn(NamedFunction, Ident) -> FunctionStatement = match () {
        () if take_words(parser, &["owner", "to"]) => |named, _| FunctionStatement::Owner(named),
        () if take_words(parser, &["rename", "to"]) => FunctionStatement::Rename,
        () if take_words(parser, &["set", "schema"]) => FunctionStatement::SetSchema,
        () => {
            let error = SqlError::unsupported(format!("ALTER FUNCTION ... {next}")).at(source.start(next.span));
            return Err(error.hint("Make it anew by CREATE OR REPLACE FUNCTION."));
        }
    };
    Ok(make(named, words::identifier(parser).map_err(wrong)?))
}

fn comment(parser: &mut Parser, source: &Source) -> Read<FunctionStatement> {
    let named = named(parser, source)?;
    parser.expect_keyword(Keyword::IS)?;
    let text = if parser.parse_keyword(Keyword::NULL) { None } else { Some(parser.parse_literal_string()?) };
    Ok(FunctionStatement::Comment(named, text))
}

fn named(parser: &mut Parser, source: &Source) -> Read<NamedFunction> {
    let name = words::object_name(parser)?;
    if parser.peek_token().token != Token::LParen {
        return Ok(NamedFunction { name, types: None });
    }
    let arguments = arguments(parser, source)?.into_iter();
    let types = arguments.filter(|argument| argument.mode != Mode::Out).map(|argument| argument.data_type);
    Ok(NamedFunction { name, types: Some(types.collect()) })
}

fn drop(parser: &mut Parser, tag: &'static str, source: &Source) -> Read<FunctionStatement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let functions = parser.parse_comma_separated(|parser| named(parser, source))?;
    let behavior = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
    Ok(FunctionStatement::Drop { functions, if_exists, cascade: behavior == Some(Keyword::CASCADE), tag })
}

/// Arguments in parentheses.
fn arguments(parser: &mut Parser, source: &Source) -> Read<Vec<NewArgument>> {
    parser.expect_token(&Token::LParen)?;
    let mut found = Vec::new();
    if parser.consume_token(&Token::RParen) {
        return Ok(found);
    }
    loop {
        found.push(argument(parser, source)?);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok(found)
}

fn argument(parser: &mut Parser, source: &Source) -> Read<NewArgument> {
    let is_mode = |parser: &Parser, word: &str| {
        is_word(parser, 0, word) && !matches!(parser.peek_nth_token(1).token, Token::Comma | Token::RParen)
    };
    let mut mode = Mode::In;
    if is_mode(parser, "variadic") {
        return Err(ParserError::ParserError("VARIADIC arguments are not supported".to_owned()));
    }
    for (word, found) in [("in", Mode::In), ("out", Mode::Out), ("inout", Mode::Both)] {
        if is_mode(parser, word) {
            parser.advance_token();
            mode = found;
            break;
        }
    }
    let bare = parser.maybe_parse(|parser| {
        let data_type = parser.parse_data_type()?;
        let ends = matches!(parser.peek_token().token, Token::Comma | Token::RParen | Token::Eq | Token::Assignment);
        match ends || is_word(parser, 0, "default") {
            true => Ok(data_type),
            false => Err(ParserError::ParserError("a name".to_owned())),
        }
    })?;
    let (name, data_type) = match bare {
        Some(data_type) => (None, data_type),
        None => (Some(words::identifier(parser)?), parser.parse_data_type()?),
    };
    let has_default = take_words(parser, &["default"]) || parser.consume_token(&Token::Eq);
    let default = if has_default { Some(expression(parser, source)?) } else { None };
    Ok(NewArgument { mode, name, data_type, default })
}

/// An expression with its text.
fn expression(parser: &mut Parser, source: &Source) -> Read<(Expr, String)> {
    let start = source.start(parser.peek_token().span).unwrap_or(source.text.len());
    let expr = parser.parse_expr()?;
    let end = source.start(parser.peek_token().span).unwrap_or(source.text.len());
    Ok((expr, source.text[start..end.max(start)].trim_end().trim_end_matches(';').trim_end().to_owned()))
}

fn create(parser: &mut Parser, or_replace: bool, source: &Source) -> Result<NewFunction> {
    let wrong = |error: ParserError| source.parser_error(error);
    let name = words::object_name(parser).map_err(wrong)?;
    let arguments = arguments(parser, source).map_err(wrong)?;
    let mut new = NewFunction {
        name,
        or_replace,
        arguments,
        returns: None,
        language: None,
        body: None,
        has_symbol: false,
        volatility: None,
        is_strict: false,
        options: Vec::new(),
    };
    if is_word(parser, 0, "returns") && !is_word(parser, 1, "null") {
        parser.advance_token();
        new.returns = Some(returns(parser).map_err(wrong)?);
    }
    let mut seen = Vec::new();
    loop {
        let next = parser.peek_token();
        let Some(kind) = option(parser, &mut new, source)? else { break };
        if seen.contains(&kind) {
            return Err(SqlError::syntax("conflicting or redundant options").at(source.start(next.span)));
        }
        seen.push(kind);
    }
    if take_words(parser, &["return"]) {
        twice(&new)?;
        new.body = Some((FunctionBody::Return, expression(parser, source).map_err(wrong)?.1));
    } else if take_words(parser, &["begin", "atomic"]) {
        twice(&new)?;
        new.body = Some((FunctionBody::Atomic, atomic(parser, source)?));
    }
    Ok(new)
}

fn twice(new: &NewFunction) -> Result<()> {
    match new.body {
        Some(_) => Err(SqlError::new("42P13", "duplicate function body specified")),
        None => Ok(()),
    }
}

fn returns(parser: &mut Parser) -> Read<Returns> {
    if is_word(parser, 0, "table") && parser.peek_nth_token(1).token == Token::LParen {
        (0..2).for_each(|_| parser.advance_token());
        let column = |parser: &mut Parser| Ok((words::identifier(parser)?, parser.parse_data_type()?));
        let columns = parser.parse_comma_separated(column)?;
        parser.expect_token(&Token::RParen)?;
        return Ok(Returns::Table(columns));
    }
    match take_words(parser, &["setof"]) {
        true => parser.parse_data_type().map(Returns::Set),
        false => parser.parse_data_type().map(Returns::One),
    }
}

/// Reads one option; what it is about.
fn option(parser: &mut Parser, new: &mut NewFunction, source: &Source) -> Result<Option<&'static str>> {
    let wrong = |error: ParserError| source.parser_error(error);
    let volatilities = [
        ("immutable", FunctionVolatility::Immutable),
        ("stable", FunctionVolatility::Stable),
        ("volatile", FunctionVolatility::Volatile),
    ];
    if let Some((word, found)) = volatilities.into_iter().find(|(word, _)| is_word(parser, 0, word)) {
        take_words(parser, &[word]);
        new.volatility = Some(found);
        return Ok(Some("volatility"));
    }
    for (words, is_strict) in [
        (&["strict"][..], true),
        (&["returns", "null", "on", "null", "input"], true),
        (&["called", "on", "null", "input"], false),
    ] {
        if take_words(parser, words) {
            new.is_strict = is_strict;
            return Ok(Some("strict"));
        }
    }
    for (words, said, kind) in [
        (&["not", "leakproof"][..], None, "leakproof"),
        (&["leakproof"], Some("LEAKPROOF"), "leakproof"),
        (&["external", "security", "invoker"], None, "security"),
        (&["security", "invoker"], None, "security"),
        (&["external", "security", "definer"], Some("SECURITY DEFINER"), "security"),
        (&["security", "definer"], Some("SECURITY DEFINER"), "security"),
        (&["parallel", "unsafe"], None, "parallel"),
        (&["parallel", "safe"], Some("PARALLEL SAFE"), "parallel"),
        (&["parallel", "restricted"], Some("PARALLEL RESTRICTED"), "parallel"),
    ] {
        if take_words(parser, words) {
            new.options.extend(said.map(str::to_owned));
            return Ok(Some(kind));
        }
    }
    for word in ["cost", "rows"] {
        if take_words(parser, &[word]) {
            let number = parser.parse_number_value().map_err(wrong)?;
            new.options.push(format!("{} {number}", word.to_uppercase()));
            return Ok(Some(if word == "cost" { "cost" } else { "rows" }));
        }
    }
    if take_words(parser, &["language"]) {
        new.language = Some(language(parser).map_err(wrong)?);
        return Ok(Some("language"));
    }
    if take_words(parser, &["as"]) {
        text_body(parser, new, source)?;
        return Ok(Some("as"));
    }
    for word in ["set", "window", "transform", "support"] {
        if is_word(parser, 0, word) {
            let at = source.start(parser.peek_token().span);
            return Err(SqlError::unsupported(format!("{} of a function", word.to_uppercase())).at(at));
        }
    }
    Ok(None)
}

/// The body behind `AS`.
fn text_body(parser: &mut Parser, new: &mut NewFunction, source: &Source) -> Result<()> {
    let next = parser.next_token();
    let body = match next.token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text,
        Token::DollarQuotedString(text) => text.value,
        other => {
            let error = SqlError::syntax(format!("syntax error at or near \"{other}\""));
            return Err(error.at(source.start(next.span)));
        }
    };
    new.body = Some((FunctionBody::Text, body));
    if parser.consume_token(&Token::Comma) {
        parser.parse_literal_string().map_err(|error| source.parser_error(error))?;
        new.has_symbol = true;
    }
    Ok(())
}

/// The name of a language, which may be a text.
fn language(parser: &mut Parser) -> Read<Ident> {
    match parser.peek_token().token {
        Token::SingleQuotedString(name) => {
            parser.advance_token();
            Ok(Ident::new(fold(&Ident::new(name))))
        }
        _ => words::identifier(parser),
    }
}

/// The text between `BEGIN ATOMIC` and its `END`.
fn atomic(parser: &mut Parser, source: &Source) -> Result<String> {
    let start = source.start(parser.peek_token().span).unwrap_or(source.text.len());
    let mut depth = 0;
    loop {
        let next = parser.next_token();
        let word = match &next.token {
            Token::EOF => return Err(SqlError::syntax("syntax error at end of input").at(Some(source.text.len()))),
            Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
            _ => continue,
        };
        match word.as_str() {
            "case" => depth += 1,
            "end" if depth > 0 => depth -= 1,
            "end" => {
                let end = source.start(next.span).unwrap_or(start);
                return Ok(source.text[start..end.max(start)].trim().to_owned());
            }
            _ => {}
        }
    }
}
