//! `DO`, read from its tokens: as much of PostgreSQL's procedural language as scripts of schemas need to ask whether something is there.
//!
//! ```text
//! DO [LANGUAGE plpgsql] 'block' [LANGUAGE plpgsql]
//!
//! block   BEGIN step ... [EXCEPTION WHEN condition [OR ...] THEN step ... ...] END [;]
//! step    statement; | PERFORM query; | EXECUTE 'statement'; | RAISE level 'message'; | NULL; | block;
//!         | IF condition THEN step ... [ELSIF condition THEN step ...] [ELSE step ...] END IF;
//! ```
//!
//! There are no variables, no loops and no functions in this language.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::syntax::source::Source;
use crate::syntax::tokens::is_sign;

/// Steps, and what is done where one of them fails.
#[derive(Clone, Default)]
pub(crate) struct DoBlock {
    pub(crate) steps: Vec<Step>,
    pub(crate) handlers: Vec<(Vec<String>, Vec<Step>)>,
    /// What is told once it is done, if not that it was a `DO`.
    pub(crate) tag: Option<&'static str>,
}

/// What a block does.
#[derive(Clone)]
pub(crate) enum Step {
    /// A statement, as its text.
    Statement(String),
    /// A query of which the rows are not wanted, as its text.
    Perform(String),
    /// Steps during which names without a schema are looked for in this one first.
    Within(String, Vec<Step>),
    /// A message, and the level that it is raised at.
    Raise(String, String),
    Block(DoBlock),
    /// The first steps of which the condition, as its text, is true.
    If(Vec<(Option<String>, Vec<Step>)>),
    Nothing,
}

const HINT: &str = "DO takes statements, IF, PERFORM, RAISE and EXCEPTION. There are no variables and no loops; a client can send the \
                    statements themselves.";

/// Reads such a statement, if the next one is.
pub(crate) fn parse_do(parser: &mut Parser, source: &Source) -> Result<Option<DoBlock>> {
    let first = parser.peek_token();
    if !matches!(&first.token, Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::DO) {
        return Ok(None);
    }
    parser.advance_token();
    let mut body = None;
    loop {
        let next = parser.next_token();
        match next.token {
            Token::Word(word) if word.keyword == Keyword::LANGUAGE => {
                let language = parser.next_token().token.to_string();
                if language.trim_matches(['"', '\'']).to_lowercase() != "plpgsql" {
                    let message = format!("language {language} does not support inline code execution");
                    return Err(SqlError::new("0A000", message).at(source.start(next.span)));
                }
            }
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) if body.is_none() => body = Some(text),
            Token::DollarQuotedString(text) if body.is_none() => body = Some(text.value),
            Token::EOF | Token::SemiColon => break,
            found => {
                let message = format!("syntax error at or near \"{found}\"");
                return Err(SqlError::syntax(message).at(source.start(next.span)));
            }
        }
    }
    let body = body.ok_or_else(|| SqlError::new("42601", "no inline code specified"))?;
    read(&body).map(Some).map_err(|error| SqlError { position: None, ..error })
}

/// No more blocks and conditions are within each other.
const DEPTH_MAX: usize = 64;

fn read(body: &str) -> Result<DoBlock> {
    let source = Source::new(body);
    let tokens = source.tokens()?.into_iter().filter(is_sign).collect();
    let mut reader = Reader { source: &source, tokens, at: 0, depth: 0 };
    let block = reader.block()?;
    reader.take(";");
    match reader.tokens.get(reader.at) {
        None => Ok(block),
        Some(_) => Err(reader.wrong()),
    }
}

struct Reader<'s> {
    source: &'s Source<'s>,
    /// without blanks
    tokens: Vec<TokenWithSpan>,
    at: usize,
    /// how many blocks and conditions are around
    depth: usize,
}

