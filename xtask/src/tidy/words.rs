//! Rules for the words of comments: a thread, a caller or a transaction is named by its role, never as a person, and a doc
//! comment makes sense where a search lands on it alone, so none opens with "The same".
//!
//! [`WHO_LINES`] lists the comment lines with a word of [`PERSONS`] that a crate may still have. The list may only shrink:
//! a crate with fewer such lines than the list allows is an offence, too, until the list says so.

use std::collections::BTreeMap;

use crate::files::TextFile;
use crate::offence::Offence;

const LIST: &str = "xtask/src/tidy/words.rs";

/// Comment lines with one of [`PERSONS`] that a crate may have; a crate that is not listed may have none.
const WHO_LINES: [(&str, usize); 0] = [];

/// The words for a person, in lower case.
const PERSONS: [&str; 3] = ["who", "whoever", "whom"];

/// The opening that refers to the item above.
const OPENING: &str = "The same";

/// Checks the comments of all Rust files.
pub fn check(files: &[TextFile]) -> Vec<Offence> {
    let rust: Vec<&TextFile> = files.iter().filter(|file| file.path.ends_with(".rs")).collect();
    let mut offences: Vec<Offence> = rust.iter().flat_map(|file| check_openings(file)).collect();
    offences.extend(check_persons(&rust, &WHO_LINES));
    offences
}

/// Every doc comment whose first line begins with [`OPENING`].
fn check_openings(file: &TextFile) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut is_going_on = false;
    for (index, line) in file.text.lines().enumerate() {
        let doc = doc_text(line);
        if !is_going_on && doc.is_some_and(|text| text.starts_with(OPENING)) {
            let what = format!("a doc comment opens with \"{OPENING}\"");
            offences.push(Offence::new(&file.path, index + 1, what, "say what the item itself does or is"));
        }
        is_going_on = doc.is_some();
    }
    offences
}

fn check_persons(files: &[&TextFile], allowed: &[(&str, usize)]) -> Vec<Offence> {
    let mut found: BTreeMap<&str, Vec<(&str, usize)>> = allowed.iter().map(|(name, _)| (*name, Vec::new())).collect();
    for file in files {
        let lines = file.text.lines().enumerate().filter(|(_, line)| comment_text(line).is_some_and(names_person));
        found.entry(crate_of(&file.path)).or_default().extend(lines.map(|(index, _)| (file.path.as_str(), index + 1)));
    }
    let limit = |name: &str| allowed.iter().find(|(listed, _)| *listed == name).map_or(0, |(_, count)| *count);
    let mut offences = Vec::new();
    for (name, lines) in found {
        let (count, limit) = (lines.len(), limit(name));
        if count > limit {
            let what = format!("crate `{name}` has {count} comment lines with \"who\"; {limit} are allowed");
            let remedy = "name the caller, reader, writer, transaction or thread";
            offences.extend(lines.iter().map(|(path, line)| Offence::new(path, *line, &what, remedy)));
        } else if count < limit {
            let what = format!("crate `{name}` may have {limit} comment lines with \"who\" and has {count}");
            offences.push(Offence::new(LIST, 1, what, "write the smaller number into WHO_LINES"));
        }
    }
    offences
}

/// The text of a line of documentation.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    Some(text.trim())
}

/// The text of a line that is a comment and nothing else.
fn comment_text(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//")
}

fn names_person(text: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.split(|letter| !is_part(letter)).any(|word| PERSONS.iter().any(|person| word.eq_ignore_ascii_case(person)))
}

/// The crate that a file belongs to, by the name of its folder.
fn crate_of(path: &str) -> &str {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    path.split('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn places(offences: &[Offence]) -> Vec<(&str, usize)> {
        offences.iter().map(|offence| (offence.path.as_str(), offence.line)).collect()
    }

    #[test]
    fn a_doc_that_opens_with_the_same_is_refused() {
        let text = "//! The same header.\n\n/// The same for text.\nfn a() {}\n    /// The same.\n    fn b() {}\n";
        assert_eq!(places(&check_openings(&file("a.rs", text))), [("a.rs", 1), ("a.rs", 3), ("a.rs", 5)]);
    }

    #[test]
    fn the_same_may_stand_anywhere_else() {
        let text =
            "//! Header.\n//! The same line goes on.\n\n// The same as above.\nfn a() {}\n/// Has the same name.\n";
        assert!(check_openings(&file("a.rs", text)).is_empty());
    }

    #[test]
    fn a_word_for_a_person_is_refused_beyond_the_ceiling() {
        let text = "//! Tells who waits.\n\n/// Whoever asks.\nfn who() {}\n    // to whom\nlet who = \"who\";\n";
        let files = [&file("crates/a/src/lib.rs", text), &file("crates/b/src/lib.rs", "// who\n")];
        let path = files[0].path.as_str();
        assert_eq!(places(&check_persons(&files, &[("b", 1)])), [(path, 1), (path, 3), (path, 5)]);
        assert!(check_persons(&files, &[("a", 3), ("b", 1)]).is_empty());
    }

    #[test]
    fn whole_words_count() {
        assert!(names_person("Who?") && names_person("ask (who)") && names_person("to whom."));
        assert!(!names_person("whole, whose, who_waits and anywho"));
    }

    #[test]
    fn a_ceiling_only_shrinks() {
        let fewer = [&file("crates/a/src/lib.rs", "// who\n")];
        assert_eq!(places(&check_persons(&fewer, &[("a", 2)])), [(LIST, 1)]);
        assert_eq!(places(&check_persons(&[], &[("gone", 1)])), [(LIST, 1)]);
    }

    #[test]
    fn a_crate_is_known_by_its_folder() {
        assert_eq!(crate_of("crates/sql/src/lib.rs"), "sql");
        assert_eq!(crate_of("xtask/src/main.rs"), "xtask");
    }
}
