//! Every rule for Rust on a text that keeps it and on one that breaks it.

use super::*;

fn seen(text: &str) -> Findings {
    check(&TextFile { path: "src/a.rs".to_owned(), text: text.to_owned() })
}

/// The lines with an offence, for a body below a proper header (which is line 1).
fn offending_lines(body: &str) -> Vec<usize> {
    seen(&format!("//! Header.\n{body}")).offences.iter().map(|offence| offence.line).collect()
}

/// A function of so many lines.
fn function_of(line_count: usize) -> String {
    format!("fn long() {{\n{}}}\n", "    step();\n".repeat(line_count - 2))
}

#[test]
fn a_file_may_be_full_but_not_more() {
    let full = format!("//! Header.\n{}", "const A: u8 = 1;\n".repeat(FILE_LINES_MAX - 1));
    assert!(seen(&full).offences.is_empty());
    let offences = seen(&format!("{full}const B: u8 = 2;\n")).offences;
    assert_eq!(offences.len(), 1);
    assert_eq!(offences[0].line, FILE_LINES_MAX + 1);
}

#[test]
fn a_function_may_be_full_but_not_more() {
    assert!(offending_lines(&function_of(FUNCTION_LINES_MAX)).is_empty());
    assert_eq!(offending_lines(&function_of(FUNCTION_LINES_MAX + 1)), [2]);
}

#[test]
fn functions_are_found_in_impls_modules_and_macros() {
    let long = function_of(FUNCTION_LINES_MAX + 1);
    assert_eq!(offending_lines(&format!("mod a {{\nimpl B {{\n{long}}}\n}}\n")), [4]);
    assert_eq!(offending_lines(&format!("proptest! {{\n#[test]\n{long}}}\n")), [4]);
}

#[test]
fn signatures_count_and_types_of_functions_do_not() {
    let text =
        "//! Header.\ntrait A {\n    fn a(&self);\n    fn b(&self) {}\n}\ntype F = fn(u8) -> u8;\nconst fn c() {}\n";
    assert_eq!(seen(text).function_count, 2);
    let wide = format!("fn wide(\n{}) {{}}\n", "    a: u8,\n".repeat(FUNCTION_LINES_MAX));
    assert_eq!(offending_lines(&wide), [2]);
}

#[test]
fn every_file_begins_with_a_header() {
    assert!(seen("//! Header.\n").offences.is_empty());
    assert!(seen("\n//! Header after an empty line.\n").offences.is_empty());
    for text in
        ["", "fn a() {}\n", "// No header.\nfn a() {}\n", "/// Of the item.\nfn a() {}\n", "use a;\n//! Late.\n"]
    {
        assert!(seen(text).offences.iter().any(|offence| offence.what == "no header"), "{text:?}");
    }
}

#[test]
fn leftover_macros_are_found_in_code_and_not_in_strings() {
    assert_eq!(offending_lines("fn a() {\n    todo!()\n}\n"), [3]);
    assert_eq!(offending_lines("fn a() {\n    assert!(dbg!(1) == unimplemented!(\"x\"));\n}\n"), [3, 3]);
    assert!(
        offending_lines("fn a() -> &'static str { \"todo!()\" } // todo!()\nfn todo() -> bool { todo != x }\n")
            .is_empty()
    );
}

#[test]
fn tests_are_not_switched_off() {
    assert_eq!(offending_lines("#[test]\n#[ignore]\nfn a() {}\n"), [3]);
    assert_eq!(offending_lines("#[test]\n#[ignore = \"slow\"]\nfn a() {}\n"), [3]);
    assert!(offending_lines("#[test]\n#[cfg_attr(miri, ignore)]\nfn a() {}\n").is_empty());
}

#[test]
fn code_in_comments_is_found_and_prose_is_not() {
    assert_eq!(offending_lines("// let a = 1;\n"), [2]);
    assert_eq!(offending_lines("fn a() {\n    // work(1, 2);\n}\n"), [3]);
    assert_eq!(offending_lines("// if done {\n//     return Ok(());\n"), [2, 3]);
    let prose = "// Let the reader go first;\n// let us see (this is prose).\n/// let a = 1;\n/// assert!(a(1));\n\
                 //! use a;\n// Calls: see a(b);\n";
    assert!(offending_lines(prose).is_empty(), "{:?}", offending_lines(prose));
    assert!(offending_lines("const A: &str = \"\n// let a = 1;\n\";\n").is_empty());
}

#[test]
fn an_unsafe_site_needs_a_reason() {
    assert_eq!(offending_lines("fn a() {\n    unsafe { b() }\n}\n"), [3]);
    assert_eq!(offending_lines("unsafe impl Send for A {}\n"), [2]);
    assert_eq!(offending_lines("// Careful.\nunsafe impl Send for A {}\n"), [3]);
    assert_eq!(offending_lines("// SAFETY: of another.\nfn b() {}\nunsafe impl Send for A {}\n"), [4]);
}

#[test]
fn a_reason_stands_above_the_statement_or_beside_it() {
    let good = [
        "// SAFETY: nothing is shared.\nunsafe impl Send for A {}\n",
        "fn a() {\n    // SAFETY: checked above,\n    // and twice.\n    let x =\n        unsafe { b() };\n}\n",
        "fn a() {\n    // SAFETY: inside.\n    #[cfg(x)]\n    unsafe { b() }\n}\n",
        "fn a() { unsafe { b() } } // SAFETY: short.\n",
    ];
    for text in good {
        assert!(offending_lines(text).is_empty(), "{text}");
        assert_eq!(seen(text).unsafe_count, 1, "{text}");
    }
}

#[test]
fn declarations_of_unsafe_functions_and_attributes_are_no_sites() {
    let text = "//! H.\n/// # Safety\n/// None.\nunsafe fn a() {}\n#[unsafe(no_mangle)]\nextern \"C\" fn b() {}\n";
    let seen = seen(text);
    assert_eq!((seen.unsafe_count, seen.offences.len()), (0, 0));
}

#[test]
fn lines_of_long_literals_are_known() {
    let seen = seen("//! H.\nconst A: &str = \"one\ntwo\nthree\";\n");
    assert_eq!(seen.literal_lines, BTreeSet::from([2, 3]));
}

#[test]
fn what_is_no_rust_is_an_offence() {
    assert_eq!(offending_lines("fn a() {\n").len(), 1);
}
