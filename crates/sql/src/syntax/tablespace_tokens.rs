//! Tablespaces, of which there is one: what puts a table or an index there is taken out of a statement's tokens.
//!
//! ```text
//! CREATE TABLE t (a int) TABLESPACE pg_default               ->  CREATE TABLE t (a int)
//! CREATE INDEX ON t (a) TABLESPACE pg_default WHERE a > 1    ->  CREATE INDEX ON t (a) WHERE a > 1
//! UNIQUE (a) USING INDEX TABLESPACE pg_default               ->  UNIQUE (a)
//! ALTER TABLE t SET TABLESPACE pg_default                    ->  ALTER TABLE t OWNER TO CURRENT_USER, which changes nothing
//! ```
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;
use crate::syntax::tokens::{following, is_sign, keyword};

/// The one in which everything is.
pub(crate) const TABLESPACE: &str = "pg_default";

/// Changes the tokens of a statement.
///
/// # Errors
/// Where it names a tablespace that there is not.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>, source: &Source) -> Result<()> {
    let signs: Vec<usize> = (0..tokens.len()).filter(|at| is_sign(&tokens[*at])).collect();
    let word = |at: usize| signs.get(at).map_or(Keyword::NoKeyword, |at| keyword(&tokens[*at]));
    let is_there = signs.iter().any(|at| keyword(&tokens[*at]) == Keyword::TABLESPACE);
    match word(0) {
        Keyword::ALTER if is_there => {
            if let Some(at) = (1..signs.len()).find(|at| word(*at) == Keyword::SET) {
                return moved(tokens, &signs[at..], source);
            }
        }
        Keyword::CREATE if is_there => {}
        _ => return Ok(()),
    }
    let mut at = tokens.len();
    while let Some(found) = (0..at).rev().find(|at| keyword(&tokens[*at]) == Keyword::TABLESPACE) {
        take_out(tokens, found, source)?;
        at = found.min(tokens.len());
    }
    Ok(())
}

/// `SET TABLESPACE name` at the end, whose signs these are.
fn moved(tokens: &mut Vec<TokenWithSpan>, signs: &[usize], source: &Source) -> Result<()> {
    let &[set, tablespace, name, ref rest @ ..] = signs else { return Ok(()) };
    if keyword(&tokens[tablespace]) != Keyword::TABLESPACE || rest.len() > 1 {
        return Ok(());
    }
    check(&tokens[name], source)?;
    let span = tokens[set].span;
    let blank = || Token::Whitespace(Whitespace::Space);
    let word = Token::make_keyword;
    let owner = [word("OWNER"), blank(), word("TO"), blank(), word("CURRENT_USER")];
    let end =
        rest.first().map_or(name, |nowait| if keyword(&tokens[*nowait]) == Keyword::NOWAIT { *nowait } else { name });
    tokens.splice(set..=end, owner.map(|token| TokenWithSpan { token, span }));
    Ok(())
}

/// `TABLESPACE name` here, if it is a clause: behind all parentheses and before the query of a table, or behind `USING INDEX`.
fn take_out(tokens: &mut Vec<TokenWithSpan>, at: usize, source: &Source) -> Result<()> {
    let Some(name) = following(tokens, at).next().filter(|at| matches!(tokens[*at].token, Token::Word(_))) else {
        return Ok(());
    };
    let before: Vec<usize> = (0..at).rev().filter(|at| is_sign(&tokens[*at])).take(2).collect();
    let word = |at: usize| before.get(at).map_or(Keyword::NoKeyword, |at| keyword(&tokens[*at]));
    if (word(0), word(1)) == (Keyword::INDEX, Keyword::USING) {
        check(&tokens[name], source)?;
        tokens.drain(before[1]..=name);
        return Ok(());
    }
    let open = tokens[..at].iter().filter(|token| token.token == Token::LParen).count();
    let closed = tokens[..at].iter().filter(|token| token.token == Token::RParen).count();
    let has_query = tokens[..at].iter().any(|token| matches!(keyword(token), Keyword::AS | Keyword::SELECT));
    let is_a_name = matches!(word(0), Keyword::TABLE | Keyword::INDEX | Keyword::EXISTS | Keyword::VIEW);
    if open == closed && !has_query && !is_a_name && keyword(&tokens[name]) != Keyword::ON {
        check(&tokens[name], source)?;
        tokens.drain(at..=name);
    }
    Ok(())
}

fn check(token: &TokenWithSpan, source: &Source) -> Result<()> {
    let Token::Word(word) = &token.token else { return Ok(()) };
    let name = fold(&word.clone().into_ident(token.span));
    if name == TABLESPACE {
        return Ok(());
    }
    let error = match name.as_str() {
        "pg_global" => SqlError::new("22023", "only shared relations can be placed in pg_global tablespace"),
        _ => SqlError::new("42704", format!("tablespace \"{name}\" does not exist")),
    };
    Err(error.at(source.start(token.span)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str) -> Result<String> {
        let source = Source::new(text);
        let mut tokens = source.tokens()?;
        spell_out(&mut tokens, &source)?;
        let words = tokens.iter().filter(|token| is_sign(token)).map(|token| token.token.to_string());
        Ok(words.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn clauses_are_taken_out_and_names_stay() {
        let same = ["CREATE TABLE tablespace ( tablespace int )", "CREATE INDEX tablespace ON t ( tablespace )"];
        for text in same.into_iter().chain(["CREATE TABLE t AS SELECT a tablespace FROM t"]) {
            assert_eq!(spelled(text).unwrap(), text);
        }
        let text = "CREATE UNIQUE INDEX i ON t (a) TABLESPACE pg_default WHERE a > 1";
        assert_eq!(spelled(text).unwrap(), "CREATE UNIQUE INDEX i ON t ( a ) WHERE a > 1");
        let text = "CREATE TABLE t (a int, UNIQUE (a) USING INDEX TABLESPACE \"pg_default\") TABLESPACE pg_default";
        assert_eq!(spelled(text).unwrap(), "CREATE TABLE t ( a int , UNIQUE ( a ) )");
        let text = "ALTER INDEX i SET TABLESPACE pg_default NOWAIT";
        assert_eq!(spelled(text).unwrap(), "ALTER INDEX i OWNER TO CURRENT_USER");
        assert_eq!(spelled("CREATE TABLE t (a int) TABLESPACE fast").unwrap_err().sqlstate, "42704");
    }
}
