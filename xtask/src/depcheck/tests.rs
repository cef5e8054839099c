//! The rules of the dependency check on small houses, right ones and wrong ones.

use super::*;
use crate::manifest::Renames;

fn crate_with(name: &str, body: &str) -> Manifest {
    let text = format!("[package]\nname = '{name}'\n{body}");
    manifest::parse_manifest(&format!("crates/{name}/Cargo.toml"), &text, &Renames::new()).expect("TOML")
}

fn house(crates: &[(&str, &str)]) -> Vec<Manifest> {
    crates.iter().map(|(name, body)| crate_with(name, body)).collect()
}

fn lock_of(packages: &[(&str, &[&str])]) -> Lock {
    let entry = |(name, uses): &(&str, &[&str])| {
        format!("[[package]]\nname = '{name}'\nversion = '1.0.0'\ndependencies = {uses:?}\n")
    };
    Lock::parse("Cargo.lock", &packages.iter().map(entry).collect::<String>()).expect("TOML")
}

#[test]
fn the_list_names_only_crates_that_it_knows_and_has_no_circle() {
    for (position, room) in ROOMS.iter().enumerate() {
        for target in room.may_use {
            let below = ROOMS.iter().position(|other| other.name == *target).expect("listed");
            assert!(below < position, "{} -> {target} does not point downward", room.name);
        }
    }
}

#[test]
fn a_package_is_named_after_its_folder_and_says_what_it_is() {
    let found = |folder: &str, package: &str, body: &str| {
        let text = format!("[package]\nname = '{package}'\n{body}");
        let manifest = manifest::parse_manifest(&format!("{folder}/Cargo.toml"), &text, &Renames::new());
        check_package(&manifest.expect("TOML")).len()
    };
    let described = "description = 'What it is'";
    assert_eq!(found("crates/engine", "lstore-engine", described), 0);
    assert_eq!((found("crates/lstore", "lstore", described), found("xtask", "xtask", described)), (0, 0));
    assert_eq!(found("crates/engine", "engine", described), 1);
    assert_eq!(found("crates/engine", "lstore-sql", described), 1);
    assert_eq!(found("crates/engine", "lstore-engine", ""), 1);
}

#[test]
fn siblings_share_types_and_sync_only() {
    let right = house(&[("types", ""), ("sync", ""), ("txn", "[dependencies]\ntypes.path='a'\nsync.path='b'")]);
    assert_eq!(check_edges(&right), []);

    let wrong = house(&[("txn", ""), ("lineage", "[dependencies]\ntxn.path = '../txn'")]);
    let offences = check_edges(&wrong);
    assert_eq!(offences.len(), 1);
    assert_eq!((offences[0].path.as_str(), offences[0].line), ("crates/lineage/Cargo.toml", 4));
    assert!(offences[0].what.contains("lineage -> txn"), "{}", offences[0]);
    assert!(offences[0].remedy.contains("types, sync"), "{}", offences[0]);
}

#[test]
fn a_renamed_or_platform_dependency_does_not_slip_through() {
    let body = "[target.'cfg(unix)'.dependencies]\nother = { path = '../sql', package = 'sql' }";
    assert_eq!(check_edges(&house(&[("sql", ""), ("engine", body)])).len(), 1);
}

#[test]
fn a_build_dependency_is_an_edge_too() {
    assert_eq!(check_edges(&house(&[("sql", ""), ("engine", "[build-dependencies]\nsql.path='a'")])).len(), 1);
}

#[test]
fn the_test_kit_is_for_tests() {
    let right = house(&[("testkit", ""), ("lineage", "[dev-dependencies]\ntestkit.path='a'")]);
    assert_eq!(check_edges(&right), []);
    let wrong = house(&[("testkit", ""), ("lineage", "[dependencies]\ntestkit.path='a'")]);
    let offences = check_edges(&wrong);
    assert_eq!(offences.len(), 1);
    assert!(offences[0].remedy.contains("[dev-dependencies]"), "{}", offences[0]);
}

#[test]
fn the_machine_room_of_graphics_cards_uses_none_of_ours() {
    assert_eq!(check_edges(&house(&[("types", ""), ("gpu", "[dependencies]\ntypes.path='a'")])).len(), 1);
}

