//! Actions of `ALTER TABLE` that the parser's library does not read, brought into words that it does, among the tokens of a statement:
//!
//! ```text
//! ALTER COLUMN a SET GENERATED ALWAYS RESTART 5  ->  ALTER COLUMN a SET DEFAULT "\0identity SET GENERATED ALWAYS RESTART 5"
//! ALTER COLUMN a DROP IDENTITY IF EXISTS         ->  ALTER COLUMN a SET DEFAULT "\0drop identity if exists"
//! ALTER CONSTRAINT c DEFERRABLE                  ->  ALTER COLUMN c SET DEFAULT "\0constraint DEFERRABLE"
//! ALTER COLUMN a SET STATISTICS 100              ->  ALTER COLUMN a SET DEFAULT "\0unheeded"
//! ALTER COLUMN a TYPE text COLLATE "C" USING b   ->  ALTER COLUMN a TYPE text USING (b) COLLATE "\0column"."C"
//! RESET (fillfactor)                             ->  SET (fillfactor = "\0reset")
//! CLUSTER ON i, SET LOGGED, REPLICA IDENTITY ... ->  SET (fillfactor = "\0reset")
//! ```
//!
//! Each but the last two becomes a default that no statement can spell, and holds the words themselves.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::syntax::tokens::{following, is_sign, keyword};

/// What the name begins with that stands for options of an identity column; the options follow.
pub(crate) const IDENTITY: &str = "\0identity ";

/// The name that stands for `DROP IDENTITY`.
pub(crate) const DROP_IDENTITY: &str = "\0drop identity";

/// The name that stands for `DROP IDENTITY IF EXISTS`.
pub(crate) const DROP_IDENTITY_IF_EXISTS: &str = "\0drop identity if exists";

/// What the name begins with that stands for what becomes of a constraint; its characteristics follow.
pub(crate) const CONSTRAINT: &str = "\0constraint ";

/// The name that stands for how PostgreSQL is to keep a column's values, or what it is to know of them.
pub(crate) const UNHEEDED: &str = "\0unheeded";

/// What the name of a collation begins with that is a column's from here on.
pub(crate) const COLLATION: &str = "\0column";

/// The value of an option that becomes what it is where nothing is said of it.
pub(crate) const RESET: &str = "\0reset";

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let signs: Vec<usize> = (0..tokens.len()).filter(|at| is_sign(&tokens[*at])).take(2).collect();
    let [first, second] = signs[..] else { return };
    if keyword(&tokens[first]) != Keyword::ALTER || keyword(&tokens[second]) != Keyword::TABLE {
        return;
    }
    let resets = tokens.iter().position(|token| keyword(token) == Keyword::RESET);
    resets.into_iter().for_each(|reset| reset_options(tokens, reset));
    unheeded(tokens, second);
    // From the last one on, so that the places of those before stay.
    let actions: Vec<usize> = (second..tokens.len()).filter(|at| keyword(&tokens[*at]) == Keyword::ALTER).collect();
    actions.into_iter().rev().for_each(|action| rewrite(tokens, action));
}

/// Rewrites `RESET (...)`, unless it gives values.
fn reset_options(tokens: &mut Vec<TokenWithSpan>, reset: usize) {
    let next: Vec<usize> = following(tokens, reset).collect();
    let is_open = next.first().is_some_and(|at| tokens[*at].token == Token::LParen);
    let Some(close) = next.iter().copied().find(|at| tokens[*at].token == Token::RParen) else { return };
    if !is_open || tokens[reset..close].iter().any(|token| token.token == Token::Eq) {
        return;
    }
    let names = next.into_iter().take_while(|at| *at < close).filter(|at| matches!(tokens[*at].token, Token::Word(_)));
    let names: Vec<usize> = names.collect();
    for name in names.into_iter().rev() {
        let span = tokens[name].span;
        let value = [Token::Eq, Token::make_word(RESET, Some('"'))];
        tokens.splice(name + 1..name + 1, value.map(|token| TokenWithSpan { token, span }));
    }
    tokens[reset].token = Token::make_word("SET", None);
}

/// Rewrites actions that say how PostgreSQL keeps a table's files: tools write them, and nothing here depends on them.
fn unheeded(tokens: &mut Vec<TokenWithSpan>, table: usize) {
    for at in (table..tokens.len()).rev() {
        let next: Vec<usize> = following(tokens, at).take(2).collect();
        let word = |place: usize| next.get(place).map_or(Keyword::NoKeyword, |at| keyword(&tokens[*at]));
        let says = |place: usize, text: &str| {
            next.get(place).is_some_and(|at| tokens[*at].token.to_string().eq_ignore_ascii_case(text))
        };
        let is_unheeded = match keyword(&tokens[at]) {
            Keyword::CLUSTER => word(0) == Keyword::ON,
            Keyword::REPLICA => says(0, "identity"),
            Keyword::SET if word(0) == Keyword::WITHOUT => says(1, "cluster") || says(1, "oids"),
            Keyword::SET => says(0, "logged") || says(0, "unlogged"),
            _ => false,
        };
        // A column of such a name stands behind another word.
        let before = tokens[..at].iter().rev().filter(|token| is_sign(token)).map(keyword).next();
        let is_action = !matches!(before, Some(Keyword::ALTER | Keyword::COLUMN | Keyword::ADD | Keyword::DROP));
        if is_unheeded && is_action {
            let (end, span) = (end_of_action(tokens, at), tokens[at].span);
            let word = |text: &str| Token::make_word(text, None);
            let option =
                [Token::LParen, word("fillfactor"), Token::Eq, Token::make_word(RESET, Some('"')), Token::RParen];
            let instead = [word("SET"), Token::Whitespace(Whitespace::Space)].into_iter().chain(option);
            tokens.splice(at..end, instead.map(|token| TokenWithSpan { token, span }));
        }
    }
}

