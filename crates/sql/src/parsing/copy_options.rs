//! The syntax of `COPY`, which PostgreSQL extends faster than the parser's library follows.
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::parsing::copy_forced::{self, ForcedColumns};
use crate::parsing::words;
use crate::syntax::source::Source;

/// One `COPY`.
#[derive(Clone)]
pub(crate) struct CopyStatement {
    pub(crate) subject: Subject,
    pub(crate) is_from: bool,
    /// The file; `None` for standard input or output.
    pub(crate) path: Option<String>,
    pub(crate) path_position: Option<usize>,
    pub(crate) options: CopyOptions,
}

/// The table or query that is copied.
#[derive(Clone)]
pub(crate) enum Subject {
    Table { name: ObjectName, columns: Vec<Ident> },
    Query(Box<Query>),
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// PostgreSQL's own, with tabs and backslashes.
    Text,
    Csv,
    /// PostgreSQL's own, with values as the wire has them.
    Binary,
    Parquet,
}

/// The first line of a CSV file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Header {
    #[default]
    None,
    /// The header is skipped, or written.
    Present,
    /// The header must name the columns.
    Match,
}

/// The options of a `COPY`, as far as they were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopyOptions {
    pub(crate) format: Option<Format>,
    pub(crate) header: Header,
    pub(crate) delimiter: Option<u8>,
    pub(crate) null: Option<String>,
    pub(crate) quote: Option<u8>,
    pub(crate) escape: Option<u8>,
    pub(crate) ignores_errors: bool,
    pub(crate) reject_limit: Option<u64>,
    /// What is said of single columns.
    pub(crate) forced: ForcedColumns,
    /// An option that only CSV has.
    pub(crate) needs_csv: Option<&'static str>,
}

impl CopyOptions {
    /// The text that stands for NULL.
    pub(crate) fn null(&self, format: Format) -> &str {
        self.null.as_deref().unwrap_or(if format == Format::Text { "\\N" } else { "" })
    }
}

impl CopyStatement {
    /// The format that is given, or the one that the file's name says.
    pub(crate) fn format(&self) -> Result<Format> {
        let name = self.path.as_deref().unwrap_or_default().to_ascii_lowercase();
        let format = match self.options.format {
            Some(format) => format,
            None if self.path.is_none() => Format::Text,
            None if name.ends_with(".parquet") => Format::Parquet,
            None if name.ends_with(".csv") || self.options.needs_csv.is_some() => Format::Csv,
            None => {
                let message = "the file's name does not tell its format";
                return Err(SqlError::new("22023", message).hint("Add (FORMAT csv) or (FORMAT parquet)."));
            }
        };
        self.options.forced.check(format == Format::Csv, self.is_from)?;
        match self.options.needs_csv {
            Some(option) if format == Format::Binary => Err(not_in_binary(option)),
            Some("DELIMITER" | "NULL" | "HEADER") if format == Format::Text => Ok(format),
            Some(option) if format != Format::Csv => {
                Err(SqlError::new("0A000", format!("COPY {option} requires CSV mode")))
            }
            _ => Ok(format),
        }
    }
}

/// The error for an option that says how texts are written.
fn not_in_binary(option: &str) -> SqlError {
    match option {
        "ON_ERROR" => SqlError::syntax("only ON_ERROR STOP is allowed in BINARY mode"),
        "HEADER" => SqlError::new("0A000", "cannot specify HEADER in BINARY mode"),
        "DELIMITER" | "NULL" => SqlError::syntax(format!("cannot specify {option} in BINARY mode")),
        other => SqlError::new("0A000", format!("COPY {} available only in CSV mode", other.to_lowercase())),
    }
}

