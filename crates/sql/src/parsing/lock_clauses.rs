//! `FOR UPDATE` and its like at the end of a query, taken out of its tokens before the parser's library sees them: that
//! knows two of the four strengths, one table after `OF`, and no `LIMIT` behind the clause.
//!
//! ```text
//! FOR { UPDATE | NO KEY UPDATE | SHARE | KEY SHARE } [OF table [, ...]] [NOWAIT | SKIP LOCKED]
//! ```
//!
//! Of a query in parentheses the parser is given a clause in its place that it knows, with the number of the one that was
//! written as the name of a table:
//!
//! ```text
//! (SELECT id FROM job FOR NO KEY UPDATE SKIP LOCKED LIMIT 1)  ->  (SELECT id FROM job LIMIT 1 FOR UPDATE OF "\0lock 0")
//! ```
use std::fmt;

use datafusion::sql::sqlparser::ast::{self, Ident, LockType, ObjectName, Query};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use engine::{LockStrength, LockWait};

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;

/// One such clause.
#[derive(Clone, Debug)]
pub(crate) struct LockClause {
    pub(crate) strength: Strength,
    /// The tables to lock, with where they are named; all of the query where none is.
    pub(crate) of: Vec<(String, Option<usize>)>,
    pub(crate) wait: LockWait,
    /// Where it stands.
    pub(crate) position: Option<usize>,
}

/// The strengths by PostgreSQL's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    Update,
    NoKeyUpdate,
    Share,
    KeyShare,
}

impl Strength {
    /// The strength of the lock for the engine.
    pub(crate) fn lock(self) -> LockStrength {
        match self {
            Strength::Update => LockStrength::Update,
            Strength::NoKeyUpdate => LockStrength::NoKeyUpdate,
            Strength::Share => LockStrength::Share,
            Strength::KeyShare => LockStrength::KeyShare,
        }
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strength::Update => "FOR UPDATE",
            Strength::NoKeyUpdate => "FOR NO KEY UPDATE",
            Strength::Share => "FOR SHARE",
            Strength::KeyShare => "FOR KEY SHARE",
        })
    }
}

const STRENGTHS: [(&[Keyword], Strength); 4] = [
    (&[Keyword::UPDATE], Strength::Update),
    (&[Keyword::NO, Keyword::KEY, Keyword::UPDATE], Strength::NoKeyUpdate),
    (&[Keyword::SHARE], Strength::Share),
    (&[Keyword::KEY, Keyword::SHARE], Strength::KeyShare),
];

/// The clauses of a statement.
#[derive(Default)]
pub(crate) struct Taken {
    /// Those that stand outside of all parentheses.
    pub(crate) outer: Vec<LockClause>,
    /// Those of queries in parentheses, which know them by their numbers.
    pub(crate) inner: Vec<LockClause>,
}

/// Takes the clauses out of a statement.
pub(crate) fn take(tokens: &mut Vec<TokenWithSpan>, source: &Source) -> Result<Taken> {
    let mut taken = Taken::default();
    // Only a `FOR` is looked at closely: long statements have many thousand tokens.
    if !tokens.iter().any(|token| is_for(&token.token)) {
        return Ok(taken);
    }
    let mut left = Vec::with_capacity(tokens.len());
    // The numbers of the clauses of each query in parentheses around.
    let mut around: Vec<Vec<usize>> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        match token.token {
            Token::LParen => around.push(Vec::new()),
            Token::RParen => around.pop().into_iter().flatten().for_each(|number| left.extend(marker(number, token))),
            _ if is_for(&token.token) => {
                let mut reader = Reader { tokens, at, source };
                if let Some(clause) = reader.clause()? {
                    at = reader.at;
                    match around.last_mut() {
                        None => taken.outer.push(clause),
                        Some(of_query) => {
                            of_query.push(taken.inner.len());
                            taken.inner.push(clause);
                        }
                    }
                    continue;
                }
            }
            _ => {}
        }
        left.push(token.clone());
        at += 1;
    }
    *tokens = left;
    Ok(taken)
}

fn is_for(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.keyword == Keyword::FOR && word.quote_style.is_none())
}

/// The clause that the parser sees instead of the one with this number, before the token at which its query ends.
fn marker(number: usize, end: &TokenWithSpan) -> [TokenWithSpan; 4] {
    let word = |text: &str, quote| TokenWithSpan { token: Token::make_word(text, quote), span: end.span };
    [word("FOR", None), word("UPDATE", None), word("OF", None), word(&format!("{MARKER}{number}"), Some('"'))]
}

/// No statement can spell this.
const MARKER: &str = "\0lock ";

/// Has a query know clauses by their numbers.
pub(crate) fn mark(query: &mut Query, numbers: impl Iterator<Item = usize>) {
    query.locks.extend(numbers.map(|number| ast::LockClause {
        lock_type: LockType::Update,
        of: Some(ObjectName::from(vec![Ident::with_quote('"', format!("{MARKER}{number}"))])),
        nonblock: None,
    }));
}

/// The clauses of a query, which then has none.
pub(crate) fn take_marked(query: &mut Query, all: &[LockClause]) -> Vec<LockClause> {
    let number =
        |lock: &ast::LockClause| -> Option<usize> { last_part(lock.of.as_ref()?)?.strip_prefix(MARKER)?.parse().ok() };
    let clause = |lock: ast::LockClause| all.get(number(&lock)?).cloned();
    query.locks.drain(..).filter_map(clause).collect()
}

