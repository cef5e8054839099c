//! From what files say to arrows between them: each name is followed to the file that defines it.
//!
//! A path is walked from the crate's root, from the file's own module, or from a module that the file has imported. Segment
//! by segment it leads into a child module, through a re-export to wherever that leads, or to a definition, where it ends. A
//! path that leaves the crate gives no arrow. A re-export that its own file does not use gives none either: it is an address,
//! not a dependency.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::TextFile;
use crate::tokens;

use super::source::{self, Segments, Source};

/// From each file to the files that define what it names, with the names that lead there.
pub type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// How many re-exports a name is followed through; two modules that import all of each other would go on for ever.
const HOPS_MAX: usize = 16;

struct Tree {
    /// By module.
    sources: BTreeMap<Segments, (String, Source)>,
}

/// The arrows of one crate.
///
/// # Errors
/// Where a file is no Rust.
pub fn arrows(files: &[&TextFile]) -> Result<Arrows, String> {
    let tree = Tree::read(files)?;
    let mut arrows = Arrows::new();
    for (module, (path, source)) in &tree.sources {
        let mut targets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let needed = source.imports.iter().filter(|import| !import.is_public || is_used(source, &import.name));
        for written in needed.map(|import| &import.path).chain(&source.paths) {
            if let Some(target) = tree.find(module, written, HOPS_MAX) {
                targets.entry(target).or_default().extend(written.last().cloned());
            }
        }
        targets.remove(path);
        arrows.insert(path.clone(), targets);
    }
    Ok(arrows)
}

/// Whether the code of a file names what it re-exports.
fn is_used(source: &Source, name: &str) -> bool {
    let starts_path = || source.paths.iter().any(|path| path.first().is_some_and(|first| first == name));
    source.words.contains(name) || starts_path()
}

impl Tree {
    fn read(files: &[&TextFile]) -> Result<Tree, String> {
        let mut sources = BTreeMap::new();
        let has_library = files.iter().any(|file| file.path.ends_with("/src/lib.rs"));
        // The program beside a library is a crate of its own, of one file.
        let is_read = |file: &&&TextFile| !(has_library && file.path.ends_with("/src/main.rs"));
        for file in files.iter().filter(is_read) {
            let tokens = tokens::parse(&file.text).map_err(|(line, why)| format!("{}:{line}: {why}", file.path))?;
            sources.insert(source::module_path(&file.path), (file.path.clone(), source::read(tokens)));
        }
        let mut tree = Tree { sources };
        tree.drop_tests();
        Ok(tree)
    }

    /// Takes out the modules that only tests have, and files that no module declares.
    fn drop_tests(&mut self) {
        let mut kept = BTreeSet::from([Segments::new()]);
        let mut open = vec![Segments::new()];
        while let Some(module) = open.pop() {
            let Some((_, source)) = self.sources.get(&module) else { continue };
            for child in &source.children {
                let mut path = module.clone();
                path.push(child.clone());
                if kept.insert(path.clone()) {
                    open.push(path);
                }
            }
        }
        self.sources.retain(|module, _| kept.contains(module));
    }

    /// The file that a path in `from` leads to, if it is one of the crate.
    fn find(&self, from: &Segments, path: &[String], hops: usize) -> Option<String> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.walk(&Segments::new(), rest, hops),
            "self" => self.walk(from, rest, hops),
            "super" => {
                let mut up = from.clone();
                up.pop()?;
                match rest.first().is_some_and(|next| next == "super") {
                    true => self.find(&up, rest, hops),
                    false => self.walk(&up, rest, hops),
                }
            }
            name => {
                let (_, source) = self.sources.get(from)?;
                if source.children.contains(name) {
                    return self.walk(from, path, hops);
                }
                let import = *source::by_name(source).get(name)?;
                let hops = hops.checked_sub(1)?;
                let through: Vec<String> = import.iter().chain(rest).cloned().collect();
                // A file that imports `x::y` and says `y::z` may mean a module or a type.
                (import.first().is_some_and(|start| start != name || import.len() > 1))
                    .then(|| self.find(from, &through, hops))?
            }
        }
    }

    /// Goes down from `module` along `rest`.
    fn walk(&self, module: &Segments, rest: &[String], hops: usize) -> Option<String> {
        let (path, source) = self.sources.get(module)?;
        let Some((name, after)) = rest.split_first() else { return Some(path.clone()) };
        if source.children.contains(name) {
            let mut child = module.clone();
            child.push(name.clone());
            return self.walk(&child, after, hops);
        }
        if source.definitions.contains(name) {
            return Some(path.clone());
        }
        let hops = hops.checked_sub(1)?;
        if let Some(import) = source::by_name(source).get(name.as_str()) {
            let through: Vec<String> = import.iter().chain(after).cloned().collect();
            return self.find(module, &through, hops);
        }
        let globs = source.imports.iter().filter(|import| import.name == "*");
        globs.filter_map(|glob| self.through_glob(module, &glob.path, rest, hops)).next()
    }

    /// The file that defines `rest` in the module that `glob` names, if one does.
    fn through_glob(&self, module: &Segments, glob: &[String], rest: &[String], hops: usize) -> Option<String> {
        let path: Vec<String> = glob.iter().chain(rest).cloned().collect();
        self.find(module, &path, hops)
    }
}
