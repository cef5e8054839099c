//! Holds the architecture: which crate may depend on which, as a list of what is allowed.
//!
//! ```text
//! types <- sync <- { index, lineage, txn, durability } <- engine <- sql <- server
//! ```
//!
//! Five rules: the edges between our own crates are those of [`ROOMS`]; the storage crates never link
//! DataFusion, however indirectly; the database never links the crates of [`FIGURES`]; unsafe code stays inside
//! [`UNSAFE_FENCE`], every other crate root forbids it; the package of `crates/NAME` is `lstore-NAME`, and says what it is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use crate::files::{self, TextFile};
use crate::manifest::{self, Dependency, Kind, Lock, Manifest};
use crate::offence::{Offence, Verdict};
use crate::tokens;

/// A crate and the crates of ours that it may import.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
    /// The crates that its tests may use beyond that; `testkit` need not be named.
    tests_may_use: &'static [&'static str],
}

const fn room(name: &'static str, may_use: &'static [&'static str], tests_may_use: &'static [&'static str]) -> Room {
    Room { name, may_use, tests_may_use }
}

/// The allowed edges. Whatever is not here is forbidden.
const ROOMS: [Room; 22] = [
    room("types", &[], &[]),
    room("sync", &["types"], &[]),
    room("costs", &[], &[]),
    room("latches", &["sync"], &[]),
    room("sim", &["sync", "latches"], &[]),
    room("snapshot", &["sync"], &[]),
    room("index", &["types", "sync"], &["latches"]),
    room("lineage", &["types", "sync"], &[]),
    room("txn", &["types", "sync"], &[]),
    room("durability", &["types", "sync"], &[]),
    room("heap", &["sync", "durability", "snapshot"], &[]),
    room("engine", &["types", "sync", "snapshot", "index", "lineage", "txn", "durability"], &[]),
    room("sql", &["types", "costs", "engine"], &["durability"]),
    room("gpu", &[], &[]),
    room("devices", &["sql", "gpu"], &["engine"]),
    room("server", &["types", "sql"], &["engine"]),
    room(
        "lab",
        &["types", "sync", "latches", "sim", "index", "durability", "heap", "snapshot", "costs", "engine", "sql"],
        &[],
    ),
    room("cli", &["engine", "sql", "server", "lab", "gpu", "devices"], &[]),
    room("lstore", &["engine", "sql", "server", "snapshot", "cli"], &["lab"]),
    room("python", &["engine", "sql", "snapshot"], &[]),
    room("testkit", &["types", "durability"], &[]),
    room("xtask", &[], &[]),
];

/// Only tests may use it.
const TEST_ONLY: &str = "testkit";

/// The crates that must stay free of [`HEAVY`].
const STORAGE: [&str; 8] = ["types", "sync", "snapshot", "index", "lineage", "txn", "durability", "engine"];

/// The crates that only figures and tests use.
const FIGURES: [&str; 4] = ["latches", "sim", "heap", "lab"];

/// What an application links that embeds the database: these crates and whatever they link stay free of [`FIGURES`].
const DATABASE: [&str; 4] = ["engine", "sql", "server", "python"];

/// DataFusion and the crates that it is made of.
const HEAVY: &str = "datafusion";

/// The crates that may contain unsafe code; all others forbid it in their root.
const UNSAFE_FENCE: [&str; 8] = ["sync", "latches", "snapshot", "index", "lineage", "durability", "gpu", "python"];

const LIST: &str = "xtask/src/depcheck.rs";

pub fn run(root: &Path) -> Result<Verdict, String> {
    let files = files::text_files(root)?;
    let manifests = read_manifests(&files)?;
    let lock = Lock::parse("Cargo.lock", text_of(&files, "Cargo.lock")?)?;
    let mut offences = check_edges(&manifests);
    offences.extend(manifests.iter().flat_map(check_package));
    let (reach, walked_count) = check_reach(&manifests, &lock);
    offences.extend(reach);
    offences.extend(check_figures(&manifests));
    let (fence, root_count) = check_fence(&manifests, &files);
    offences.extend(fence);
    let ours: BTreeSet<&str> = manifests.iter().map(|manifest| manifest.name.as_str()).collect();
    let edges = manifests.iter().flat_map(|manifest| &manifest.dependencies);
    let edge_count = edges.filter(|dependency| ours.contains(dependency.package.as_str())).count();
    let checked = format!(
        "{} crates, {edge_count} edges between them, {walked_count} packages under the storage crates, {root_count} crate roots",
        manifests.len()
    );
    Ok(Verdict { checked, offences })
}

fn read_manifests(files: &[TextFile]) -> Result<Vec<Manifest>, String> {
    let renames = manifest::parse_renames("Cargo.toml", text_of(files, "Cargo.toml")?)?;
    let mut manifests = Vec::new();
    for file in files.iter().filter(|file| is_member_manifest(&file.path)) {
        manifests.push(manifest::parse_manifest(&file.path, &file.text, &renames)?);
    }
    Ok(manifests)
}

/// The members of the workspace: `crates/NAME/Cargo.toml` and `xtask/Cargo.toml`.
fn is_member_manifest(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts.as_slice(), ["crates", _, "Cargo.toml"] | ["xtask", "Cargo.toml"])
}

fn text_of<'a>(files: &'a [TextFile], path: &str) -> Result<&'a str, String> {
    let file = files.iter().find(|file| file.path == path);
    file.map(|file| file.text.as_str()).ok_or_else(|| format!("{path} is missing"))
}

