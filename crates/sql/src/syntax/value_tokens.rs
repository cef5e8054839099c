//! Values without parentheses in `FROM`, which the parser's library takes for names of tables, among the tokens of a statement:
//!
//! ```text
//! FROM current_date           ->  FROM (SELECT current_date) AS "current_date" ("current_date")
//! JOIN current_user AS u ON   ->  JOIN (SELECT current_user) AS u (u) ON
//! ```
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::syntax::reserved::is_bare_alias;
use crate::syntax::tokens::{following, is_sign, keyword};

/// The words that are values.
const VALUES: [Keyword; 11] = [
    Keyword::CURRENT_CATALOG,
    Keyword::CURRENT_DATE,
    Keyword::CURRENT_ROLE,
    Keyword::CURRENT_SCHEMA,
    Keyword::CURRENT_TIME,
    Keyword::CURRENT_TIMESTAMP,
    Keyword::CURRENT_USER,
    Keyword::LOCALTIME,
    Keyword::LOCALTIMESTAMP,
    Keyword::SESSION_USER,
    Keyword::USER,
];

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| VALUES.contains(&keyword(token))) {
        return;
    }
    let (mut places, mut before, mut at) = (vec![Place::Elsewhere], Keyword::NoKeyword, 0);
    while at < tokens.len() {
        if !is_sign(&tokens[at]) {
            at += 1;
            continue;
        }
        let (word, place) = (keyword(&tokens[at]), places.last().copied().unwrap_or(Place::Elsewhere));
        let next = match (&tokens[at].token, word) {
            (_, Keyword::SELECT) => Place::List,
            (_, Keyword::FROM) if place == Place::List && before != Keyword::DISTINCT => Place::From,
            (_, word) if ENDS.contains(&word) => Place::Elsewhere,
            _ => place,
        };
        let is_before_table = next != place || word == Keyword::JOIN || tokens[at].token == Token::Comma;
        places.iter_mut().next_back().into_iter().for_each(|place| *place = next);
        if next == Place::From && is_before_table {
            replace(tokens, at);
        }
        match tokens[at].token {
            Token::LParen => places.push(Place::Elsewhere),
            Token::RParen if places.len() > 1 => drop(places.pop()),
            _ => {}
        }
        before = word;
        at += 1;
    }
}

/// What is read within a parenthesis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A list of what is selected.
    List,
    /// The tables that it is selected from.
    From,
    Elsewhere,
}

/// What ends a list of tables.
const ENDS: [Keyword; 11] = [
    Keyword::WHERE,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::WINDOW,
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
    Keyword::UNION,
    Keyword::INTERSECT,
    Keyword::EXCEPT,
];

/// Puts a query in the place of the value that stands behind this word, if one does.
fn replace(tokens: &mut Vec<TokenWithSpan>, word: usize) {
    let next: Vec<usize> = following(tokens, word).take(6).collect();
    let Some(value) = next.first().copied().filter(|at| VALUES.contains(&keyword(&tokens[*at]))) else { return };
    let sign = |at: usize| next.get(at).map(|at| &tokens[*at].token);
    // The digits of its seconds.
    let width = match (sign(1), sign(3)) {
        (Some(Token::LParen), Some(Token::RParen)) => 4,
        (Some(Token::LParen | Token::Period), _) => return,
        _ => 1,
    };
    let says_as = next.get(width).is_some_and(|at| keyword(&tokens[*at]) == Keyword::AS);
    let alias = next.get(width + usize::from(says_as)).filter(|at| match &tokens[**at].token {
        Token::Word(word) => says_as || word.quote_style.is_some() || is_bare_alias(word.keyword),
        _ => false,
    });
    let last = next[width - 1];
    let name = match (alias, &tokens[value].token) {
        (Some(alias), _) => tokens[*alias].token.clone(),
        (None, Token::Word(word)) => Token::make_word(&word.value.to_lowercase(), Some('"')),
        (None, other) => other.clone(),
    };
    let names_columns =
        alias.and_then(|alias| following(tokens, *alias).next()).is_some_and(|at| tokens[at].token == Token::LParen);
    let (span, end) = (tokens[value].span, alias.copied().unwrap_or(last));
    let blank = || Token::Whitespace(Whitespace::Space);
    let mut instead = vec![Token::LParen, Token::make_keyword("SELECT"), blank()];
    instead.extend(tokens[value..=last].iter().map(|token| token.token.clone()));
    instead.extend([Token::RParen, blank(), Token::make_keyword("AS"), blank(), name.clone()]);
    if !names_columns {
        instead.extend([blank(), Token::LParen, name, Token::RParen]);
    }
    tokens.splice(value..=end, instead.into_iter().map(|token| TokenWithSpan { token, span }));
}
