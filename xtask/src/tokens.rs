//! Rust sources as tokens with line numbers.
//!
//! Rules look at tokens and not at text: a forbidden word inside a string is no offence, and a long
//! function inside a macro call is one.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The tokens of a whole file, or the line and the reason why it is no Rust.
pub fn parse(text: &str) -> Result<TokenStream, (usize, String)> {
    text.parse::<TokenStream>().map_err(|error| (error.span().start().line.max(1), error.to_string()))
}

/// Shows `see` every position of every token list of the file: the list and the index in it.
pub fn visit(tokens: TokenStream, see: &mut dyn FnMut(&[TokenTree], usize)) {
    let list: Vec<TokenTree> = tokens.into_iter().collect();
    for index in 0..list.len() {
        see(&list, index);
        if let TokenTree::Group(group) = &list[index] {
            visit(group.stream(), see);
        }
    }
}

pub fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == word)
}

pub fn is_sign(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

pub fn is_braced(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace)
}

pub fn first_line(token: &TokenTree) -> usize {
    token.span().start().line
}

pub fn last_line(token: &TokenTree) -> usize {
    token.span().end().line
}

/// Whether the file says `#![forbid(unsafe_code)]`.
pub fn forbids_unsafe(tokens: TokenStream) -> bool {
    let list: Vec<TokenTree> = tokens.into_iter().collect();
    list.windows(3).any(|window| {
        let [hash, bang, TokenTree::Group(attribute)] = window else {
            return false;
        };
        if !is_sign(Some(hash), '#') || !is_sign(Some(bang), '!') {
            return false;
        }
        let parts: Vec<TokenTree> = attribute.stream().into_iter().collect();
        let Some(TokenTree::Group(lints)) = parts.get(1) else {
            return false;
        };
        is_word(parts.first(), "forbid") && lints.stream().into_iter().any(|lint| is_word(Some(&lint), "unsafe_code"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbids(text: &str) -> bool {
        forbids_unsafe(parse(text).expect("Rust"))
    }

    #[test]
    fn knows_the_forbidding_attribute() {
        assert!(forbids("//! Header.\n#![forbid(unsafe_code)]\nfn a() {}"));
        assert!(forbids("#![forbid(missing_docs, unsafe_code)]"));
    }

    #[test]
    fn is_not_content_with_less() {
        assert!(!forbids("#![deny(unsafe_code)]"));
        assert!(!forbids("// #![forbid(unsafe_code)]"));
        assert!(!forbids("const A: &str = \"#![forbid(unsafe_code)]\";"));
        assert!(!forbids("#[forbid(unsafe_code)] mod inner {}"));
    }

    #[test]
    fn a_broken_file_names_its_line() {
        let (line, _) = parse("fn a() {}\nfn b( {}\n").expect_err("no Rust");
        assert!(line >= 1);
    }
}
