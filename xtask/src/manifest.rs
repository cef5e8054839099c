//! Reads the few facts of `Cargo.toml` and `Cargo.lock` that the dependency check needs.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

/// When a dependency is linked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Build,
    Dev,
}

impl Kind {
    pub fn table(self) -> &'static str {
        match self {
            Self::Normal => "dependencies",
            Self::Build => "build-dependencies",
            Self::Dev => "dev-dependencies",
        }
    }
}

/// The beginning of the names of our packages, but for the one that people depend on.
pub const PREFIX: &str = "lstore-";

/// The name of the crate in a package of ours: that of its folder. A package of others has its own name.
fn crate_of(package: &str) -> String {
    package.strip_prefix(PREFIX).unwrap_or(package).to_owned()
}

/// One dependency of one crate.
#[derive(Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The crate of ours, or the package's own name, also where the crate calls it otherwise.
    pub package: String,
    pub kind: Kind,
    /// Where in the manifest, counted from 1.
    pub line: usize,
}

/// A crate of the workspace.
#[derive(Debug)]
pub struct Manifest {
    /// The crate's.
    pub name: String,
    /// The package's, which others name.
    pub package: String,
    pub has_description: bool,
    /// Of the `Cargo.toml`, relative to the repository root.
    pub path: String,
    pub dependencies: Vec<Dependency>,
}

/// Names that `[workspace.dependencies]` gives to packages: key -> package, where they differ.
pub type Renames = BTreeMap<String, String>;

pub fn parse_renames(path: &str, text: &str) -> Result<Renames, String> {
    let document = DeTable::parse(text).map_err(|error| format!("{path}: {error}"))?;
    let mut renames = Renames::new();
    let workspace = document.get_ref().get("workspace").and_then(|value| value.get_ref().as_table());
    let table = workspace.and_then(|table| table.get("dependencies")).and_then(|value| value.get_ref().as_table());
    for (key, value) in table.into_iter().flatten() {
        if let Some(package) = package_name(value.get_ref()) {
            renames.insert(key.get_ref().to_string(), package);
        }
    }
    Ok(renames)
}

pub fn parse_manifest(path: &str, text: &str, renames: &Renames) -> Result<Manifest, String> {
    let document = DeTable::parse(text).map_err(|error| format!("{path}: {error}"))?;
    let root = document.get_ref();
    let of_package = |field: &str| root.get("package").and_then(|package| package.get_ref().get(field));
    let name = of_package("name").and_then(|name| name.get_ref().as_str());
    let name = name.ok_or_else(|| format!("{path}: no package.name"))?;
    let mut manifest = Manifest {
        name: crate_of(name),
        package: name.to_owned(),
        has_description: of_package("description").is_some(),
        path: path.to_owned(),
        dependencies: Vec::new(),
    };
    let reader = Reader { text, renames };
    reader.read_tables(root, &mut manifest.dependencies);
    if let Some(targets) = root.get("target").and_then(|value| value.get_ref().as_table()) {
        for platform in targets.values().filter_map(|value| value.get_ref().as_table()) {
            reader.read_tables(platform, &mut manifest.dependencies);
        }
    }
    manifest.dependencies.sort_by_key(|dependency| dependency.line);
    Ok(manifest)
}

struct Reader<'a> {
    text: &'a str,
    renames: &'a Renames,
}

impl Reader<'_> {
    /// The three dependency tables of a manifest or of one `[target]` in it.
    fn read_tables(&self, parent: &DeTable<'_>, dependencies: &mut Vec<Dependency>) {
        for kind in [Kind::Normal, Kind::Build, Kind::Dev] {
            let table = parent.get(kind.table()).and_then(|value| value.get_ref().as_table());
            for (key, value) in table.into_iter().flatten() {
                let name = key.get_ref().to_string();
                let package =
                    package_name(value.get_ref()).or_else(|| self.renames.get(&name).cloned()).unwrap_or(name);
                let line = self.text[..key.span().start].matches('\n').count() + 1;
                dependencies.push(Dependency { package: crate_of(&package), kind, line });
            }
        }
    }
}

