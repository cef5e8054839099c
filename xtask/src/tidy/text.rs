//! Rules for any text: width, white space at line ends, leftover marks, machine paths, package hosts.

use std::collections::BTreeSet;

use crate::files::TextFile;
use crate::offence::Offence;

/// Columns of a line at most. `cargo fmt` keeps code narrower; this holds comments and strings.
pub const COLUMNS_MAX: usize = 140;

/// Marks of unfinished work. Put together from halves, so that this file does not hold them.
const MARKERS: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];

/// Where a path begins that exists on one machine only.
const MACHINE_FOLDERS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Hosts that packages come from. The tools know their own; a source that names one binds the
/// repository to it.
const PACKAGE_HOSTS: [&str; 14] = [
    concat!("crates", ".io"),
    concat!("static.rust-lang", ".org"),
    concat!("rustup", ".rs"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("proxy.golang", ".org"),
    concat!("deb.debian", ".org"),
    concat!("archive.ubuntu", ".com"),
    concat!("docker", ".io"),
    concat!("ghcr", ".io"),
    concat!("quay", ".io"),
    concat!("conda.anaconda", ".org"),
];

/// The one place that has to name a host: the set-up of a bare machine fetches the toolchain manager.
const HOST_EXCEPTION: (&str, &str) = (".ci/setup.sh", concat!("rustup", ".rs"));

/// Written by cargo, which names its registry in every entry.
const LOCK_FILE: &str = "Cargo.lock";

pub fn check_width(file: &TextFile, is_markdown: bool) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut in_fence = false;
    for (line, text) in numbered(file) {
        if is_markdown && text.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        // Lines that cannot be broken: a table row, quoted output, an address.
        let is_unbreakable = text.contains("://") || (is_markdown && (in_fence || text.trim_start().starts_with('|')));
        let columns = text.chars().count();
        if columns > COLUMNS_MAX && !is_unbreakable {
            let what = format!("{columns} columns, more than {COLUMNS_MAX}");
            offences.push(Offence::new(&file.path, line, what, "break the line"));
        }
    }
    offences
}

/// `literal_lines` are the lines of Rust string literals that go on, where a blank at the end is data.
pub fn check_white_space(file: &TextFile, literal_lines: &BTreeSet<usize>) -> Vec<Offence> {
    let bad = numbered(file).filter(|(line, text)| text.trim_end() != *text && !literal_lines.contains(line));
    bad.map(|(line, _)| Offence::new(&file.path, line, "white space at the end of the line", "remove it")).collect()
}

pub fn check_markers(file: &TextFile) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (line, text) in numbered(file) {
        for marker in MARKERS.iter().filter(|marker| contains_word(text, marker)) {
            let what = format!("leftover `{marker}`");
            offences.push(Offence::new(&file.path, line, what, "finish it, or say in words what holds and why"));
        }
    }
    offences
}

pub fn check_machine_paths(file: &TextFile) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (line, text) in numbered(file) {
        for folder in MACHINE_FOLDERS.iter().filter(|folder| contains_absolute(text, folder)) {
            let what = format!("path of one machine, `{folder}...`");
            let remedy = "use a path relative to the repository, a temporary folder or a variable";
            offences.push(Offence::new(&file.path, line, what, remedy));
        }
    }
    offences
}

pub fn check_hosts(file: &TextFile) -> Vec<Offence> {
    if file.path == LOCK_FILE {
        return Vec::new();
    }
    let mut offences = Vec::new();
    for (line, text) in numbered(file) {
        for host in PACKAGE_HOSTS.iter().filter(|host| contains_host(text, host)) {
            if (file.path.as_str(), *host) != HOST_EXCEPTION {
                let what = format!("names the package host `{host}`");
                offences.push(Offence::new(
                    &file.path,
                    line,
                    what,
                    "leave the source of packages to the tools' own settings",
                ));
            }
        }
    }
    offences
}

fn numbered(file: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    // `lines` would hide a carriage return, which is white space at the end like any other.
    file.text.split('\n').enumerate().map(|(index, text)| (index + 1, text))
}