impl Reader<'_> {
    /// The next token as a word in small letters, or as a sign.
    fn next(&self) -> String {
        match self.tokens.get(self.at).map(|token| &token.token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_lowercase(),
            Some(token) => token.to_string(),
            None => String::new(),
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let is_it = self.next() == word;
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.take(word) { Ok(()) } else { Err(self.wrong()) }
    }

    fn wrong(&self) -> SqlError {
        match self.tokens.get(self.at) {
            Some(token) => SqlError::syntax(format!("syntax error at or near \"{}\"", token.token)).hint(HINT),
            None => SqlError::syntax("syntax error at end of input").hint(HINT),
        }
    }

    fn place(&self, at: usize) -> usize {
        let token = self.tokens.get(at);
        token.and_then(|token| self.source.start(token.span)).unwrap_or(self.source.text.len())
    }

    /// The text up to a word, which is taken, outside of parentheses and of CASE.
    fn text_to(&mut self, end: &str) -> Result<String> {
        let (from, mut depth) = (self.at, 0_usize);
        while self.at < self.tokens.len() {
            let next = self.next();
            match next.as_str() {
                word if word == end && depth == 0 => {
                    let text = self.source.text[self.place(from)..self.place(self.at)].trim().to_owned();
                    self.at += 1;
                    return if text.is_empty() { Err(self.wrong()) } else { Ok(text) };
                }
                "(" | "[" | "case" => depth += 1,
                ")" | "]" | "end" => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
        }
        Err(self.wrong())
    }

    fn block(&mut self) -> Result<DoBlock> {
        self.expect("begin")?;
        let mut block = DoBlock { steps: self.steps()?, ..DoBlock::default() };
        if self.take("exception") {
            while self.take("when") {
                let conditions = self.text_to("then")?;
                let conditions = conditions.to_lowercase().replace('\n', " ");
                let conditions = conditions.split(" or ").map(|name| name.trim().to_owned()).collect();
                block.handlers.push((conditions, self.steps()?));
            }
        }
        self.expect("end")?;
        Ok(block)
    }

    /// Steps, up to a word that ends them.
    fn steps(&mut self) -> Result<Vec<Step>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(SqlError::new("54001", "stack depth limit exceeded").hint(HINT));
        }
        let mut steps = Vec::new();
        while !matches!(self.next().as_str(), "end" | "exception" | "when" | "elsif" | "elseif" | "else" | "") {
            steps.push(self.step()?);
        }
        self.depth -= 1;
        Ok(steps)
    }

    fn step(&mut self) -> Result<Step> {
        match self.next().as_str() {
            "begin" => {
                let block = self.block()?;
                self.expect(";")?;
                Ok(Step::Block(block))
            }
            "if" => self.choice(),
            "null" => {
                self.at += 1;
                self.expect(";")?;
                Ok(Step::Nothing)
            }
            "perform" => {
                self.at += 1;
                Ok(Step::Perform(format!("SELECT {}", self.text_to(";")?)))
            }
            "execute" => {
                self.at += 1;
                Ok(Step::Statement(self.quoted()?))
            }
            "raise" => {
                self.at += 1;
                let level = match self.next().as_str() {
                    level @ ("debug" | "log" | "info" | "notice" | "warning" | "exception") => {
                        self.at += 1;
                        level.to_owned()
                    }
                    _ => "exception".to_owned(),
                };
                Ok(Step::Raise(level, self.quoted()?))
            }
            "declare" | "for" | "foreach" | "while" | "loop" | "return" | "exit" | "continue" | "get" | "open"
            | "fetch" | "close" | "case" | "assert" | "<<" => Err(self.wrong()),
            _ => Ok(Step::Statement(self.text_to(";")?)),
        }
    }

    /// A text in quotes, which ends the step.
    fn quoted(&mut self) -> Result<String> {
        let text = match self.tokens.get(self.at).map(|token| &token.token) {
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => text.clone(),
            Some(Token::DollarQuotedString(text)) => text.value.clone(),
            _ => return Err(self.wrong()),
        };
        self.at += 1;
        self.expect(";")?;
        Ok(text)
    }

    fn choice(&mut self) -> Result<Step> {
        self.expect("if")?;
        let mut arms = vec![(Some(self.text_to("then")?), self.steps()?)];
        while self.take("elsif") || self.take("elseif") {
            arms.push((Some(self.text_to("then")?), self.steps()?));
        }
        if self.take("else") {
            arms.push((None, self.steps()?));
        }
        ["end", "if", ";"].into_iter().try_for_each(|word| self.expect(word))?;
        Ok(Step::If(arms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_within_blocks_have_an_end() {
        let nested = |count: usize| format!("{}NULL;{}", "BEGIN ".repeat(count), " END;".repeat(count));
        assert!(read(&nested(DEPTH_MAX)).is_ok());
        for text in [nested(DEPTH_MAX + 1), nested(100_000), "BEGIN IF true THEN ".repeat(50_000)] {
            assert_eq!(read(&text).err().map(|error| error.sqlstate), Some("54001"));
        }
    }

    #[test]
    fn what_is_no_block_is_refused() {
        for text in [
            "",
            "NULL;",
            "BEGIN",
            "BEGIN NULL",
            "BEGIN NULL; END x",
            "BEGIN IF THEN END IF; END",
            "BEGIN FOR i IN 1..2 LOOP",
        ] {
            assert_eq!(read(text).err().map(|error| error.sqlstate), Some("42601"), "{text}");
        }
        let block = read("BEGIN\n  IF (SELECT CASE WHEN true THEN 1 END) = 1 THEN x; ELSE y ; END IF; END").unwrap();
        let [Step::If(arms)] = &block.steps[..] else { panic!("one condition") };
        assert_eq!(arms[0].0.as_deref(), Some("(SELECT CASE WHEN true THEN 1 END) = 1"));
        assert!(matches!(&arms[1], (None, steps) if matches!(&steps[..], [Step::Statement(text)] if text == "y")));
    }
}