#[test]
fn a_crate_that_is_not_listed_is_an_offence() {
    let offences = check_edges(&house(&[("attic", "")]));
    assert_eq!(offences.len(), 1);
    assert!(offences[0].remedy.contains(LIST));
}

#[test]
fn storage_that_reaches_datafusion_is_told_the_way() {
    let manifests = house(&[("types", ""), ("index", "[dependencies]\ntypes.path='a'\nglue = '1'")]);
    let lock = lock_of(&[
        ("types", &[]),
        ("index", &["glue", "types"]),
        ("glue", &["datafusion-common 1.0.0"]),
        ("datafusion-common", &[]),
    ]);
    let (offences, _) = check_reach(&manifests, &lock);
    assert_eq!(offences.len(), 1);
    assert_eq!(offences[0].line, 5);
    assert!(offences[0].what.contains("index -> glue -> datafusion-common"), "{}", offences[0]);
}

#[test]
fn tests_of_another_crate_do_not_count_but_own_tests_do() {
    let manifests = house(&[("types", "[dev-dependencies]\nheavy='1'"), ("sync", "[dependencies]\ntypes.path='a'")]);
    let lock = lock_of(&[("types", &["heavy"]), ("sync", &["types"]), ("heavy", &["datafusion"]), ("datafusion", &[])]);
    let (offences, _) = check_reach(&manifests, &lock);
    let paths: Vec<&str> = offences.iter().map(|offence| offence.path.as_str()).collect();
    assert_eq!(paths, ["crates/types/Cargo.toml"]);
}

#[test]
fn a_lock_file_that_lags_behind_is_an_offence() {
    let (offences, _) = check_reach(&house(&[("types", "")]), &Lock::default());
    assert_eq!(offences.len(), 1);
}

#[test]
fn sql_may_link_datafusion() {
    let manifests = house(&[("sql", "[dependencies]\ndatafusion='1'")]);
    let lock = lock_of(&[("sql", &["datafusion"]), ("datafusion", &[])]);
    assert_eq!(check_reach(&manifests, &lock), (vec![], 0));
}

#[test]
fn the_database_links_nothing_that_only_figures_use() {
    let manifests = house(&[
        ("latches", ""),
        ("lab", "[dependencies]\nlatches.path='a'"),
        ("index", "[dependencies]\nlatches.path='a'"),
        ("engine", "[dependencies]\nindex.path='a'"),
        ("sql", "[dependencies]\nengine.path='a'\n[build-dependencies]\nlab.path='b'"),
    ]);
    let offences = check_figures(&manifests);
    let places: Vec<(&str, usize)> = offences.iter().map(|offence| (offence.path.as_str(), offence.line)).collect();
    assert_eq!(places, [("crates/sql/Cargo.toml", 6), ("crates/index/Cargo.toml", 4)]);
    assert!(offences[0].what.contains("sql -> lab"), "{}", offences[0]);
    assert!(offences[1].what.contains("engine -> index -> latches"), "{}", offences[1]);
}

#[test]
fn tests_of_the_database_may_use_what_figures_use() {
    let manifests = house(&[
        ("latches", ""),
        ("index", "[dev-dependencies]\nlatches.path='a'"),
        ("engine", "[dependencies]\nindex.path='a'"),
    ]);
    assert_eq!(check_figures(&manifests), []);
    assert_eq!(check_edges(&manifests), []);
}

#[test]
fn outside_the_fence_every_crate_root_forbids_unsafe_code() {
    let manifests = house(&[("txn", ""), ("sync", "")]);
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let files = [
        file("crates/txn/src/lib.rs", "//! T.\n"),
        file("crates/txn/src/bin/tool.rs", "//! B.\n#![forbid(unsafe_code)]\n"),
        file("crates/txn/src/inner.rs", "//! I.\n"),
        file("crates/sync/src/lib.rs", "//! S.\n"),
    ];
    let (offences, root_count) = check_fence(&manifests, &files);
    let paths: Vec<&str> = offences.iter().map(|offence| offence.path.as_str()).collect();
    assert_eq!(paths, ["crates/txn/src/lib.rs"]);
    assert_eq!(root_count, 3);
}