fn is_word_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// `word` with no letter, digit or underscore on either side.
fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !before.is_some_and(is_word_part) && !after.is_some_and(is_word_part)
    })
}

/// `folder` at the start of a path: `a/home/b` and `$X/home/` are other paths.
fn contains_absolute(text: &str, folder: &str) -> bool {
    text.match_indices(folder).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        !before.is_some_and(|letter| is_word_part(letter) || "./-}$~*)".contains(letter))
    })
}

/// `host`, or a host below it, and not merely the beginning of a longer name.
fn contains_host(text: &str, host: &str) -> bool {
    text.match_indices(host).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let mut after = text[start + host.len()..].chars();
        let (next, second) = (after.next(), after.next());
        let goes_on = next.is_some_and(|letter| is_word_part(letter) || letter == '-')
            || (next == Some('.') && second.is_some_and(is_word_part));
        !before.is_some_and(|letter| is_word_part(letter) || letter == '-') && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn lines(offences: &[Offence]) -> Vec<usize> {
        offences.iter().map(|offence| offence.line).collect()
    }

    #[test]
    fn width_counts_columns_not_bytes() {
        let exact = "é".repeat(COLUMNS_MAX);
        let long = "x".repeat(COLUMNS_MAX + 1);
        let text = format!("{exact}\n{long}\n");
        assert_eq!(lines(&check_width(&file("a.rs", &text), false)), [2]);
    }

    #[test]
    fn tables_fences_and_addresses_of_documents_may_be_wide() {
        let long = "x".repeat(COLUMNS_MAX + 1);
        let text = format!("| {long} |\n```\n{long}\n```\nhttps://{long}\n{long}\n");
        assert_eq!(lines(&check_width(&file("a.md", &text), true)), [6]);
    }

    #[test]
    fn blanks_at_line_ends_are_found_outside_literals() {
        let file = file("a.rs", "a\nb \nc\t\nd\r\n\n");
        assert_eq!(lines(&check_white_space(&file, &BTreeSet::new())), [2, 3, 4]);
        assert_eq!(lines(&check_white_space(&file, &BTreeSet::from([2]))), [3, 4]);
    }

    #[test]
    fn marks_are_whole_words() {
        let marker = MARKERS[1];
        let text = format!("// {marker} later\n// {marker}L is a size\n// {}: soon\n", MARKERS[0]);
        assert_eq!(lines(&check_markers(&file("a.rs", &text))), [1, 3]);
    }

    #[test]
    fn absolute_paths_of_a_machine_are_found_and_relative_ones_left_alone() {
        let text = format!(
            "cd {0}x\n\"{1}y\"\na{0}b ${{DIR}}{1}c ../x{2}d\n",
            MACHINE_FOLDERS[0], MACHINE_FOLDERS[2], MACHINE_FOLDERS[1]
        );
        assert_eq!(lines(&check_machine_paths(&file("a.md", &text))), [1, 2]);
    }

    #[test]
    fn package_hosts_are_found_with_their_sub_hosts_only() {
        let host = PACKAGE_HOSTS[0];
        let text = format!("https://index.{host}/x\nfrom {host}.\nmy{host}\n{host}.example\n{host}-index\n");
        assert_eq!(lines(&check_hosts(&file("a.md", &text))), [1, 2]);
        assert_eq!(check_hosts(&file(LOCK_FILE, &text)), []);
    }

    #[test]
    fn only_the_set_up_may_fetch_the_toolchain_manager() {
        let text = format!("curl https://sh.{}\n", HOST_EXCEPTION.1);
        assert_eq!(check_hosts(&file(HOST_EXCEPTION.0, &text)), []);
        assert_eq!(lines(&check_hosts(&file("run", &text))), [1]);
        let other = format!("curl https://{}\n", PACKAGE_HOSTS[3]);
        assert_eq!(lines(&check_hosts(&file(HOST_EXCEPTION.0, &other))), [1]);
    }
}