struct Reader<'a> {
    tokens: &'a [TokenWithSpan],
    at: usize,
    source: &'a Source<'a>,
}

impl Reader<'_> {
    /// The next token and the place behind it.
    fn next(&self) -> Option<(&TokenWithSpan, usize)> {
        let rest = self.tokens[self.at..].iter();
        let found = rest.enumerate().find(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
        found.map(|(skipped, token)| (token, self.at + skipped + 1))
    }

    fn position(&self) -> Option<usize> {
        self.next().and_then(|(token, _)| self.source.start(token.span))
    }

    fn keyword(&mut self, keyword: Keyword) -> bool {
        match self.next() {
            Some((TokenWithSpan { token: Token::Word(word), .. }, end))
                if word.keyword == keyword && word.quote_style.is_none() =>
            {
                self.at = end;
                true
            }
            _ => false,
        }
    }

    /// All of these, or none.
    fn keywords(&mut self, keywords: &[Keyword]) -> bool {
        let before = self.at;
        let found = keywords.iter().all(|keyword| self.keyword(*keyword));
        if !found {
            self.at = before;
        }
        found
    }

    fn clause(&mut self) -> Result<Option<LockClause>> {
        let start = self.at;
        if !self.keyword(Keyword::FOR) {
            return Ok(None);
        }
        let found = STRENGTHS.iter().find(|(words, _)| self.keywords(words));
        let Some((_, strength)) = found else { return Ok(None) };
        let of = if self.keyword(Keyword::OF) { self.tables(*strength)? } else { Vec::new() };
        let wait = if self.keyword(Keyword::NOWAIT) {
            LockWait::NoWait
        } else if self.keywords(&[Keyword::SKIP, Keyword::LOCKED]) {
            LockWait::SkipLocked
        } else {
            LockWait::Block
        };
        let position = self.source.start(self.tokens[start].span);
        Ok(Some(LockClause { strength: *strength, of, wait, position }))
    }

    fn tables(&mut self, strength: Strength) -> Result<Vec<(String, Option<usize>)>> {
        let mut tables = Vec::new();
        loop {
            let position = self.position();
            let (name, end) = match self.next() {
                Some((TokenWithSpan { token: Token::Word(word), .. }, end)) => {
                    let ident = Ident { value: word.value.clone(), quote_style: word.quote_style, ..Ident::new("") };
                    (fold(&ident), end)
                }
                _ => return Err(SqlError::syntax(format!("{strength} OF needs the names of tables")).at(position)),
            };
            self.at = end;
            tables.push((name, position));
            match self.next() {
                Some((TokenWithSpan { token: Token::Comma, .. }, end)) => self.at = end,
                Some((TokenWithSpan { token: Token::Period, .. }, _)) => {
                    let message = format!("{strength} must specify unqualified relation names");
                    return Err(SqlError::syntax(message).at(position));
                }
                _ => return Ok(tables),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsing::ParsedStatement;
    use crate::parsing::parse::parse;

    fn clauses(text: &str) -> Vec<LockClause> {
        match parse(text) {
            Ok(ParsedStatement::Locking(_, clauses)) => clauses,
            Ok(_) => Vec::new(),
            Err(error) => panic!("{text}: {error:?}"),
        }
    }

    #[test]
    fn a_query_in_parentheses_knows_its_own_clauses() {
        let text = "UPDATE t SET a = 1 WHERE b IN (SELECT b FROM t FOR NO KEY UPDATE SKIP LOCKED LIMIT (1)) AND c IN \
                    (SELECT c FROM u WHERE d = (SELECT d FROM v FOR SHARE OF v))";
        let Ok(ParsedStatement::Composed(_, clauses)) = parse(text) else { panic!("not composed") };
        let strengths: Vec<Strength> = clauses.iter().map(|clause| clause.strength).collect();
        assert_eq!(strengths, [Strength::NoKeyUpdate, Strength::Share]);
        assert_eq!(clauses[0].wait, LockWait::SkipLocked);
        assert!(matches!(parse("SELECT (SELECT 1)"), Ok(ParsedStatement::Statement(_))));
    }

    #[test]
    fn clauses_are_found_before_and_after_a_limit() {
        for text in ["SELECT a FROM t FOR UPDATE SKIP LOCKED LIMIT 1", "SELECT a FROM t LIMIT 1 FOR UPDATE SKIP LOCKED"]
        {
            let found = clauses(text);
            assert_eq!((found.len(), found[0].strength, found[0].wait), (1, Strength::Update, LockWait::SkipLocked));
            assert!(found[0].of.is_empty(), "{text}");
        }
        let found = clauses("SELECT 1 FROM t, u FOR NO KEY UPDATE OF t, \"U\" NOWAIT FOR KEY SHARE OF v");
        let names: Vec<&str> = found[0].of.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, found[0].wait), (vec!["t", "U"], LockWait::NoWait));
        assert_eq!((found[1].strength, found[1].strength.lock()), (Strength::KeyShare, LockStrength::KeyShare));
        assert!(clauses("SELECT substring('abc' FOR 2), \"for\" FROM t").is_empty());
        assert_eq!(parse("SELECT 1 FROM t FOR UPDATE OF a.t").err().map(|error| error.sqlstate), Some("42601"));
    }
}