/// Parses a `COPY`; `None`, and nothing is consumed, where it is another statement.
pub(crate) fn parse_copy(parser: &mut Parser, source: &Source) -> Result<Option<CopyStatement>> {
    let wrong = |error| source.parser_error(error);
    if !parser.parse_keyword(Keyword::COPY) {
        return Ok(None);
    }
    let is_binary = parser.parse_keyword(Keyword::BINARY);
    let subject = if !is_binary && parser.consume_token(&Token::LParen) {
        let query = words::query(parser, source)?;
        parser.expect_token(&Token::RParen).map_err(wrong)?;
        Subject::Query(query)
    } else {
        let name = words::object_name(parser).map_err(wrong)?;
        let columns = words::columns(parser).map_err(wrong)?;
        Subject::Table { name, columns }
    };
    let direction = parser.expect_one_of_keywords(&[Keyword::FROM, Keyword::TO]).map_err(wrong)?;
    let is_from = direction == Keyword::FROM;
    if is_from && matches!(subject, Subject::Query(_)) {
        return Err(SqlError::syntax("syntax error at or near \"FROM\"").at(source.find_word("from")));
    }
    let token = parser.next_token();
    let path_position = source.start(token.span);
    let path = match &token.token {
        Token::SingleQuotedString(path) | Token::EscapedStringLiteral(path) => Some(path.clone()),
        Token::Word(word) if matches!(word.keyword, Keyword::STDIN | Keyword::STDOUT) => None,
        Token::Word(word) if word.keyword == Keyword::PROGRAM => {
            return Err(SqlError::unsupported("COPY with a program").at(path_position));
        }
        _ => return Err(unexpected(&token, source)),
    };
    let format = is_binary.then_some(Format::Binary);
    let mut reader = Reader { parser, source, options: CopyOptions { format, ..CopyOptions::default() } };
    reader.read()?;
    let options = reader.options;
    check(&options, is_from)?;
    Ok(Some(CopyStatement { subject, is_from, path, path_position, options }))
}

fn unexpected(token: &TokenWithSpan, source: &Source) -> SqlError {
    let message = match &token.token {
        Token::EOF => "syntax error at end of input".to_owned(),
        found => format!("syntax error at or near \"{found}\""),
    };
    SqlError::syntax(message).at(source.start(token.span).or(Some(source.text.len())))
}

fn check(options: &CopyOptions, is_from: bool) -> Result<()> {
    let invalid = |message: &str| Err(SqlError::new("22023", message));
    let delimiter = options.delimiter.unwrap_or(b',');
    let quote = options.quote.unwrap_or(b'"');
    let null = options.null.as_deref().unwrap_or_default();
    match () {
        () if matches!(delimiter, b'\n' | b'\r') => invalid("COPY delimiter cannot be newline or carriage return"),
        () if delimiter == quote => invalid("COPY delimiter and quote must be different"),
        () if null.contains(['\n', '\r']) => invalid("COPY null representation cannot use newline or carriage return"),
        () if null.bytes().any(|byte| byte == delimiter) => {
            invalid("COPY delimiter character must not appear in the NULL specification")
        }
        () if null.bytes().any(|byte| byte == quote) => {
            invalid("CSV quote character must not appear in the NULL specification")
        }
        () if !is_from && options.ignores_errors => invalid("COPY ON_ERROR cannot be used with COPY TO"),
        () if !is_from && options.header == Header::Match => invalid("cannot use \"match\" with HEADER in COPY TO"),
        () if options.reject_limit.is_some() && !options.ignores_errors => {
            invalid("COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE")
        }
        () => Ok(()),
    }
}

/// Reads what follows the file.
struct Reader<'a, 'p> {
    parser: &'a mut Parser<'p>,
    source: &'a Source<'a>,
    options: CopyOptions,
}

impl Reader<'_, '_> {
    fn read(&mut self) -> Result<()> {
        let _ = self.parser.parse_keyword(Keyword::WITH);
        if self.parser.consume_token(&Token::LParen) {
            loop {
                self.option()?;
                if !self.parser.consume_token(&Token::Comma) {
                    break;
                }
            }
            self.parser.expect_token(&Token::RParen).map_err(|error| self.source.parser_error(error))?;
        } else {
            while self.legacy_option()? {}
        }
        let next = self.parser.peek_token();
        match next.token {
            Token::Word(word) if word.keyword == Keyword::WHERE => {
                Err(SqlError::unsupported("WHERE of COPY").at(self.source.start(next.span)))
            }
            _ => Ok(()),
        }
    }

