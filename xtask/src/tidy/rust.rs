//! Rules for Rust: lengths, the header, leftovers, a reason at every unsafe site.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenTree};

use crate::files::TextFile;
use crate::offence::Offence;
use crate::tokens::{self, first_line, is_braced, is_sign, is_word, last_line};

/// Lines of a file at most.
const FILE_LINES_MAX: usize = 600;

/// Lines of a function at most, from its `fn` to its closing brace; those of tests too.
const FUNCTION_LINES_MAX: usize = 70;

/// Macros that stand for work not done.
const LEFTOVER_MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// The beginnings of a comment line that is code which was switched off.
const CODE_STARTS: [&str; 12] =
    ["let ", "use ", "pub ", "fn ", "impl ", "mod ", "return ", "struct ", "enum ", "match ", "if ", "self."];

const SAFETY: &str = "SAFETY:";

/// The findings of the rules in one file.
pub struct Findings {
    pub offences: Vec<Offence>,
    pub function_count: usize,
    pub unsafe_count: usize,
    /// The lines of string literals that go on in the next line.
    pub literal_lines: BTreeSet<usize>,
}

pub fn check(file: &TextFile) -> Findings {
    let mut seen =
        Findings { offences: Vec::new(), function_count: 0, unsafe_count: 0, literal_lines: BTreeSet::new() };
    let lines: Vec<&str> = file.text.lines().collect();
    check_file(file, &lines, &mut seen);
    match tokens::parse(&file.text) {
        Ok(stream) => {
            let source = Source { file, lines: &lines };
            tokens::visit(stream, &mut |list, index| source.check_token(list, index, &mut seen));
        }
        Err((line, reason)) => {
            let what = format!("not readable as Rust: {reason}");
            seen.offences.push(Offence::new(&file.path, line, what, "make it compile first"));
        }
    }
    check_dead_code(file, &lines, &mut seen);
    seen
}

fn check_file(file: &TextFile, lines: &[&str], seen: &mut Findings) {
    if lines.len() > FILE_LINES_MAX {
        let what = format!("{} lines, more than {FILE_LINES_MAX} in a file", lines.len());
        let remedy = "move one of its subjects to a module of its own";
        seen.offences.push(Offence::new(&file.path, FILE_LINES_MAX + 1, what, remedy));
    }
    let first = lines.iter().find(|line| !line.trim().is_empty() && !line.starts_with("#!/"));
    if !first.is_some_and(|line| line.starts_with("//!")) {
        let remedy = "begin the file with `//!`: what the module is for and what it promises";
        seen.offences.push(Offence::new(&file.path, 1, "no header", remedy));
    }
}

struct Source<'a> {
    file: &'a TextFile,
    lines: &'a [&'a str],
}

