//! What statements say of identity columns and generated ones, brought into words that the parser's library reads, among the
//! tokens of a statement.
//!
//! ```text
//! INSERT INTO t (a) OVERRIDING SYSTEM VALUE VALUES ...  ->  INSERT INTO t (a, "\0overriding system") VALUES ...
//! ... AS IDENTITY (START 5 INCREMENT 2)                 ->  ... AS IDENTITY (INCREMENT 2 START 5)
//! ... AS IDENTITY (SEQUENCE NAME s START 5)             ->  ... AS IDENTITY (START 5)
//! ALTER COLUMN a DROP EXPRESSION                        ->  ALTER COLUMN a SET DEFAULT "\0drop expression"
//! ```
//!
//! The library knows no `OVERRIDING`, and reads the options of a sequence in one order alone. The name that a dump gives to the sequence is
//! the one that it gets anyhow.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

use crate::syntax::tokens::{following, is_sign, keyword};

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let first = tokens.iter().find(|token| is_sign(token)).map_or(Keyword::NoKeyword, keyword);
    match first {
        Keyword::INSERT => overriding(tokens),
        Keyword::CREATE => options(tokens),
        Keyword::ALTER => {
            options(tokens);
            expressions(tokens);
        }
        _ => {}
    }
}

/// The name that stands for `DROP EXPRESSION` as a default.
pub(crate) const DROP_EXPRESSION: &str = "\0drop expression";

/// The name that stands for `DROP EXPRESSION IF EXISTS` there.
pub(crate) const DROP_EXPRESSION_IF_EXISTS: &str = "\0drop expression if exists";

/// `DROP EXPRESSION [IF EXISTS]` as a default that no statement can spell.
fn expressions(tokens: &mut Vec<TokenWithSpan>) {
    let is_word = |token: &TokenWithSpan, text: &str| match &token.token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text),
        _ => false,
    };
    let mut at = 0;
    while at < tokens.len() {
        if keyword(&tokens[at]) == Keyword::DROP
            && let [expression, rest @ ..] = &following(tokens, at).take(3).collect::<Vec<_>>()[..]
            && is_word(&tokens[*expression], "expression")
        {
            let (last, name) = match rest {
                [first, second] if is_word(&tokens[*first], "if") && is_word(&tokens[*second], "exists") => {
                    (*second, DROP_EXPRESSION_IF_EXISTS)
                }
                _ => (*expression, DROP_EXPRESSION),
            };
            let (span, blank) = (tokens[at].span, Token::Whitespace(Whitespace::Space));
            let word = |text: &str| Token::make_word(text, None);
            let spelled = [word("SET"), blank.clone(), word("DEFAULT"), blank, Token::make_word(name, Some('"'))];
            tokens.splice(at..=last, spelled.map(|token| TokenWithSpan { token, span }));
        }
        at += 1;
    }
}

/// The name that stands for `OVERRIDING SYSTEM VALUE` at the end of a list of columns.
pub(crate) const OVERRIDING_SYSTEM: &str = "\0overriding system";

/// The name that stands for `OVERRIDING USER VALUE` there.
pub(crate) const OVERRIDING_USER: &str = "\0overriding user";

/// `OVERRIDING`, which stands before the rows of an `INSERT`, as one more name in the list of columns, which it may be alone in.
fn overriding(tokens: &mut Vec<TokenWithSpan>) {
    let ends = [Keyword::VALUES, Keyword::VALUE, Keyword::SELECT, Keyword::WITH, Keyword::DEFAULT];
    let mut before: Option<usize> = None;
    for at in 0..tokens.len() {
        let next: Vec<usize> = following(tokens, at).take(2).collect();
        let word = |at: usize| tokens[at].token.to_string().to_uppercase();
        if let ([which, value], Some(before)) = (&next[..], before)
            && matches!(&tokens[at].token, Token::Word(word) if word.value.eq_ignore_ascii_case("overriding"))
            && word(*value) == "VALUE"
        {
            let mark = match word(*which).as_str() {
                "SYSTEM" => OVERRIDING_SYSTEM,
                "USER" => OVERRIDING_USER,
                _ => return,
            };
            let name =
                Token::Word(Word { value: mark.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword });
            let is_list = matches!(tokens[before].token, Token::RParen);
            let (from, first) = if is_list { (before, Token::Comma) } else { (at, Token::LParen) };
            let span = tokens[at].span;
            let spelled = [first, name, Token::RParen].map(|token| TokenWithSpan { token, span });
            tokens.splice(from..=*value, spelled);
            return;
        }
        if ends.contains(&keyword(&tokens[at])) {
            return;
        }
        if is_sign(&tokens[at]) {
            before = Some(at);
        }
    }
}

/// The words with which options of a sequence begin, in the order in which the library reads them.
const OPTIONS: [Keyword; 6] =
    [Keyword::INCREMENT, Keyword::MINVALUE, Keyword::MAXVALUE, Keyword::START, Keyword::CACHE, Keyword::CYCLE];

/// Puts the options behind `IDENTITY` in order. Where one comes twice the library refuses the second.
fn options(tokens: &mut [TokenWithSpan]) {
    let starts: Vec<usize> = (0..tokens.len()).filter(|at| keyword(&tokens[*at]) == Keyword::IDENTITY).collect();
    for identity in starts {
        let Some(open) = following(tokens, identity).next().filter(|at| tokens[*at].token == Token::LParen) else {
            continue;
        };
        let Some(length) = tokens[open..].iter().position(|token| token.token == Token::RParen) else { return };
        let listed = &mut tokens[open + 1..open + length];
        let mut sorted: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
        without_name(listed);
        for token in listed.iter() {
            let rank = OPTIONS.iter().position(|option| *option == keyword(token));
            let is_negated = sorted.last().is_some_and(|(rank, _)| *rank == OPTIONS.len());
            match (rank, sorted.last_mut()) {
                (Some(rank), Some((known, option))) if is_negated => {
                    *known = rank;
                    option.push(token.clone());
                }
                (Some(rank), _) => sorted.push((rank, vec![token.clone()])),
                // `NO` belongs to what follows.
                (None, _) if keyword(token) == Keyword::NO => sorted.push((OPTIONS.len(), vec![token.clone()])),
                (None, Some((_, option))) => option.push(token.clone()),
                (None, None) => sorted.push((0, vec![token.clone()])),
            }
        }
        sorted.sort_by_key(|(rank, _)| *rank);
        let ordered: Vec<TokenWithSpan> = sorted.into_iter().flat_map(|(_, option)| option).collect();
        listed.clone_from_slice(&ordered);
    }
}

/// Puts blanks in the place of a name of the sequence.
fn without_name(listed: &mut [TokenWithSpan]) {
    let named = listed.iter().position(|token| keyword(token) == Keyword::SEQUENCE);
    let Some(start) = named else { return };
    let is_next = |token: &TokenWithSpan| OPTIONS.contains(&keyword(token)) || keyword(token) == Keyword::NO;
    let end = listed[start..].iter().position(is_next).map_or(listed.len(), |length| start + length);
    listed[start..end].iter_mut().for_each(|token| token.token = Token::Whitespace(Whitespace::Space));
}
