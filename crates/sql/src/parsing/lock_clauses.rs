//! `FOR UPDATE` and its like at the end of a query, taken out of its tokens before the parser's library sees them: that
//! knows two of the four strengths, one table after `OF`, and no `LIMIT` behind the clause.
//!
//! ```text
//! FOR { UPDATE | NO KEY UPDATE | SHARE | KEY SHARE } [OF table [, ...]] [NOWAIT | SKIP LOCKED]
//! ```
use std::fmt;

use datafusion::sql::sqlparser::ast::Ident;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use engine::{LockStrength, LockWait};

use crate::error::{Result, SqlError};
use crate::names::fold;
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

/// Takes the clauses that stand outside of all parentheses.
pub(crate) fn take(tokens: &mut Vec<TokenWithSpan>, source: &Source) -> Result<Vec<LockClause>> {
    let mut clauses = Vec::new();
    let (mut at, mut depth) = (0, 0usize);
    while at < tokens.len() {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            // Only a `FOR` is looked at closely: long statements have many thousand tokens.
            Token::Word(ref word) if depth == 0 && word.keyword == Keyword::FOR => {
                let mut reader = Reader { tokens, at, source };
                if let Some(clause) = reader.clause()? {
                    let end = reader.at;
                    tokens.drain(at..end);
                    clauses.push(clause);
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    Ok(clauses)
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