impl Source<'_> {
    fn check_token(&self, list: &[TokenTree], index: usize, seen: &mut Findings) {
        let token = &list[index];
        match token {
            TokenTree::Ident(word) if word == "fn" => self.check_function(list, index, seen),
            TokenTree::Ident(word) if word == "unsafe" => self.check_unsafe(list, index, seen),
            TokenTree::Ident(word) => {
                let is_call =
                    is_sign(list.get(index + 1), '!') && matches!(list.get(index + 2), Some(TokenTree::Group(_)));
                if is_call && LEFTOVER_MACROS.iter().any(|name| word == name) {
                    seen.offences.push(self.offence(token, format!("leftover `{word}!`"), "finish it or take it out"));
                }
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                let is_attribute = index > 0 && is_sign(list.get(index - 1), '#');
                if is_attribute && is_word(group.stream().into_iter().next().as_ref(), "ignore") {
                    let remedy = "make the test pass or remove it; a slow one gets small under test";
                    seen.offences.push(self.offence(token, "test switched off by `#[ignore]`", remedy));
                }
            }
            TokenTree::Literal(_) => seen.literal_lines.extend(first_line(token)..last_line(token)),
            TokenTree::Group(_) | TokenTree::Punct(_) => {}
        }
    }

    /// A function is `fn`, a name (in a macro perhaps `$name`), and the next braces before a semicolon.
    fn check_function(&self, list: &[TokenTree], index: usize, seen: &mut Findings) {
        let name = match list.get(index + 1) {
            Some(TokenTree::Ident(name)) => name.to_string(),
            Some(TokenTree::Punct(sign)) if sign.as_char() == '$' => "$".to_owned(),
            _ => return,
        };
        let ends = |token: &&TokenTree| is_braced(Some(*token)) || is_sign(Some(*token), ';');
        let Some(body) = list[index + 1..].iter().find(ends).filter(|end| is_braced(Some(*end))) else {
            return;
        };
        seen.function_count += 1;
        let line_count = last_line(body) + 1 - first_line(&list[index]);
        if line_count > FUNCTION_LINES_MAX {
            let what = format!("function `{name}` of {line_count} lines, more than {FUNCTION_LINES_MAX}");
            let remedy = "give its steps names of their own";
            seen.offences.push(self.offence(&list[index], what, remedy));
        }
    }

    fn check_unsafe(&self, list: &[TokenTree], index: usize, seen: &mut Findings) {
        let next = list.get(index + 1);
        let what = if is_braced(next) {
            "unsafe block"
        } else if is_word(next, "impl") {
            "unsafe impl"
        } else {
            return;
        };
        seen.unsafe_count += 1;
        if !self.has_reason(first_line(&list[index])) {
            let remedy = format!("say above it, after `// {SAFETY}`, why its contract holds here");
            seen.offences.push(self.offence(&list[index], format!("{what} without a `{SAFETY}` comment"), &remedy));
        }
    }

    /// Whether a comment with the mark stands on this line or directly above the statement it is in.
    fn has_reason(&self, line: usize) -> bool {
        let is_comment = |text: &str| text.trim_start().starts_with("//");
        let here = self.lines[line - 1];
        if here.find(SAFETY).is_some_and(|mark| here[..mark].contains("//")) {
            return true;
        }
        let mut above = self.lines[..line - 1].iter().rev().peekable();
        // A statement may begin some lines earlier: `let x =`, a chain of calls, attributes.
        while above.next_if(|text| !is_comment(text) && goes_on(text)).is_some() {}
        above.take_while(|text| is_comment(text)).any(|text| text.contains(SAFETY))
    }

    fn offence(&self, token: &TokenTree, what: impl Into<String>, remedy: &str) -> Offence {
        Offence::new(&self.file.path, first_line(token), what, remedy)
    }
}

/// Whether the statement on this line has not ended with it.
fn goes_on(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("#[") || !(text.is_empty() || text.ends_with([';', '{', '}', ',']))
}

/// A light hand: prose may quote code, so only a comment that both begins and ends like a statement
/// counts.
fn check_dead_code(file: &TextFile, lines: &[&str], seen: &mut Findings) {
    for (index, line) in lines.iter().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            continue;
        };
        if comment.starts_with(['/', '!']) {
            continue; // Documentation shows code on purpose, and the tests run it.
        }
        let is_inside_literal = index > 0 && seen.literal_lines.contains(&index);
        let comment = comment.trim();
        let begins = CODE_STARTS.iter().any(|start| comment.starts_with(start)) || comment.starts_with("#[");
        let ends = comment.ends_with([';', '{']) || (comment.starts_with("#[") && comment.ends_with(']'));
        let is_call = comment.ends_with(");") && !comment.contains(": ");
        if !is_inside_literal && ((begins && ends) || is_call) {
            let remedy = "remove it, history keeps it; or say in words what it teaches";
            seen.offences.push(Offence::new(&file.path, index + 1, "code switched off in a comment", remedy));
        }
    }
}

#[cfg(test)]
mod tests;