    /// `name [value]` within parentheses.
    fn option(&mut self) -> Result<()> {
        let token = self.parser.next_token();
        let at = self.source.start(token.span);
        let Token::Word(word) = &token.token else { return Err(unexpected(&token, self.source)) };
        let name = word.value.to_ascii_lowercase();
        if let Some(forced) = self.options.forced.named(&name) {
            *forced = copy_forced::within_parentheses(self.parser, self.source)?;
            return Ok(());
        }
        let value = match self.parser.peek_token().token {
            Token::Comma | Token::RParen | Token::EOF => None,
            _ => Some(self.value()?),
        };
        self.set(&name, value).map_err(|error| error.at(at))
    }

    fn value(&mut self) -> Result<String> {
        let token = self.parser.next_token();
        match token.token {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) | Token::Number(text, _) => Ok(text),
            Token::Word(word) => Ok(word.value),
            Token::LParen | Token::Mul => {
                Err(SqlError::unsupported("an option with a list of columns").at(self.source.start(token.span)))
            }
            _ => Err(unexpected(&token, self.source)),
        }
    }

    /// An option of the old syntax without parentheses; false at the end.
    fn legacy_option(&mut self) -> Result<bool> {
        let token = self.parser.peek_token();
        let Token::Word(word) = &token.token else { return Ok(false) };
        let name = word.value.to_ascii_lowercase();
        let value = match name.as_str() {
            "csv" | "parquet" | "binary" | "header" => None,
            "delimiter" | "null" | "quote" | "escape" | "encoding" => Some(()),
            "force" => {
                self.parser.next_token();
                let (name, columns) = copy_forced::legacy(self.parser, self.source)?;
                if let Some(forced) = self.options.forced.named(name) {
                    *forced = columns;
                }
                return Ok(true);
            }
            _ => return Ok(false),
        };
        self.parser.next_token();
        let value = match value {
            None => None,
            Some(()) => {
                let _ = self.parser.parse_keyword(Keyword::AS);
                Some(self.value()?)
            }
        };
        let set = match name.as_str() {
            "csv" | "parquet" | "binary" => self.set("format", Some(name)),
            _ => self.set(&name, value),
        };
        set.map_err(|error| error.at(self.source.start(token.span)))?;
        Ok(true)
    }

    fn set(&mut self, name: &str, value: Option<String>) -> Result<()> {
        let options = &mut self.options;
        match name {
            "format" => options.format = Some(format(&required(name, value)?)?),
            "header" => {
                options.header = header(value.as_deref())?;
                options.needs_csv = Some("HEADER");
            }
            "delimiter" => {
                options.delimiter = Some(one_byte(name, value)?);
                options.needs_csv = Some("DELIMITER");
            }
            "quote" => {
                options.quote = Some(one_byte(name, value)?);
                options.needs_csv = Some("QUOTE");
            }
            "escape" => {
                options.escape = Some(one_byte(name, value)?);
                options.needs_csv = Some("ESCAPE");
            }
            "null" => {
                options.null = Some(required(name, value)?);
                options.needs_csv = Some("NULL");
            }
            "encoding" => match required(name, value)?.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
                "utf8" => {}
                other => return Err(SqlError::unsupported(format!("encoding {other}"))),
            },
            "on_error" => {
                options.ignores_errors = match required(name, value)?.to_ascii_lowercase().as_str() {
                    "stop" => false,
                    "ignore" => true,
                    other => return Err(invalid(format!("COPY ON_ERROR \"{other}\" not recognized"))),
                };
                options.needs_csv = options.needs_csv.or(options.ignores_errors.then_some("ON_ERROR"));
            }
            "reject_limit" => match required(name, value)?.parse() {
                Ok(limit) if limit > 0 => options.reject_limit = Some(limit),
                _ => return Err(invalid("REJECT_LIMIT must be greater than zero".to_owned())),
            },
            // A hint for how rows are stored, which is no matter here.
            "freeze" => {
                let _ = header(value.as_deref())?;
            }
            "default" | "log_verbosity" | "oids" => {
                return Err(SqlError::unsupported(format!("COPY option {}", name.to_uppercase())));
            }
            other => return Err(SqlError::syntax(format!("option \"{other}\" not recognized"))),
        }
        Ok(())
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new("22023", message)
}

