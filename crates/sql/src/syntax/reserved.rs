//! Words that PostgreSQL takes as no names without quotes, while the parser's library does.
//!
//! The library reads a name wherever it expects one, whatever the word. A reserved word is therefore marked before the statement is
//! parsed: its keyword stays, so that clauses are read as ever, and its text becomes one that no statement can spell. A mark that is
//! found in the tree stands where a name does, and PostgreSQL would have refused the word there:
//!
//! ```text
//! SELECT a FROM order   ->  SELECT a "\0reserved 1:10 FROM" "\0reserved 1:15 order"  ->  a table "\0reserved 1:15 order": refused
//! SELECT a AS order     ->  not marked: any word is a label behind AS
//! SELECT t.order        ->  not marked: any word is a name behind a point
//! SELECT user           ->  an expression, which `expression` reads
//! ```
//!
//! Marks are found by the tree's hash, which goes through every name that it has and costs next to nothing.
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArguments, Ident, ObjectName};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

use crate::error::{Result, SqlError};
use crate::syntax::source::Source;
use crate::syntax::tokens::{following, is_sign, keyword};

/// What a marked word begins with; its line, its column and the word itself follow.
const MARK: &str = "\0reserved ";

/// Reserved words.
const RESERVED: &str = "\
    all analyse analyze and any array as asc asymmetric both case cast check collate column \
    constraint create current_catalog current_date current_role current_time current_timestamp \
    current_user default deferrable desc distinct do else end except false fetch for foreign from \
    grant group having in initially intersect into lateral leading limit localtime localtimestamp \
    not null offset on only or order placing primary references returning select session_user some \
    symmetric table then to trailing true union unique user using variadic when where window with \
";

/// Words that are names of functions and types only, but for operators behind an operand.
const OF_FUNCTIONS: &str = "\
    authorization binary collation concurrently cross current_schema freeze full ilike inner is \
    join left like natural outer right similar tablesample verbose \
";

/// Words that label no column without `AS`.
const NO_BARE_LABELS: [Keyword; 36] = [
    Keyword::ARRAY,
    Keyword::AS,
    Keyword::CHAR,
    Keyword::CHARACTER,
    Keyword::CREATE,
    Keyword::DAY,
    Keyword::EXCEPT,
    Keyword::FETCH,
    Keyword::FILTER,
    Keyword::FOR,
    Keyword::FROM,
    Keyword::GRANT,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::HOUR,
    Keyword::INTERSECT,
    Keyword::INTO,
    Keyword::LIMIT,
    Keyword::MINUTE,
    Keyword::MONTH,
    Keyword::NOTNULL,
    Keyword::OFFSET,
    Keyword::ON,
    Keyword::ORDER,
    Keyword::OVER,
    Keyword::OVERLAPS,
    Keyword::PRECISION,
    Keyword::RETURNING,
    Keyword::SECOND,
    Keyword::TO,
    Keyword::UNION,
    Keyword::VARYING,
    Keyword::WHERE,
    Keyword::WINDOW,
    Keyword::WITH,
    Keyword::YEAR,
];

/// The longest of the words, in bytes.
const LONGEST: usize = 17;

/// Words of that kind that are operators, and are looked at only where no operand ends.
const OPERATORS: &str = "isnull notnull overlaps";

/// What keeps a word from being a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// It is none anywhere.
    Reserved,
    /// It is one of functions and types.
    OfFunctions,
    /// It is an operator, and else as the former.
    Operator,
}

/// The kinds of the words, found by the words in lower case.
static KINDS: LazyLock<HashMap<&'static str, Kind>> = LazyLock::new(|| {
    let lists = [(RESERVED, Kind::Reserved), (OF_FUNCTIONS, Kind::OfFunctions), (OPERATORS, Kind::Operator)];
    lists.into_iter().flat_map(|(words, kind)| words.split_ascii_whitespace().map(move |word| (word, kind))).collect()
});

fn kind_of(word: &Word) -> Option<Kind> {
    if word.quote_style.is_some() || word.value.len() > LONGEST {
        return None;
    }
    KINDS.get(word.value.to_ascii_lowercase().as_str()).copied()
}

