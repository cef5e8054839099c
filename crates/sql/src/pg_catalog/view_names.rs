//! The query of a view with the names of the view's columns: `CREATE VIEW v (n) AS SELECT id FROM t` is told as `SELECT id AS n FROM t`.
use std::ops::Range;

use datafusion::sql::sqlparser::ast::{Select, SelectItem, SetExpr};
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

use crate::names::headings::heading;
use crate::parsing::parse::{Places, parse_query};
use crate::syntax::identifiers::{fold, quoted};
use crate::syntax::source::Source;

/// Words that end a select list.
const ENDS: [&str; 12] =
    ["FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "INTERSECT", "EXCEPT"];

/// The query of a view whose columns have these names.
pub(super) fn with_names(text: &str, names: &[&str]) -> String {
    let Ok(query) = parse_query(text, Places::Known) else { return text.to_owned() };
    let Some(select) = first(&query.body) else { return around(text, names) };
    let given: Vec<Option<String>> = select.projection.iter().map(name_of).collect();
    let is_named = |(given, name): (&Option<String>, &&str)| given.as_deref() == Some(name);
    if given.len() == names.len() && given.iter().zip(names).all(is_named) {
        return text.to_owned();
    }
    let source = Source::new(text);
    match items(select, &source).filter(|items| items.len() == names.len()) {
        Some(items) => edited(text, select, &items, names),
        None => around(text, names),
    }
}

/// The query as a part of one that has the names.
fn around(text: &str, names: &[&str]) -> String {
    let list: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    let list = list.join(", ");
    format!("SELECT {list} FROM ({text}) AS v({list})")
}

/// The query whose names the whole has.
fn first(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::SetOperation { left, .. } => first(left),
        SetExpr::Query(query) => first(&query.body),
        _ => None,
    }
}

fn name_of(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some(heading(expr).unwrap_or_else(|| "?column?".to_owned())),
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        _ => None,
    }
}

/// Where the items of a select list stand.
fn items(select: &Select, source: &Source) -> Option<Vec<Range<usize>>> {
    let begin = select.select_token.0.span;
    if begin == Span::empty() {
        return None;
    }
    let tokens = source.tokens().ok()?;
    let tokens: Vec<&TokenWithSpan> =
        tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF)).collect();
    let at = tokens.iter().position(|token| token.span == begin)? + 1;
    let is_word = |at: usize, word: &str| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(Word { value, quote_style: None, .. })) => value.eq_ignore_ascii_case(word),
        _ => false,
    };
    if is_word(at, "DISTINCT") || is_word(at, "ALL") {
        return None;
    }
    let (mut depth, mut found, mut start, mut last) = (0_usize, Vec::new(), at, at);
    for place in at..=tokens.len() {
        let token = tokens.get(place).map(|token| &token.token);
        let is_comma = depth == 0 && token == Some(&Token::Comma);
        // `a IS DISTINCT FROM b` goes on.
        let is_end = depth == 0
            && (matches!(token, None | Some(Token::RParen | Token::SemiColon))
                || ENDS.iter().any(|end| is_word(place, end))
                    && !(is_word(place, "FROM") && is_word(place - 1, "DISTINCT")));
        if is_comma || is_end {
            found.push(source.offset(tokens.get(start)?.span.start)?..source.offset(tokens[last].span.end)?);
            start = place + 1;
        }
        if is_end {
            return Some(found);
        }
        match token {
            Some(Token::LParen | Token::LBracket) => depth += 1,
            Some(Token::RParen | Token::RBracket) => depth = depth.checked_sub(1)?,
            _ => {}
        }
        last = place;
    }
    None
}

/// The text with each item under its name.
fn edited(text: &str, select: &Select, items: &[Range<usize>], names: &[&str]) -> String {
    let mut out = text.to_owned();
    for ((item, place), name) in select.projection.iter().zip(items).zip(names).rev() {
        if name_of(item).as_deref() == Some(name) {
            continue;
        }
        let end = match item {
            SelectItem::ExprWithAlias { alias, .. } => {
                let written = alias.to_string();
                match text[place.clone()].ends_with(&written) {
                    true => {
                        out.replace_range(place.end - written.len()..place.end, &quoted(name));
                        continue;
                    }
                    false => return around(text, names),
                }
            }
            _ => place.end,
        };
        out.insert_str(end, &format!(" AS {}", quoted(name)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::with_names;

    #[test]
    fn columns_are_told_by_the_names_of_the_view() {
        let told = |text: &str, names: &[&str]| with_names(text, names);
        assert_eq!(told("SELECT a, b AS c FROM t", &["a", "c"]), "SELECT a, b AS c FROM t");
        assert_eq!(told("SELECT t.a, f(b, 1) FROM t", &["x", "f"]), "SELECT t.a AS x, f(b, 1) FROM t");
        assert_eq!(told("SELECT a AS b, count(*) FROM t", &["B", "n"]), "SELECT a AS \"B\", count(*) AS n FROM t");
        let distinct = "SELECT a IS DISTINCT FROM b, 1 UNION SELECT true, 2";
        let named = "SELECT a IS DISTINCT FROM b AS x, 1 AS y UNION SELECT true, 2";
        assert_eq!(told(distinct, &["x", "y"]), named);
        assert_eq!(told("WITH w AS (SELECT 1, 2) SELECT 3", &["x"]), "WITH w AS (SELECT 1, 2) SELECT 3 AS x");
        assert_eq!(told("VALUES (1, 2)", &["x", "y"]), "SELECT x, y FROM (VALUES (1, 2)) AS v(x, y)");
    }
}
