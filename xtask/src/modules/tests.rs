//! The module check on small crates, right ones and wrong ones.

use super::*;

fn file(path: &str, text: &str) -> TextFile {
    TextFile { path: format!("crates/house/src/{path}"), text: text.to_owned() }
}

fn arrows_of(files: &[(&str, &str)]) -> Arrows {
    let files: Vec<TextFile> = files.iter().map(|(path, text)| file(path, text)).collect();
    resolve::arrows(&files.iter().collect::<Vec<_>>()).expect("Rust")
}

/// The arrows as `from>to`, without folders of the repository.
fn shown(arrows: &Arrows) -> Vec<String> {
    let short = |path: &String| path.trim_start_matches("crates/house/src/").trim_end_matches(".rs").to_owned();
    arrows.iter().flat_map(|(from, to)| to.keys().map(move |to| format!("{}>{}", short(from), short(to)))).collect()
}

#[test]
fn a_name_leads_to_the_file_that_defines_it_through_re_exports() {
    let arrows = arrows_of(&[
        ("lib.rs", "mod low; mod high; pub use low::Noun;"),
        ("low/mod.rs", "mod noun; pub use noun::Noun;"),
        ("low/noun.rs", "pub struct Noun;"),
        ("high.rs", "use crate::Noun; fn f(_: Noun) {}"),
    ]);
    assert_eq!(shown(&arrows), ["high>low/noun"]);
}

#[test]
fn paths_in_code_count_as_imports_do() {
    let arrows = arrows_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b; fn f() { b::g(); super::c::h() }"),
        ("b.rs", "pub fn g() {}"),
        ("c.rs", "pub fn h() {}"),
    ]);
    assert_eq!(shown(&arrows), ["a>b", "a>c"]);
}

#[test]
fn renamed_names_groups_and_globs_are_followed() {
    let arrows = arrows_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::{b::{self, One as First}, c::*}; fn f(_: First) { b::g() }"),
        ("b.rs", "pub struct One; pub fn g() {}"),
        ("c.rs", "pub struct Two;"),
    ]);
    assert_eq!(shown(&arrows), ["a>b", "a>c"]);
}

#[test]
fn tests_and_models_and_what_they_import_are_left_out() {
    let arrows = arrows_of(&[
        (
            "lib.rs",
            "mod a; mod b; #[cfg(test)] mod tests; #[cfg(all(test, not(loom)))] mod model; #[cfg(not(test))] mod c;",
        ),
        ("c.rs", "use crate::b::g; fn f() { g() }"),
        ("a.rs", "#[cfg(test)] use crate::b::X; fn f() {} #[cfg(test)] mod inner { fn g() { crate::b::g() } }"),
        ("b.rs", "pub fn g() {} pub struct X;"),
        ("tests.rs", "use crate::a;"),
        ("model.rs", "use crate::b::g;"),
    ]);
    assert_eq!(arrows.len(), 4);
    assert_eq!(shown(&arrows), ["c>b"]);
}

#[test]
fn a_seeded_circle_is_found_and_refused() {
    let arrows = arrows_of(&[
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "use crate::c::C; pub struct B(C);"),
        ("c.rs", "fn f() { crate::a::A::new(); } pub struct C;"),
        ("d.rs", "use crate::a::A; fn f(_: A) {}"),
    ]);
    let circles = circles::circles(&arrows);
    assert_eq!(circles.iter().map(Vec::len).collect::<Vec<_>>(), [3]);
    let refused = check_circles("house", &circles, &[]).expect("an offence");
    assert!(refused.what.contains("a circle of 3 modules"), "{refused}");
    assert_eq!(check_circles("house", &circles, &[("house", 3)]), None);
    let smaller = check_circles("house", &circles, &[("house", 4)]).expect("the list may only shrink");
    assert!(smaller.remedy.contains("smaller number"), "{smaller}");
}

#[test]
fn an_upward_import_is_refused_until_it_is_listed_and_again_once_it_is_gone() {
    let arrows = arrows_of(&[
        ("lib.rs", "mod page; mod scan;"),
        ("page/mod.rs", "pub mod base;"),
        ("page/base.rs", "use crate::scan::ROWS; const A: usize = ROWS;"),
        ("scan.rs", "use crate::page::base; pub const ROWS: usize = 1; fn f() { base::g() }"),
    ]);
    let layers: [(&str, &[&[&str]]); 1] = [("house", &[&["page"], &["scan"]])];
    let found: BTreeSet<_> = upward_imports("house", &arrows, &layers).into_iter().collect();
    let pair = ("crates/house/src/page/base.rs", "crates/house/src/scan.rs");
    assert_eq!(found.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect::<Vec<_>>(), [pair]);
    assert_eq!(check_upward(&found, &[]).len(), 1);
    assert_eq!(check_upward(&found, &[pair]), []);
    assert_eq!(check_upward(&BTreeSet::new(), &[pair]).len(), 1);
}

#[test]
fn a_module_within_another_may_be_a_layer() {
    let arrows = arrows_of(&[
        ("lib.rs", "mod page; mod scan;"),
        ("page/mod.rs", "pub mod base; use crate::scan::ROWS; const A: usize = ROWS;"),
        ("page/base.rs", "use crate::scan::ROWS; const A: usize = ROWS;"),
        ("scan.rs", "pub const ROWS: usize = 1;"),
    ]);
    let layers: [(&str, &[&[&str]]); 1] = [("house", &[&["page/base"], &["scan"], &["page"]])];
    let pair = ("crates/house/src/page/base.rs".to_owned(), "crates/house/src/scan.rs".to_owned());
    assert_eq!(upward_imports("house", &arrows, &layers), [pair]);
}

#[test]
fn the_lists_name_crates_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository");
    let files = files::text_files(root).expect("readable");
    let crates = crates_of(&files);
    for (name, _) in CIRCLES {
        assert!(crates.contains_key(name), "{name}");
    }
    for (name, _) in LAYERS {
        assert!(crates.contains_key(name), "{name}");
    }
}