/// Whether this word labels a column without `AS`.
pub(crate) fn is_bare_label(word: Keyword) -> bool {
    !NO_BARE_LABELS.contains(&word) && !matches!(word, Keyword::WITHIN | Keyword::WITHOUT)
}

/// Words that are no aliases of tables without `AS`, as they go on with the clause.
const NO_BARE_ALIASES: [Keyword; 32] = [
    Keyword::WITH,
    Keyword::ANALYZE,
    Keyword::SELECT,
    Keyword::WHERE,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::ORDER,
    Keyword::LATERAL,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
    Keyword::UNION,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
    Keyword::ON,
    Keyword::JOIN,
    Keyword::INNER,
    Keyword::CROSS,
    Keyword::FULL,
    Keyword::LEFT,
    Keyword::RIGHT,
    Keyword::NATURAL,
    Keyword::USING,
    Keyword::RETURNING,
    Keyword::OUTER,
    Keyword::SET,
    Keyword::WINDOW,
    Keyword::END,
    Keyword::FOR,
    Keyword::ARRAY,
    Keyword::TABLESAMPLE,
    Keyword::FROM,
];

/// Whether this word may be the alias of a table without `AS`. The library keeps words of other systems back.
pub(crate) fn is_bare_alias(word: Keyword) -> bool {
    !NO_BARE_ALIASES.contains(&word)
}

/// The words that are no names, or none of tables and columns.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    KINDS.keys().copied()
}

/// Whether this one of them labels a column without `AS`, if the library does not know it.
pub(crate) fn is_label(word: &str) -> bool {
    KINDS.get(word).is_some_and(|kind| *kind != Kind::Operator)
}

/// PostgreSQL's letter for what a word, in lower case, may name, and what the letter means.
pub(crate) fn category(word: &str) -> (&'static str, &'static str) {
    match KINDS.get(word) {
        Some(Kind::Reserved) => ("R", "reserved"),
        Some(Kind::OfFunctions | Kind::Operator) => ("T", "reserved (can be function or type name)"),
        None => ("U", "unreserved"),
    }
}