fn package_name(value: &DeValue<'_>) -> Option<String> {
    Some(value.get("package")?.get_ref().as_str()?.to_owned())
}

/// `Cargo.lock` as a graph: package -> packages that it links, ours by the names of their crates. Several versions of a package are
/// several nodes, named as the lock file names them in references.
#[derive(Debug, Default)]
pub struct Lock {
    packages: BTreeMap<String, Vec<LockedPackage>>,
}

#[derive(Debug)]
struct LockedPackage {
    version: String,
    references: Vec<String>,
}

impl Lock {
    pub fn parse(path: &str, text: &str) -> Result<Self, String> {
        let document = DeTable::parse(text).map_err(|error| format!("{path}: {error}"))?;
        let mut lock = Self::default();
        let packages = document.get_ref().get("package").and_then(|value| value.get_ref().as_array());
        for package in packages.into_iter().flatten() {
            let field = |name: &str| package.get_ref().get(name).and_then(|value| value.get_ref().as_str());
            let name = field("name").ok_or_else(|| format!("{path}: a package without a name"))?;
            let references = package.get_ref().get("dependencies").and_then(|value| value.get_ref().as_array());
            let references = references.into_iter().flatten().filter_map(|entry| entry.get_ref().as_str());
            lock.packages.entry(crate_of(name)).or_default().push(LockedPackage {
                version: field("version").unwrap_or_default().to_owned(),
                references: references.map(crate_of).collect(),
            });
        }
        Ok(lock)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.packages.contains_key(name)
    }

    /// The packages that a reference (`name`, or `name version` where several are locked) links in turn.
    pub fn references(&self, reference: &str) -> impl Iterator<Item = &str> {
        let mut words = reference.split(' ');
        let name = words.next().unwrap_or_default();
        let version = words.next();
        let versions = self.packages.get(name).map(Vec::as_slice).unwrap_or_default();
        let chosen = versions.iter().filter(move |package| version.is_none_or(|version| version == package.version));
        chosen.flat_map(|package| package.references.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
[package]
name = 'lstore-engine'

[dependencies]
types.workspace = true
store = { package = 'lstore-lineage', path = '../lineage' }
arrow.workspace = true

[target.'cfg(unix)'.dependencies]
sync.workspace = true

[dev-dependencies]
testkit.workspace = true

[build-dependencies.cc]
version = '1'
";

    #[test]
    fn reads_every_table_with_lines_and_true_names() {
        let renames =
            parse_renames("Cargo.toml", "[workspace.dependencies]\narrow = { package = 'arrow-array' }").expect("TOML");
        let manifest = parse_manifest("crates/engine/Cargo.toml", MANIFEST, &renames).expect("TOML");
        let found: Vec<(&str, Kind, usize)> =
            manifest.dependencies.iter().map(|d| (d.package.as_str(), d.kind, d.line)).collect();
        let expected = [
            ("types", Kind::Normal, 5),
            ("lineage", Kind::Normal, 6),
            ("arrow-array", Kind::Normal, 7),
            ("sync", Kind::Normal, 10),
            ("testkit", Kind::Dev, 13),
            ("cc", Kind::Build, 15),
        ];
        assert_eq!((manifest.name.as_str(), manifest.package.as_str()), ("engine", "lstore-engine"));
        assert!(!manifest.has_description);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_manifest_without_a_package_is_an_error_that_names_the_file() {
        let error = parse_manifest("a/Cargo.toml", "[dependencies]", &Renames::new()).expect_err("no name");
        assert!(error.starts_with("a/Cargo.toml"));
    }

    #[test]
    fn a_lock_reference_with_a_version_leads_to_that_version_only() {
        let text = "\
[[package]]
name = 'syn'
version = '1.0.0'
dependencies = ['old']
[[package]]
name = 'syn'
version = '2.0.0'
dependencies = ['new']
";
        let lock = Lock::parse("Cargo.lock", text).expect("TOML");
        assert_eq!(lock.references("syn 2.0.0").collect::<Vec<_>>(), ["new"]);
        assert_eq!(lock.references("syn").collect::<Vec<_>>(), ["old", "new"]);
        assert!(!lock.contains("serde"));
    }
}
