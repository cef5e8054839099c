//! Holds the rooms inside a crate: its circles of modules, and the order of its layers.
//!
//! ```text
//! sources of a crate -> module tree -> imports, each followed to the file that defines the name -> circles, layers
//! ```
//!
//! A node is a file, tests and models left out ([`source`]). An arrow leads from a file to each file that defines something
//! that it names, by a `use` or by a path in its code; a name that is re-exported leads to the file that defines it
//! ([`resolve`]). Files that reach each other form a circle ([`circles`]): none of them can be read, changed or moved
//! without the others.
//!
//! [`CIRCLES`] lists the largest circle that a crate may have, [`LAYERS`] the folders of a crate from the bottom to the top,
//! and [`UPWARD`] the imports that still point upwards. All three may only shrink: a circle that has become smaller and an
//! import that has gone are offences, too, until the list says so.

mod circles;
mod resolve;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::TokenStream;

use crate::files::{self, TextFile};
use crate::offence::{Offence, Verdict};
use crate::tokens;

use resolve::Arrows;

const LIST: &str = "xtask/src/modules.rs";

/// How many files the largest circle of a crate has; a crate that is not named has none.
const CIRCLES: [(&str, usize); 11] = [
    ("durability", 5),
    ("engine", 2),
    ("gpu", 3),
    ("heap", 4),
    ("index", 4),
    ("lab", 9),
    ("lineage", 2),
    ("server", 5),
    ("sql", 3),
    ("testkit", 6),
    ("txn", 8),
];

/// The layers of a crate from the bottom to the top. A layer is a set of modules: of the crate's root, or within one (`a/b`). A
/// module that stands in no layer may be imported by, and may import, any.
const LAYERS: [(&str, &[&[&str]]); 4] = [
    (
        "durability",
        &[
            &["error", "lsn", "options"],
            &["device"],
            &["format"],
            &["checkpoint"],
            &["recovery"],
            &["archive"],
            &["log"],
        ],
    ),
    (
        "engine",
        &[
            &["error"],
            &["terms"],
            &["keys"],
            &["state"],
            &["background"],
            &["disk"],
            &["database"],
            &["table"],
            &["transaction"],
            &["api"],
        ],
    ),
    (
        "lineage",
        &[
            &["value"],
            &["encoding"],
            &["content"],
            &["history"],
            &["codec"],
            &["memory"],
            &["page"],
            &["record"],
            &["scan"],
            &["merge"],
            &["table"],
            &["image"],
        ],
    ),
    (
        "sql",
        &[
            &["error"],
            &["interrupt"],
            &["coprocessor"],
            &["syntax"],
            &["values"],
            &["names"],
            &["parsing"],
            &["state"],
            &["access"],
            &["optimizer"],
            &["functions/row_wise", "functions/overloads"],
            &[
                "functions/numbers",
                "functions/times",
                "functions/texts",
                "functions/arrays",
                "functions/tables",
                "functions/statement",
            ],
            &["functions"],
            &["semantics/operations"],
            &["semantics/aggregates"],
            &["semantics/rules"],
            &["semantics/subplan"],
            &["semantics/spelling"],
            &["semantics/outer_aggregates"],
            &["semantics/adapting"],
            &["semantics/naming"],
            &["semantics"],
            &["pg_catalog"],
            &["planning"],
            &["point"],
            &["session"],
            &["statements"],
            &["dispatch"],
        ],
    ),
];

/// Imports that point from a layer to a higher one, by their files.
const UPWARD: [(&str, &str); 0] = [];

/// The code of the crate in the folder `name`, file by file, without what is there for tests and models only.
///
/// # Errors
/// Where a file is no Rust.
pub fn product_code(files: &[TextFile], name: &str) -> Result<Vec<TokenStream>, String> {
    let crates = crates_of(files);
    let Some(sources) = crates.get(name) else { return Err(format!("there is no crate `{name}`")) };
    let paths = resolve::arrows(sources)?;
    let product = sources.iter().filter(|file| paths.contains_key(&file.path));
    product
        .map(|file| {
            let tokens = tokens::parse(&file.text).map_err(|(line, why)| format!("{}:{line}: {why}", file.path))?;
            Ok(source::product(tokens))
        })
        .collect()
}