/// Rewrites the action that begins here, if it is one of these.
fn rewrite(tokens: &mut Vec<TokenWithSpan>, alter: usize) {
    let next: Vec<usize> = following(tokens, alter).take(6).collect();
    let word = |at: usize| next.get(at).map_or(Keyword::NoKeyword, |at| keyword(&tokens[*at]));
    let is_constraint = word(0) == Keyword::CONSTRAINT;
    let named = usize::from(is_constraint || word(0) == Keyword::COLUMN);
    let Some(start) = next.get(named + 1).copied() else { return };
    let end = end_of_action(tokens, start);
    let words = || tokens[start..end].iter().map(|token| token.token.to_string()).collect::<String>();
    let is_type = matches!(
        (word(named + 1), word(named + 2), word(named + 3)),
        (Keyword::TYPE, ..) | (Keyword::SET, Keyword::DATA, Keyword::TYPE)
    );
    if is_type && !is_constraint {
        return move_collation(tokens, next[named], start, end);
    }
    let name = match (word(named + 1), word(named + 2)) {
        _ if is_constraint => format!("{CONSTRAINT}{}", words()),
        (Keyword::DROP, Keyword::IDENTITY) => {
            let name = if word(named + 3) == Keyword::IF { DROP_IDENTITY_IF_EXISTS } else { DROP_IDENTITY };
            name.to_owned()
        }
        (Keyword::SET | Keyword::RESET, _) if is_unheeded(next.get(named + 2).map(|at| &tokens[*at])) => {
            UNHEEDED.to_owned()
        }
        (Keyword::RESTART, _) => format!("{IDENTITY}{}", words()),
        (Keyword::SET, option) if is_of_identity(option, next.get(named + 2).map(|at| &tokens[*at])) => {
            format!("{IDENTITY}{}", words())
        }
        _ => return,
    };
    let (span, blank) = (tokens[start].span, Token::Whitespace(Whitespace::Space));
    let word = |text: &str| Token::make_word(text, None);
    let instead = [word("SET"), blank.clone(), word("DEFAULT"), blank, Token::make_word(&name, Some('"'))];
    tokens.splice(start..end, instead.map(|token| TokenWithSpan { token, span }));
    if is_constraint {
        tokens[next[0]].token = word("COLUMN");
    }
}

/// Moves the collation of a column's type behind the expression of its values.
fn move_collation(tokens: &mut Vec<TokenWithSpan>, column: usize, start: usize, end: usize) {
    let find = |wanted: Keyword| (start..end).find(|at| keyword(&tokens[*at]) == wanted);
    let using = find(Keyword::USING);
    let Some(collate) = find(Keyword::COLLATE).filter(|collate| using.is_none_or(|using| *collate < using)) else {
        return;
    };
    let span = tokens[collate].span;
    let word = |text: &str| Token::make_word(text, None);
    let name: Vec<TokenWithSpan> =
        tokens[collate + 1..using.unwrap_or(end)].iter().filter(|of| is_sign(of)).cloned().collect();
    let values: Vec<TokenWithSpan> = match using {
        Some(using) => tokens[using + 1..end].to_vec(),
        None => vec![tokens[column].clone()],
    };
    let made = |token| TokenWithSpan { token, span };
    let blank = || made(Token::Whitespace(Whitespace::Space));
    let mut instead = vec![made(word("USING")), blank(), made(Token::LParen)];
    instead.extend(values);
    instead.extend([made(Token::RParen), blank(), made(Token::make_keyword("COLLATE")), blank()]);
    instead.extend([made(Token::make_word(COLLATION, Some('"'))), made(Token::Period)]);
    instead.extend(name);
    instead.push(blank());
    tokens.splice(collate..end, instead);
}

/// Whether this follows `SET` where it is said how PostgreSQL keeps a column's values, or what its planner is to know of them.
fn is_unheeded(token: Option<&TokenWithSpan>) -> bool {
    let Some(token) = token else { return false };
    let text = token.token.to_string().to_ascii_lowercase();
    token.token == Token::LParen || matches!(&*text, "statistics" | "storage" | "compression")
}

/// Whether this word follows `SET` where an identity column is meant.
fn is_of_identity(option: Keyword, token: Option<&TokenWithSpan>) -> bool {
    let is_word = |text: &str| token.is_some_and(|token| token.token.to_string().eq_ignore_ascii_case(text));
    matches!(
        option,
        Keyword::GENERATED
            | Keyword::INCREMENT
            | Keyword::START
            | Keyword::RESTART
            | Keyword::MINVALUE
            | Keyword::MAXVALUE
            | Keyword::NO
            | Keyword::CACHE
            | Keyword::CYCLE
            | Keyword::SEQUENCE
    ) || is_word("owned")
}

/// Where an action ends: at the comma before the next one, or with the statement.
fn end_of_action(tokens: &[TokenWithSpan], start: usize) -> usize {
    let mut depth = 0_usize;
    let is_end = |token: &TokenWithSpan| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_comma = token.token == Token::Comma && depth == 0;
        is_comma || matches!(token.token, Token::SemiColon | Token::EOF)
    };
    tokens[start..].iter().position(is_end).map_or(tokens.len(), |length| start + length)
}
