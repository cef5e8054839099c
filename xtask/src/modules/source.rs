//! One source file as the module check sees it: what it declares, what it defines, what it names.
//!
//! Whatever is there for tests and model checkers only (`cfg(test)`, `cfg(loom)`, `cfg(shuttle)`) is cut out first, at any
//! depth.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::tokens::{is_sign, is_word};

/// A path as it is written: `crate`, `names`, `fold`.
pub type Segments = Vec<String>;

/// A name that a `use` brings into the file; `*` brings all.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    pub path: Segments,
    pub name: String,
    /// Whether others may import the name from here.
    pub is_public: bool,
}

/// The contents of one file.
#[derive(Debug, Default)]
pub struct Source {
    /// Child modules in files of their own.
    pub children: BTreeSet<String>,
    /// Names that it defines, modules within the file included.
    pub definitions: BTreeSet<String>,
    pub imports: Vec<Import>,
    /// Paths of two segments and more in its code.
    pub paths: BTreeSet<Segments>,
    /// Single words of its code outside of `use`, to tell a re-export from an import.
    pub words: BTreeSet<String>,
    /// Child modules that exist for tests only.
    pub test_children: BTreeSet<String>,
}

/// The module that a file is, from its path: `crates/x/src/a/b.rs` and `crates/x/src/a/b/mod.rs` are `[a, b]`.
pub fn module_path(path: &str) -> Segments {
    let inner = path.split_once("src/").map_or(path, |(_, inner)| inner);
    let mut segments: Segments = inner.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    let is_folder_or_root = |name: &String| name == "mod" || (segments.len() == 1 && (name == "lib" || name == "main"));
    if segments.last().is_some_and(is_folder_or_root) {
        segments.pop();
    }
    segments
}

/// Reads a file.
pub fn read(tokens: TokenStream) -> Source {
    let mut source = Source::default();
    let kept = without_tests(tokens, &mut source.test_children);
    collect(&kept, &mut source);
    source
}

/// The tokens without the items that only tests and model checkers see.
pub fn product(tokens: TokenStream) -> TokenStream {
    without_tests(tokens, &mut BTreeSet::new()).into_iter().collect()
}

/// The tokens without the items that only tests and model checkers see; names of their modules go to `test_children`.
fn without_tests(tokens: TokenStream, test_children: &mut BTreeSet<String>) -> Vec<TokenTree> {
    let list: Vec<TokenTree> = tokens.into_iter().collect();
    let mut kept = Vec::with_capacity(list.len());
    let mut at = 0;
    while at < list.len() {
        if is_sign(list.get(at), '#') && list.get(at + 1).is_some_and(is_test_attribute) {
            let end = end_of_item(&list, at + 2);
            note_modules(&list[at..end], test_children);
            at = end;
            continue;
        }
        kept.push(match &list[at] {
            TokenTree::Group(group) => {
                let inner = without_tests(group.stream(), test_children);
                let mut cleaned = Group::new(group.delimiter(), inner.into_iter().collect());
                cleaned.set_span(group.span());
                TokenTree::Group(cleaned)
            }
            other => other.clone(),
        });
        at += 1;
    }
    kept
}

/// Whether an attribute keeps its item for tests or model checkers. A name within `not(...)` does not count.
fn is_test_attribute(token: &TokenTree) -> bool {
    let TokenTree::Group(attribute) = token else { return false };
    let list: Vec<TokenTree> = attribute.stream().into_iter().collect();
    is_word(list.first(), "test") || (is_word(list.first(), "cfg") && names_tests(attribute.stream()))
}

fn names_tests(condition: TokenStream) -> bool {
    let list: Vec<TokenTree> = condition.into_iter().collect();
    list.iter().enumerate().any(|(at, token)| match token {
        TokenTree::Ident(word) => ["test", "loom", "shuttle"].iter().any(|name| word == name),
        TokenTree::Group(group) => {
            !is_word(at.checked_sub(1).and_then(|before| list.get(before)), "not") && names_tests(group.stream())
        }
        _ => false,
    })
}

/// Where the item, field or statement that starts at `at` ends.
fn end_of_item(list: &[TokenTree], mut at: usize) -> usize {
    while is_sign(list.get(at), '#') {
        at += 2;
    }
    let words = ["fn", "struct", "enum", "union", "trait", "impl", "mod", "unsafe", "async", "extern", "macro_rules"];
    let lines = ["use", "const", "static", "type", "let"];
    let start: Vec<String> = list[at..].iter().take(4).map(ToString::to_string).collect();
    let is_block = start.iter().any(|word| words.contains(&word.as_str()));
    let is_line = !is_block && start.iter().any(|word| lines.contains(&word.as_str()));
    while at < list.len() {
        let ends = is_sign(list.get(at), ';')
            || (!is_line && matches!(&list[at], TokenTree::Group(group) if group.delimiter() == Delimiter::Brace))
            || (!is_line && !is_block && is_sign(list.get(at), ','));
        at += 1;
        if ends {
            break;
        }
    }
    at
}

