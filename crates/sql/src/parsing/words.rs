//! Words of statements of our own, which the library's parser knows no keywords for, ahead of its place.
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// What parsers of the library give.
pub(super) type Read<T> = std::result::Result<T, ParserError>;

/// Whether the token so many places ahead is this word, without quotes.
pub(super) fn is_word(parser: &Parser, at: usize, text: &str) -> bool {
    matches!(parser.peek_nth_token(at).token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

/// Goes past these words, if they come next.
pub(super) fn take_words(parser: &mut Parser, words: &[&str]) -> bool {
    let is_it = words.iter().enumerate().all(|(at, word)| is_word(parser, at, word));
    if is_it {
        words.iter().for_each(|_| parser.advance_token());
    }
    is_it
}
