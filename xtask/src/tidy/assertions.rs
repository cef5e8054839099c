//! Assertions on purpose: the crates that hold the invariants of ARCHITECTURE.md state them in their code.
//!
//! [`DENSITY`] lists these crates, with the assertions that each has at least for each hundred of its functions. Product code
//! counts alone: modules and items for tests and model checkers are left out on both sides. An assertion is a call of a macro
//! of [`MACROS`], at compile time, too.

use proc_macro2::{TokenStream, TokenTree};

use crate::files::TextFile;
use crate::modules;
use crate::offence::Offence;
use crate::tokens::{self, is_braced, is_sign};

/// Assertions that a crate has at least for a hundred functions.
const DENSITY: [(&str, usize); 3] = [("durability", 25), ("engine", 25), ("txn", 25)];

const MACROS: [&str; 6] = ["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"];

/// The functions and the assertions of one crate's product code.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    functions: usize,
    assertions: usize,
}

/// Checks the crates of the list; the text says how many assertions each has.
///
/// # Errors
/// Where a file is no Rust.
pub fn check(files: &[TextFile]) -> Result<(String, Vec<Offence>), String> {
    let mut said = Vec::new();
    let mut offences = Vec::new();
    for (name, least) in DENSITY {
        let count = count_all(modules::product_code(files, name)?);
        said.push(format!("{name} {} in {}", count.assertions, count.functions));
        offences.extend(check_density(name, least, &count));
    }
    Ok((said.join(", "), offences))
}

fn check_density(name: &str, least: usize, count: &Count) -> Option<Offence> {
    let wanted = (count.functions * least).div_ceil(100);
    (count.assertions < wanted).then(|| {
        let what = format!(
            "{} assertions in {} functions of the product; at least {wanted} are wanted",
            count.assertions, count.functions
        );
        let remedy = "state what must hold: preconditions, results, agreement of two ways to know something";
        Offence::new(&format!("crates/{name}/src/lib.rs"), 1, what, remedy)
    })
}

fn count_all(files: Vec<TokenStream>) -> Count {
    let mut count = Count::default();
    for tokens in files {
        count_tokens(tokens, &mut count);
    }
    count
}

fn count_tokens(tokens: TokenStream, count: &mut Count) {
    tokens::visit(tokens, &mut |list, index| {
        if is_function(list, index) {
            count.functions += 1;
        } else if is_assertion(list, index) {
            count.assertions += 1;
        }
    });
}

/// Whether a function with a body begins here.
fn is_function(list: &[TokenTree], index: usize) -> bool {
    let is_named = matches!(list.get(index + 1), Some(TokenTree::Ident(_)));
    let ends = |token: &&TokenTree| is_braced(Some(*token)) || is_sign(Some(*token), ';');
    tokens::is_word(list.get(index), "fn")
        && is_named
        && list[index + 1..].iter().find(ends).is_some_and(|end| is_braced(Some(end)))
}

fn is_assertion(list: &[TokenTree], index: usize) -> bool {
    let TokenTree::Ident(word) = &list[index] else { return false };
    let is_call = is_sign(list.get(index + 1), '!') && matches!(list.get(index + 2), Some(TokenTree::Group(_)));
    is_call && MACROS.iter().any(|name| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn count(files: &[TextFile], name: &str) -> Count {
        count_all(modules::product_code(files, name).expect("Rust"))
    }

    #[test]
    fn functions_and_assertions_of_the_product_are_counted() {
        let root = "//! Root.\nmod inner;\nconst _: () = assert!(1 < 2);\ntrait A { fn a(); fn b() {} }\n\
            fn assert() { debug_assert_eq!(1, 1, \"assert!(false)\"); }\n";
        let files =
            [file("crates/a/src/lib.rs", root), file("crates/a/src/inner.rs", "fn c() { assert_ne!(1, 2); }\n")];
        assert_eq!(count(&files, "a"), Count { functions: 3, assertions: 3 });
    }

    #[test]
    fn tests_and_models_do_not_count() {
        let root = "//! Root.\n#[cfg(test)]\nmod tests;\n#[cfg(loom)]\nmod models;\nfn a() {}\n\
            #[cfg(test)]\nmod more { fn b() { assert!(true); } }\n";
        let files = [
            file("crates/a/src/lib.rs", root),
            file("crates/a/src/tests.rs", "fn c() { assert!(true); }\n"),
            file("crates/a/src/models.rs", "fn d() { assert!(true); }\n"),
            file("crates/b/src/lib.rs", "fn e() { assert!(true); }\n"),
        ];
        assert_eq!(count(&files, "a"), Count { functions: 1, assertions: 0 });
    }

    #[test]
    fn a_crate_with_fewer_assertions_is_refused() {
        assert!(check_density("a", 25, &Count { functions: 9, assertions: 2 }).is_some());
        assert!(check_density("a", 25, &Count { functions: 9, assertions: 3 }).is_none());
    }
}