/// The crates with packages that have their own names: the one that people depend on, and the checks.
const PLAIN: [&str; 2] = ["lstore", "xtask"];

/// The name and the description of a package.
fn check_package(manifest: &Manifest) -> Vec<Offence> {
    let folder = manifest.path.trim_end_matches("/Cargo.toml").trim_start_matches("crates/");
    let wanted = if PLAIN.contains(&folder) { folder.to_owned() } else { format!("{}{folder}", manifest::PREFIX) };
    let mut offences = Vec::new();
    if manifest.package != wanted {
        let remedy = format!("call it `{wanted}`, and its library `{folder}` under [lib]");
        offences.push(Offence::new(&manifest.path, 1, format!("the package is called `{}`", manifest.package), remedy));
    }
    if !manifest.has_description {
        let what = format!("the package `{}` has no description", manifest.package);
        offences.push(Offence::new(&manifest.path, 1, what, "say in a line what it is"));
    }
    offences
}

fn check_edges(manifests: &[Manifest]) -> Vec<Offence> {
    let ours: BTreeSet<&str> = manifests.iter().map(|manifest| manifest.name.as_str()).collect();
    let mut offences = Vec::new();
    for manifest in manifests {
        let Some(room) = ROOMS.iter().find(|room| room.name == manifest.name) else {
            let what = format!("crate `{}` is not in the list of rooms", manifest.name);
            offences.push(Offence::new(
                &manifest.path,
                1,
                what,
                format!("give it a line, with its edges, in ROOMS of {LIST}"),
            ));
            continue;
        };
        let inner = manifest.dependencies.iter().filter(|dependency| ours.contains(dependency.package.as_str()));
        offences.extend(inner.filter_map(|dependency| check_edge(manifest, room, dependency)));
    }
    offences
}

fn check_edge(manifest: &Manifest, room: &Room, dependency: &Dependency) -> Option<Offence> {
    let target = dependency.package.as_str();
    let is_test = dependency.kind == Kind::Dev;
    let is_allowed =
        room.may_use.contains(&target) || (is_test && (target == TEST_ONLY || room.tests_may_use.contains(&target)));
    if is_allowed {
        return None;
    }
    let what = format!("edge {} -> {target} ({}) is not allowed", room.name, dependency.kind.table());
    let remedy = if target == TEST_ONLY {
        format!("move `{target}` to [dev-dependencies]")
    } else if room.may_use.is_empty() {
        format!(
            "`{}` depends on none of our crates: pass in what it needs, or move the code to the crate above",
            room.name
        )
    } else {
        format!(
            "`{}` may use {}: let it declare a trait that the crate above both supplies, or move the code there",
            room.name,
            room.may_use.join(", ")
        )
    };
    Some(Offence::new(&manifest.path, dependency.line, what, remedy))
}

/// Walks from every storage crate through all that it links, tests included: DataFusion under the tests
/// of a storage crate would cost minutes of every build as well. Also gives the number of packages seen.
fn check_reach(manifests: &[Manifest], lock: &Lock) -> (Vec<Offence>, usize) {
    let by_name: BTreeMap<&str, &Manifest> = manifests.iter().map(|m| (m.name.as_str(), m)).collect();
    let mut offences = Vec::new();
    let mut all_seen = BTreeSet::new();
    for manifest in STORAGE.iter().filter_map(|name| by_name.get(name)) {
        if !lock.contains(&manifest.name) {
            let what = format!("Cargo.lock does not know the crate `{}`", manifest.name);
            offences.push(Offence::new(
                &manifest.path,
                1,
                what,
                "run `cargo metadata --offline` and commit Cargo.lock",
            ));
        }
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        let mut queue = VecDeque::from([manifest.name.clone()]);
        while let Some(package) = queue.pop_front() {
            for next in linked_by(&package, &manifest.name, &by_name, lock) {
                if next == manifest.name || seen.contains_key(next) {
                    continue;
                }
                seen.insert(next.to_owned(), package.clone());
                if is_heavy(next) {
                    offences.push(reach_offence(manifest, next, &seen));
                } else {
                    queue.push_back(next.to_owned());
                }
            }
        }
        all_seen.extend(seen.into_keys());
    }
    (offences, all_seen.len())
}