/// Checks all crates, and shows what ties the circles of the crate `shown` together.
pub fn run(root: &Path, shown: Option<&str>) -> Result<Verdict, String> {
    let files = files::text_files(root)?;
    let crates = crates_of(&files);
    let mut offences = Vec::new();
    let mut upward = BTreeSet::new();
    let mut file_count = 0;
    for (name, sources) in &crates {
        let arrows = resolve::arrows(sources)?;
        file_count += arrows.len();
        let circles = circles::circles(&arrows);
        print_summary(name, &arrows, &circles);
        if shown == Some(name) {
            print_ties(&arrows, &circles);
        }
        offences.extend(check_circles(name, &circles, &CIRCLES));
        upward.extend(upward_imports(name, &arrows, &LAYERS));
    }
    offences.extend(check_upward(&upward, &UPWARD));
    Ok(Verdict { checked: format!("{} crates, {file_count} modules", crates.len()), offences })
}

/// The Rust files under `src/` of each crate, by the crate's folder name.
fn crates_of(files: &[TextFile]) -> BTreeMap<&str, Vec<&TextFile>> {
    let mut crates: BTreeMap<&str, Vec<&TextFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let parts: Vec<&str> = file.path.split('/').collect();
        match parts.as_slice() {
            ["crates", name, "src", ..] | [name @ "xtask", "src", ..] => crates.entry(name).or_default().push(file),
            _ => {}
        }
    }
    crates
}

fn print_summary(name: &str, arrows: &Arrows, circles: &[Vec<String>]) {
    let arrow_count: usize = arrows.values().map(BTreeMap::len).sum();
    let sizes: Vec<String> = circles.iter().map(|circle| circle.len().to_string()).collect();
    let sizes = if sizes.is_empty() { "none".to_owned() } else { format!("of {}", sizes.join(", ")) };
    println!("{name}: {} modules, {arrow_count} imports, circles: {sizes}", arrows.len());
}

/// Every import within the circles, with its names: what would have to move.
fn print_ties(arrows: &Arrows, circles: &[Vec<String>]) {
    for circle in circles {
        println!("\n    circle of {}", circle.len());
        for from in circle {
            for (to, names) in arrows[from].iter().filter(|(to, _)| circle.contains(to)) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                println!("    {} -> {}: {}", short(from), short(to), names.join(" "));
            }
        }
    }
}

/// A path without what all files of a crate begin with.
fn short(path: &str) -> &str {
    path.split_once("src/").map_or(path, |(_, file)| file)
}

fn check_circles(name: &str, circles: &[Vec<String>], allowed: &[(&str, usize)]) -> Option<Offence> {
    let listed = allowed.iter().find(|(listed, _)| *listed == name).map_or(0, |(_, size)| *size);
    let largest = circles.first().map_or(0, Vec::len);
    let first = circles.first().and_then(|circle| circle.first()).map_or(LIST, |path| path.as_str());
    match largest.cmp(&listed) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(Offence::new(
            first,
            1,
            format!("crate `{name}` has a circle of {largest} modules; {listed} are allowed"),
            "move what both sides use into a module below them, or pass it in",
        )),
        std::cmp::Ordering::Less => Some(Offence::new(
            LIST,
            1,
            format!("crate `{name}` may have a circle of {listed} modules and its largest has {largest}"),
            "write the smaller number into CIRCLES",
        )),
    }
}

/// The imports of a crate that lead to a higher layer.
fn upward_imports(name: &str, arrows: &Arrows, layers: &[(&str, &[&[&str]])]) -> Vec<(String, String)> {
    let Some((_, order)) = layers.iter().find(|(listed, _)| *listed == name) else { return Vec::new() };
    // The innermost module that is named counts.
    let height = |path: &str| {
        let module = source::module_path(path);
        let names = (1..=module.len()).rev().map(|depth| module[..depth].join("/"));
        names.into_iter().find_map(|name| order.iter().position(|layer| layer.contains(&&*name)))
    };
    let mut found = Vec::new();
    for (from, targets) in arrows {
        for to in targets.keys() {
            if let (Some(low), Some(high)) = (height(from), height(to))
                && high > low
            {
                found.push((from.clone(), to.clone()));
            }
        }
    }
    found
}

fn check_upward(found: &BTreeSet<(String, String)>, allowed: &[(&str, &str)]) -> Vec<Offence> {
    let is_allowed = |(from, to): &&(String, String)| allowed.iter().any(|(a, b)| a == from && b == to);
    let new = found.iter().filter(|import| !is_allowed(import)).map(|(from, to)| {
        Offence::new(
            from,
            1,
            format!("imports {to}, which stands in a higher layer"),
            "move the noun down, or pass it in",
        )
    });
    let gone = allowed.iter().filter(|(from, to)| !found.contains(&((*from).to_owned(), (*to).to_owned())));
    let gone = gone.map(|(from, to)| {
        Offence::new(LIST, 1, format!("the import of {to} by {from} is gone"), "take its line out of UPWARD")
    });
    new.chain(gone).collect()
}

#[cfg(test)]
mod tests;
