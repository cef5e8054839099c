//! Links between documents: what a relative link points to must exist.

use std::path::{Component, Path, PathBuf};

use crate::files::TextFile;
use crate::offence::Offence;

/// Checks the inline links `[text](target)` and the definitions `[name]: target` outside code. `exists`
/// is asked for paths relative to the repository root. Also gives the number of relative links.
pub fn check(file: &TextFile, exists: &dyn Fn(&Path) -> bool) -> (Vec<Offence>, usize) {
    let mut offences = Vec::new();
    let mut link_count = 0;
    let mut in_fence = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        let prose = without_code(line);
        for target in targets(&prose).into_iter().filter(|target| is_relative(target)) {
            link_count += 1;
            let is_there = resolve(&file.path, target).is_some_and(|path| exists(&path));
            if !is_there {
                let what = format!("link to `{target}`, which does not exist");
                offences.push(Offence::new(
                    &file.path,
                    index + 1,
                    what,
                    "correct the target, relative to this document",
                ));
            }
        }
    }
    (offences, link_count)
}

/// The line with its `code` spans blanked.
fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    parts.map(|(index, part)| if index % 2 == 0 { part } else { "" }).collect::<Vec<_>>().join("`")
}

fn targets(prose: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for (start, opening) in prose.match_indices("](") {
        let rest = &prose[start + opening.len()..];
        found.extend(rest.find(')').map(|end| &rest[..end]));
    }
    if prose.starts_with('[')
        && let Some((_, target)) = prose.split_once("]: ")
    {
        found.push(target);
    }
    found.into_iter().filter_map(|target| target.split_whitespace().next()).collect()
}

fn is_relative(target: &str) -> bool {
    !target.starts_with('#') && !target.contains("://") && !target.starts_with("mailto:")
}

/// The path from the repository root; none where the link leads out of the repository.
fn resolve(document: &str, target: &str) -> Option<PathBuf> {
    let target = target.trim_start_matches('<').trim_end_matches('>');
    let target = target.split('#').next().unwrap_or(target);
    let mut path = Path::new(document).parent().unwrap_or(Path::new("")).to_path_buf();
    for component in Path::new(target).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> (Vec<usize>, usize) {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        let there = ["STYLE.md", "docs/a.md", "crates/types"];
        let (offences, count) = check(&file, &|target| there.iter().any(|known| Path::new(known) == target));
        (offences.iter().map(|offence| offence.line).collect(), count)
    }

    #[test]
    fn relative_links_are_followed_from_the_document() {
        assert_eq!(broken("docs/b.md", "[a](a.md) [s](../STYLE.md#rules)\n[t](../crates/types/ \"T\")"), (vec![], 3));
        assert_eq!(broken("README.md", "[a](./docs/a.md)\n[gone](a.md)\n"), (vec![2], 2));
    }

    #[test]
    fn a_definition_is_a_link_too() {
        assert_eq!(broken("README.md", "[a]: docs/a.md\n[b]: docs/b.md\n"), (vec![2], 2));
    }

    #[test]
    fn a_link_out_of_the_repository_is_broken() {
        assert_eq!(broken("README.md", "[up](../STYLE.md) [top](/STYLE.md)").0, [1, 1]);
    }

    #[test]
    fn addresses_anchors_and_code_are_left_alone() {
        let text =
            "[w](https://example.org/x) [h](#here) [m](mailto:a@example.org) `[c](none.md)`\n```\n[d](none.md)\n```\n";
        assert_eq!(broken("README.md", text), (vec![], 0));
    }
}