/// The packages that `package` links. Cargo.lock mixes the dependencies of our crates' tests in; the manifest tells
/// them apart, and they count only for the crate `start` that the walk began at.
fn linked_by<'a>(
    package: &str,
    start: &str,
    by_name: &BTreeMap<&str, &Manifest>,
    lock: &'a Lock,
) -> impl Iterator<Item = &'a str> {
    let own: Option<BTreeSet<String>> = by_name.get(package).map(|manifest| {
        let counted = manifest.dependencies.iter().filter(|d| d.kind != Kind::Dev || package == start);
        counted.map(|dependency| dependency.package.clone()).collect()
    });
    lock.references(package)
        .filter(move |reference| own.as_ref().is_none_or(|names| names.contains(package_of(reference))))
}

fn package_of(reference: &str) -> &str {
    reference.split(' ').next().unwrap_or_default()
}

fn is_heavy(reference: &str) -> bool {
    package_of(reference).split('-').next() == Some(HEAVY)
}

fn reach_offence(manifest: &Manifest, found: &str, came_from: &BTreeMap<String, String>) -> Offence {
    let mut way = vec![found];
    while let Some(previous) = came_from.get(way[way.len() - 1]) {
        way.push(previous);
    }
    way.reverse();
    let first = package_of(way.get(1).copied().unwrap_or(found));
    let line = manifest.dependencies.iter().find(|d| d.package == first).map_or(1, |d| d.line);
    let what = format!("storage crate `{}` links {HEAVY}: {}", manifest.name, way.join(" -> "));
    Offence::new(
        &manifest.path,
        line,
        what,
        "keep DataFusion in `sql`: cut the first edge that is not needed for storage",
    )
}

/// Walks down from the crates of the database, tests left out, and names each edge that leads to a crate of the figures.
fn check_figures(manifests: &[Manifest]) -> Vec<Offence> {
    let by_name: BTreeMap<&str, &Manifest> = manifests.iter().map(|m| (m.name.as_str(), m)).collect();
    let starts = DATABASE.iter().filter_map(|name| by_name.get(name));
    let mut queue: VecDeque<(&Manifest, String)> = starts.map(|start| (*start, start.name.clone())).collect();
    let mut seen = BTreeSet::new();
    let mut offences = Vec::new();
    while let Some((manifest, way)) = queue.pop_front() {
        if !seen.insert(&manifest.name) {
            continue;
        }
        for dependency in manifest.dependencies.iter().filter(|dependency| dependency.kind != Kind::Dev) {
            let target = dependency.package.as_str();
            let way = format!("{way} -> {target}");
            if FIGURES.contains(&target) {
                let what = format!("the database links `{target}`, which is for figures alone: {way}");
                let remedy = format!("move what the database needs of `{target}` down, or the use of it to `lab`");
                offences.push(Offence::new(&manifest.path, dependency.line, what, remedy));
            } else if let Some(next) = by_name.get(target) {
                queue.push_back((next, way));
            }
        }
    }
    offences
}

/// Also gives the number of crate roots looked at.
fn check_fence(manifests: &[Manifest], files: &[TextFile]) -> (Vec<Offence>, usize) {
    let mut offences = Vec::new();
    let mut root_count = 0;
    for manifest in manifests {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        for file in files.iter().filter(|file| is_crate_root(&file.path, folder)) {
            root_count += 1;
            if !UNSAFE_FENCE.contains(&manifest.name.as_str()) {
                offences.extend(check_root(file));
            }
        }
    }
    (offences, root_count)
}

/// `src/lib.rs`, `src/main.rs` and `src/bin/*.rs` of the crate in `folder`.
fn is_crate_root(path: &str, folder: &str) -> bool {
    let Some(inner) = path.strip_prefix(folder) else {
        return false;
    };
    let parts: Vec<&str> = inner.split('/').collect();
    match parts.as_slice() {
        ["src", "lib.rs" | "main.rs"] | ["src", "bin", _, "main.rs"] => true,
        ["src", "bin", file] => Path::new(file).extension().is_some_and(|extension| extension == "rs"),
        _ => false,
    }
}

fn check_root(file: &TextFile) -> Option<Offence> {
    let (line, what) = match tokens::parse(&file.text) {
        Ok(stream) if tokens::forbids_unsafe(stream.clone()) => return None,
        Ok(_) => (1, "crate root without `#![forbid(unsafe_code)]`".to_owned()),
        Err((line, reason)) => (line, format!("not readable as Rust: {reason}")),
    };
    let fence = UNSAFE_FENCE.join(", ");
    Some(Offence::new(&file.path, line, what, format!("add it below the header; only {fence} may write unsafe code")))
}

#[cfg(test)]
mod tests;