/// Refuses a reserved word where a name comes next.
///
/// # Errors
/// Where one is next.
pub(crate) fn refuse_next(parser: &Parser) -> std::result::Result<(), ParserError> {
    let next = parser.peek_token_ref();
    match &next.token {
        Token::Word(word) => match kind_of(word) {
            Some(Kind::OfFunctions) if parser.peek_nth_token_ref(1).token == Token::LParen => Ok(()),
            Some(_) => parser.expected_ref("a name", next),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Statements that say words where others have names.
fn has_words_for_names(first: Keyword) -> bool {
    matches!(
        first,
        Keyword::SET
            | Keyword::SHOW
            | Keyword::RESET
            | Keyword::DISCARD
            | Keyword::DEALLOCATE
            | Keyword::GRANT
            | Keyword::REVOKE
    )
}

/// Marks the reserved words of a statement, other than those that can't be taken for names.
pub(crate) fn mark(tokens: &mut [TokenWithSpan]) {
    let Some(first) = tokens.iter().position(is_sign) else { return };
    if has_words_for_names(keyword(&tokens[first])) {
        return;
    }
    let mut lists = Lists { around: vec![], is_list: false };
    let mut before = first;
    let mut at = end_of_options(tokens, first);
    while let Some(next) = (at + 1..tokens.len()).find(|at| is_sign(&tokens[*at])) {
        let previous = std::mem::replace(&mut before, next);
        at = next;
        let Some(is_label) = lists.step(&tokens[previous], &tokens[at]) else { continue };
        let behind = following(tokens, at).next().map(|behind| &tokens[behind].token);
        let may_be_name = !is_label && may_be_name(&tokens[previous], &tokens[at], behind);
        let TokenWithSpan { token: Token::Word(word), span } = &mut tokens[at] else { continue };
        if may_be_name {
            let Location { line, column } = span.start;
            word.value = format!("{MARK}{line}:{column} {}", word.value);
        }
    }
}

/// Whether the library may take this word for a name where it can't be one.
fn may_be_name(previous: &TokenWithSpan, token: &TokenWithSpan, behind: Option<&Token>) -> bool {
    let Token::Word(word) = &token.token else { return false };
    let is_before = |tokens: &[Token]| behind.is_some_and(|behind| tokens.contains(behind));
    let names_table = matches!(keyword(previous), Keyword::TABLE | Keyword::INTO);
    let is_value = match word.keyword {
        // `IS JSON ARRAY`, `IS JSON OBJECT WITH UNIQUE KEYS`.
        Keyword::ARRAY if keyword(previous) == Keyword::JSON => true,
        Keyword::WITH => matches!(behind, Some(Token::Word(word)) if word.keyword == Keyword::UNIQUE),
        Keyword::ARRAY => is_before(&[Token::LParen, Token::LBracket]),
        // `DISABLE TRIGGER ALL`, which the library reads as the name of one.
        Keyword::ALL | Keyword::USER => keyword(previous) == Keyword::TRIGGER,
        _ => false,
    };
    match kind_of(word) {
        Some(Kind::Reserved) => names_table || !is_value,
        Some(Kind::OfFunctions) => names_table || !is_before(&[Token::LParen]),
        Some(Kind::Operator) => {
            names_table || keyword(previous) == Keyword::AS || matches!(previous.token, Token::Comma | Token::LParen)
        }
        None => false,
    }
}

/// The first token, or the last of the options in parentheses behind an `EXPLAIN`: their names are words.
fn end_of_options(tokens: &[TokenWithSpan], first: usize) -> usize {
    let opens = following(tokens, first).next().is_some_and(|at| tokens[at].token == Token::LParen);
    match keyword(&tokens[first]) == Keyword::EXPLAIN && opens {
        true => following(tokens, first).find(|at| tokens[*at].token == Token::RParen).unwrap_or(first),
        false => first,
    }
}

/// Where lists of columns with labels are, within parentheses.
struct Lists {
    around: Vec<bool>,
    is_list: bool,
}

impl Lists {
    /// Goes on to a token; whether it may be the label of a column, if it may be a name at all.
    fn step(&mut self, previous: &TokenWithSpan, token: &TokenWithSpan) -> Option<bool> {
        self.begin(previous);
        match &token.token {
            Token::LParen => self.around.push(std::mem::take(&mut self.is_list)),
            Token::RParen => self.is_list = self.around.pop().unwrap_or(false),
            _ => {}
        }
        let Token::Word(_) = &token.token else { return None };
        if previous.token == Token::Period {
            return None;
        }
        let word = keyword(token);
        let is_explicit = keyword(previous) == Keyword::AS;
        let is_bare = ends_expression(previous) && is_bare_label(word);
        let is_label = self.is_list && (is_explicit || is_bare);
        self.is_list &= is_label || !ends_list(previous, word);
        Some(is_label)
    }

    /// A list begins behind these words.
    fn begin(&mut self, previous: &TokenWithSpan) {
        self.is_list |= matches!(keyword(previous), Keyword::SELECT | Keyword::RETURNING);
    }
}

fn ends_expression(token: &TokenWithSpan) -> bool {
    let is_begin = matches!(keyword(token), Keyword::SELECT | Keyword::RETURNING | Keyword::DISTINCT | Keyword::ALL);
    let is_end = matches!(
        token.token,
        Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::RParen
            | Token::RBracket
            | Token::Placeholder(_)
    );
    is_end && !is_begin
}

/// Whether a list of columns ends before this word: `IS DISTINCT FROM` does not end it.
fn ends_list(previous: &TokenWithSpan, word: Keyword) -> bool {
    match word {
        Keyword::FROM => keyword(previous) != Keyword::DISTINCT,
        Keyword::INTO
        | Keyword::WHERE
        | Keyword::GROUP
        | Keyword::HAVING
        | Keyword::WINDOW
        | Keyword::ORDER
        | Keyword::LIMIT
        | Keyword::OFFSET
        | Keyword::FETCH
        | Keyword::FOR
        | Keyword::UNION
        | Keyword::EXCEPT
        | Keyword::INTERSECT => true,
        _ => false,
    }
}

/// The word that was marked.
fn unmarked(value: &str) -> Option<&str> {
    value.strip_prefix(MARK).and_then(|rest| rest.split_once(' ')).map(|(_, word)| word)
}

/// Words that are values, and that the library does not know.
const UNKNOWN_VALUES: [&str; 2] = ["current_role", "current_schema"];

/// Whether a parenthesis or a point follows the next word.
fn is_called_or_qualified(parser: &Parser) -> bool {
    matches!(parser.peek_nth_token_ref(1).token, Token::LParen | Token::Period)
}

/// The next token as an expression, if it is a marked word that is one.
///
/// # Errors
/// Where its arguments are none.
pub(crate) fn expression(parser: &mut Parser) -> std::result::Result<Option<Expr>, ParserError> {
    let TokenWithSpan { token: Token::Word(word), span } = parser.peek_token_ref() else { return Ok(None) };
    let is_name = |name: &&str| word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name);
    let value = match unmarked(&word.value) {
        Some(value) => value,
        // Behind an operator it stands where a label might, and the library takes it for a column.
        None if UNKNOWN_VALUES.iter().any(is_name) && !is_called_or_qualified(parser) => &word.value,
        None => return Ok(None),
    };
    let ident = Ident { value: value.to_owned(), quote_style: None, span: *span };
    let function = |ident: Ident| {
        Expr::Function(Function {
            name: ObjectName::from(vec![ident]),
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::None,
            null_treatment: None,
            filter: None,
            over: None,
            within_group: vec![],
        })
    };
    let read = match word.keyword {
        Keyword::CURRENT_CATALOG | Keyword::CURRENT_USER | Keyword::SESSION_USER | Keyword::USER => function(ident),
        Keyword::CURRENT_TIMESTAMP
        | Keyword::CURRENT_TIME
        | Keyword::CURRENT_DATE
        | Keyword::LOCALTIME
        | Keyword::LOCALTIMESTAMP => {
            parser.advance_token();
            return parser.parse_time_functions(ObjectName::from(vec![ident])).map(Some);
        }
        // Values of `INSERT` and of options, which are no expressions elsewhere.
        Keyword::DEFAULT | Keyword::ON | Keyword::COLUMN | Keyword::ARRAY => Expr::Identifier(ident),
        _ if UNKNOWN_VALUES.iter().any(|name| value.eq_ignore_ascii_case(name)) => function(ident),
        _ => return Ok(None),
    };
    parser.advance_token();
    Ok(Some(read))
}

/// A text of the library with its words as they were.
pub(crate) fn without_marks(text: &str) -> String {
    let mut parts = text.split(MARK);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(' ').map_or(part, |(_, word)| word))
}

/// Refuses the first reserved word that the tree has as a name.
///
/// # Errors
/// Where there is one.
pub(crate) fn refuse(tree: &impl Hash, source: &Source) -> Result<()> {
    let mut search = Search { first: None };
    tree.hash(&mut search);
    match search.first {
        None => Ok(()),
        Some((place, word)) => {
            let message = format!("syntax error at or near \"{word}\"");
            let detail = format!("\"{word}\" is a reserved word; as a name it needs quotes.");
            Err(SqlError::syntax(message).at(source.offset(place)).detail(detail))
        }
    }
}

/// Collects the first mark of what is hashed.
struct Search {
    first: Option<(Location, String)>,
}

impl Search {
    fn found(&mut self, mark: &str) -> Option<()> {
        let (place, word) = mark.split_once(' ')?;
        let (line, column) = place.split_once(':')?;
        let place = Location { line: line.parse().ok()?, column: column.parse().ok()? };
        let is_first = self.first.as_ref().is_none_or(|(first, _)| place < *first);
        if is_first {
            self.first = Some((place, word.to_owned()));
        }
        Some(())
    }
}

impl Hasher for Search {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(mark) = bytes.strip_prefix(MARK.as_bytes()).and_then(|mark| std::str::from_utf8(mark).ok()) {
            self.found(mark);
        }
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_longer_than_the_longest() {
        assert_eq!(KINDS.keys().map(|word| word.len()).max(), Some(LONGEST));
        assert_eq!(KINDS.len(), 77 + 20 + 3);
    }
}
