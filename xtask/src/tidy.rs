//! Holds the style: what STYLE.md asks of every file, as far as a program can see it.
//!
//! Each module below holds the rules of one kind of text; this one chooses the rules for a file by its
//! kind and adds up what was looked at.

mod assertions;
mod links;
mod rust;
mod text;
mod words;

use std::collections::BTreeSet;
use std::path::Path;

use crate::files::{self, TextFile};
use crate::offence::{Offence, Verdict};

/// The kind of a file, as far as the rules care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rust,
    Markdown,
    Script,
    /// Manifests, settings, test scripts in SQL.
    Plain,
    /// Written by a program or kept as it was: expected output, data, the licence, the lock file.
    Kept,
}

/// Counts for the line that `tidy` ends with.
#[derive(Debug, Default)]
struct Counts {
    rust: usize,
    markdown: usize,
    others: usize,
    lines: usize,
    functions: usize,
    unsafe_sites: usize,
    links: usize,
}

pub fn run(root: &Path) -> Result<Verdict, String> {
    let files = files::text_files(root)?;
    let mut counts = Counts::default();
    let mut offences = Vec::new();
    for file in &files {
        offences.extend(check(root, file, &mut counts));
    }
    offences.extend(words::check(&files));
    let (assertions, too_few) = assertions::check(&files)?;
    offences.extend(too_few);
    let checked = format!(
        "{} Rust files with {} functions and {} unsafe sites, {} documents with {} links, {} other files, {} lines; \
         assertions by function: {assertions}",
        counts.rust, counts.functions, counts.unsafe_sites, counts.markdown, counts.links, counts.others, counts.lines
    );
    Ok(Verdict { checked, offences })
}

fn check(root: &Path, file: &TextFile, counts: &mut Counts) -> Vec<Offence> {
    let kind = kind_of(file);
    counts.lines += file.text.lines().count();
    let mut offences = Vec::new();
    let mut literal_lines = BTreeSet::new();
    match kind {
        Kind::Rust => {
            counts.rust += 1;
            let seen = rust::check(file);
            counts.functions += seen.function_count;
            counts.unsafe_sites += seen.unsafe_count;
            literal_lines = seen.literal_lines;
            offences.extend(seen.offences);
        }
        Kind::Markdown => {
            counts.markdown += 1;
            let (broken, link_count) = links::check(file, &|target| root.join(target).exists());
            counts.links += link_count;
            offences.extend(broken);
        }
        Kind::Script | Kind::Plain | Kind::Kept => counts.others += 1,
    }
    if kind != Kind::Kept {
        offences.extend(text::check_white_space(file, &literal_lines));
    }
    if matches!(kind, Kind::Rust | Kind::Script | Kind::Markdown) {
        offences.extend(text::check_width(file, kind == Kind::Markdown));
    }
    if matches!(kind, Kind::Rust | Kind::Script | Kind::Plain) {
        offences.extend(text::check_markers(file));
    }
    offences.extend(text::check_machine_paths(file));
    offences.extend(text::check_hosts(file));
    offences
}

fn kind_of(file: &TextFile) -> Kind {
    let path = Path::new(&file.path);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => Kind::Rust,
        Some("md") => Kind::Markdown,
        Some("sh" | "bash") => Kind::Script,
        Some("toml" | "slt" | "sql" | "yml" | "yaml" | "py" | "pyi") => Kind::Plain,
        _ if file.text.starts_with("#!") => Kind::Script,
        _ => Kind::Kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn offences(path: &str, text: &str) -> Vec<String> {
        let mut counts = Counts::default();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        check(root, &file(path, text), &mut counts).into_iter().map(|offence| offence.what).collect()
    }

    #[test]
    fn a_file_is_known_by_its_name_or_its_first_line() {
        assert_eq!(kind_of(&file("a/b.rs", "")), Kind::Rust);
        assert_eq!(kind_of(&file("README.md", "")), Kind::Markdown);
        assert_eq!(kind_of(&file("run", "#!/usr/bin/env bash\n")), Kind::Script);
        assert_eq!(kind_of(&file("tests/sql/a.slt", "")), Kind::Plain);
        assert_eq!(kind_of(&file("LICENSE", "")), Kind::Kept);
    }

    #[test]
    fn a_good_file_passes_every_rule() {
        assert_eq!(offences("src/a.rs", "//! Header.\n\nfn a() {}\n"), [""; 0]);
        assert_eq!(offences("a.md", "See [the manifest](Cargo.toml).\n"), [""; 0]);
        assert_eq!(offences("run", "#!/usr/bin/env bash\nset -euo pipefail\n"), [""; 0]);
    }

    #[test]
    fn each_kind_meets_its_rules() {
        assert_eq!(offences("src/a.rs", "fn a() {} \n").len(), 2);
        assert_eq!(offences("a.md", "[gone](missing.md) \n").len(), 2);
        assert_eq!(offences("run", &format!("#!/bin/sh\n# {}\n", "x".repeat(text::COLUMNS_MAX))).len(), 1);
    }

    #[test]
    fn what_a_program_wrote_keeps_its_white_space_and_width() {
        assert_eq!(offences("tests/expected.txt", &format!("{} \n", "x".repeat(300))), [""; 0]);
    }
}