fn note_modules(item: &[TokenTree], test_children: &mut BTreeSet<String>) {
    for pair in item.windows(2) {
        if is_word(pair.first(), "mod")
            && let TokenTree::Ident(name) = &pair[1]
        {
            test_children.insert(name.to_string());
        }
    }
}

fn collect(list: &[TokenTree], source: &mut Source) {
    let mut at = 0;
    while at < list.len() {
        match &list[at] {
            TokenTree::Ident(word) if word == "use" && !is_word(list.get(at + 1), "for") => {
                let end = at + list[at..].iter().position(|token| is_sign(Some(token), ';')).unwrap_or(list.len() - at);
                let read_before = source.imports.len();
                use_tree(&list[at + 1..end], &mut Vec::new(), &mut source.imports);
                let is_public = is_public(&list[..at]);
                source.imports[read_before..].iter_mut().for_each(|import| import.is_public = is_public);
                at = end;
            }
            TokenTree::Ident(word) => {
                let end = path_end(list, at);
                let segments: Segments = list[at..end].iter().filter_map(ident).collect();
                define(&word.to_string(), list, at, source);
                if segments.len() > 1 {
                    source.paths.insert(segments);
                } else {
                    source.words.insert(word.to_string());
                }
                at = end.max(at + 1);
            }
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                collect(&inner, source);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Whether what stands before an item ends with `pub` or `pub(...)`.
fn is_public(before: &[TokenTree]) -> bool {
    match before {
        [.., word, TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
            is_word(Some(word), "pub")
        }
        [.., word] => is_word(Some(word), "pub"),
        [] => false,
    }
}

/// Notes what the keyword at `at` defines.
fn define(keyword: &str, list: &[TokenTree], at: usize, source: &mut Source) {
    let name_at = if keyword == "macro_rules" { at + 2 } else { at + 1 };
    let Some(name) = list.get(name_at).and_then(ident) else { return };
    match keyword {
        "mod" if is_sign(list.get(at + 2), ';') => {
            source.children.insert(name);
        }
        "mod" | "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" | "macro_rules" => {
            source.definitions.insert(name);
        }
        _ => {}
    }
}

fn ident(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    }
}

/// The end of the path of words and `::` that starts at `at`.
fn path_end(list: &[TokenTree], at: usize) -> usize {
    let mut end = at + 1;
    while is_sign(list.get(end), ':')
        && is_sign(list.get(end + 1), ':')
        && matches!(list.get(end + 2), Some(TokenTree::Ident(_)))
    {
        end += 3;
    }
    end
}

/// Reads a tree of imports: `a::{b, c as d, e::*}`.
fn use_tree(list: &[TokenTree], prefix: &mut Segments, imports: &mut Vec<Import>) {
    let depth = prefix.len();
    let mut at = 0;
    while at < list.len() {
        match &list[at] {
            TokenTree::Ident(word) if word == "as" => {
                if let (Some(name), Some(import)) = (list.get(at + 1).and_then(ident), imports.last_mut()) {
                    import.name = name;
                }
                at += 2;
                continue;
            }
            TokenTree::Ident(word) => {
                prefix.push(word.to_string());
                if !is_sign(list.get(at + 1), ':') {
                    push(prefix, imports);
                }
            }
            TokenTree::Punct(sign) if sign.as_char() == '*' => {
                imports.push(Import { path: prefix.clone(), name: "*".to_owned(), is_public: false });
            }
            TokenTree::Punct(sign) if sign.as_char() == ',' => prefix.truncate(depth),
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                use_tree(&inner, prefix, imports);
            }
            _ => {}
        }
        at += 1;
    }
    prefix.truncate(depth);
}

fn push(prefix: &Segments, imports: &mut Vec<Import>) {
    let mut path = prefix.clone();
    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
        path.pop();
    }
    let name = path.last().cloned().unwrap_or_default();
    imports.push(Import { path, name, is_public: false });
}

/// The imports of a file by the name that they bring.
pub fn by_name(source: &Source) -> BTreeMap<&str, &Segments> {
    let named = source.imports.iter().filter(|import| import.name != "*");
    named.map(|import| (import.name.as_str(), &import.path)).collect()
}
