//! Which files belong to the repository, and their text.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Folders that never hold sources; only needed where git cannot be asked.
const SKIPPED_FOLDERS: [&str; 4] = [".git", "target", "data", ".venv"];

/// A file of the repository that is text.
pub struct TextFile {
    /// Relative to the repository root, with `/` between folders.
    pub path: String,
    pub text: String,
}

/// All text files that git tracks or would track (new ones count before they are added, so that a
/// check that passes here also passes after the commit). Where git does not answer, as in an unpacked
/// archive, all files outside the build folders.
pub fn text_files(root: &Path) -> Result<Vec<TextFile>, String> {
    let paths = match tracked_paths(root) {
        Some(paths) => paths,
        None => walked_paths(root)?,
    };
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let full = root.join(&path);
        // Deleted but not yet committed, a link (its target is checked on its own), a submodule.
        let is_file = fs::symlink_metadata(&full).is_ok_and(|metadata| metadata.is_file());
        if !is_file {
            continue;
        }
        let bytes = fs::read(&full).map_err(|error| format!("{}: {error}", full.display()))?;
        if let Ok(text) = String::from_utf8(bytes)
            && !text.contains('\0')
        {
            files.push(TextFile { path, text });
        }
    }
    Ok(files)
}

fn tracked_paths(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let listing = String::from_utf8(output.stdout).ok()?;
    let mut paths: Vec<String> = listing.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    Some(paths)
}

fn walked_paths(root: &Path) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
            let kind = entry.file_type().map_err(|error| format!("{}: {error}", folder.display()))?;
            let name = entry.file_name();
            if kind.is_dir() && !SKIPPED_FOLDERS.iter().any(|skipped| name == *skipped) {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Some(path) = entry.path().strip_prefix(root).ok().and_then(Path::to_str)
            {
                paths.push(path.to_owned());
            }
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
    }

    #[test]
    fn finds_the_sources_of_this_crate() {
        let files = text_files(root()).expect("readable");
        let own = files.iter().find(|file| file.path == "xtask/src/files.rs").expect("this file");
        assert!(own.text.contains("finds_the_sources_of_this_crate"));
    }

    #[test]
    fn without_git_the_walk_finds_them_too_and_stays_out_of_build_folders() {
        let paths = walked_paths(root()).expect("readable");
        assert!(paths.iter().any(|path| path == "xtask/src/files.rs"));
        assert!(!paths.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
    }
}