fn required(name: &str, value: Option<String>) -> Result<String> {
    value.ok_or_else(|| SqlError::syntax(format!("{name} requires a parameter")))
}

fn one_byte(name: &str, value: Option<String>) -> Result<u8> {
    match required(name, value)?.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(invalid(format!("COPY {name} must be a single one-byte character"))),
    }
}

fn format(name: &str) -> Result<Format> {
    match name.to_ascii_lowercase().as_str() {
        "text" => Ok(Format::Text),
        "csv" => Ok(Format::Csv),
        "parquet" => Ok(Format::Parquet),
        "binary" => Ok(Format::Binary),
        _ => Err(invalid(format!("COPY format \"{name}\" not recognized"))),
    }
}

fn header(value: Option<&str>) -> Result<Header> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "on" | "1") => Ok(Header::Present),
        Some("false" | "off" | "0") => Ok(Header::None),
        Some("match") => Ok(Header::Match),
        Some(_) => Err(SqlError::syntax("header requires a Boolean value or \"match\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsing::parse::parse;
    use crate::parsing::{OwnStatement, ParsedStatement};

    fn copy(text: &str) -> Result<CopyStatement> {
        match parse(text)? {
            ParsedStatement::Own(OwnStatement::Copy(copy)) => Ok(copy),
            _ => panic!("{text} is no COPY"),
        }
    }

    #[test]
    fn both_syntaxes_are_read() {
        let new = copy("COPY t (a, b) FROM 'x.txt' WITH (FORMAT 'csv', HEADER, DELIMITER '|', NULL 'N')").unwrap();
        assert!(new.is_from && matches!(&new.subject, Subject::Table { columns, .. } if columns.len() == 2));
        assert_eq!((new.format().unwrap(), new.options.header), (Format::Csv, Header::Present));
        assert_eq!((new.options.delimiter, new.options.null.as_deref()), (Some(b'|'), Some("N")));
        let old = copy("copy t from 'x' csv header delimiter as ';' null 'x'").unwrap();
        assert_eq!((old.options.delimiter, old.options.header), (Some(b';'), Header::Present));
        let query = copy("COPY (SELECT 1) TO 'x.parquet'").unwrap();
        assert_eq!((query.format().unwrap(), query.is_from), (Format::Parquet, false));
        let input = copy("copy t from stdin with (freeze on)").unwrap();
        assert_eq!(
            (input.format().unwrap(), input.path.is_none(), input.options.null(Format::Text)),
            (Format::Text, true, "\\N")
        );
        let lenient = copy("COPY t FROM 'x.csv' (ON_ERROR ignore, REJECT_LIMIT 3)").unwrap();
        assert_eq!((lenient.options.ignores_errors, lenient.options.reject_limit), (true, Some(3)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let state = |text: &str| copy(text).and_then(|copy| copy.format()).err().map(|error| error.sqlstate);
        assert_eq!(state("COPY t FROM 'x'"), Some("22023"));
        assert_eq!(state("COPY t FROM 'x' (FORMAT binary)"), None);
        assert_eq!(state("COPY t FROM 'x' (FORMAT binary, DELIMITER ',')"), Some("42601"));
        assert_eq!(state("COPY t FROM 'x' (FORMAT binary, HEADER)"), Some("0A000"));
        assert_eq!(state("COPY BINARY t FROM 'x' QUOTE '!'"), Some("0A000"));
        assert_eq!(state("COPY t TO 'x' (FORMAT text)"), None);
        assert_eq!(state("COPY t FROM 'x' (FORMAT xml)"), Some("22023"));
        assert_eq!(state("COPY t FROM 'x' (FORMAT parquet, DELIMITER ',')"), Some("0A000"));
        assert_eq!(state("COPY t FROM 'x.csv' (COLOUR 'red')"), Some("42601"));
        assert_eq!(state("COPY t FROM 'x.csv' (DELIMITER 'ab')"), Some("22023"));
        assert_eq!(state("COPY t FROM 'x.csv' (REJECT_LIMIT 1)"), Some("22023"));
        assert_eq!(state("COPY t FROM PROGRAM 'ls'"), Some("0A000"));
        assert_eq!(state("COPY (SELECT 1) FROM 'x.csv'"), Some("42601"));
    }
}
