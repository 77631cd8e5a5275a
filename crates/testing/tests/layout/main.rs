//! The workspace is laid out as `crates/layout.toml` says: crates use only what they may, all that
//! is allowed is needed, no crate is too large, and files depend on one another one way only.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod circles;
mod lines;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// `crates/layout.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layout {
    most_lines: usize,
    larger: BTreeMap<String, usize>,
    uses: BTreeMap<String, BTreeSet<String>>,
    tests_use: BTreeMap<String, BTreeSet<String>>,
    same_names: BTreeMap<String, String>,
}

impl Layout {
    fn read() -> Self {
        let text = std::fs::read_to_string(format!("{CRATES}/layout.toml")).unwrap();
        toml::from_str(&text).unwrap()
    }
}

/// A member of the workspace.
struct Member {
    folder: PathBuf,
    uses: BTreeSet<String>,
    tests_use: BTreeSet<String>,
}

/// What `cargo metadata` says of the workspace, by the names of the members' folders.
fn members() -> BTreeMap<String, Member> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(CRATES)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let folder = |package: &Value| {
        Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
    };
    let name = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().to_owned();
    let names: BTreeMap<&str, String> = packages
        .iter()
        .map(|package| (package["name"].as_str().unwrap(), name(&folder(package))))
        .collect();
    let dependencies = |package: &Value, for_tests: bool| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|dependency| (dependency["kind"] == "dev") == for_tests)
            .filter_map(|dependency| names.get(dependency["name"].as_str().unwrap()).cloned())
            .collect()
    };
    let member = |package: &Value| Member {
        folder: folder(package),
        uses: dependencies(package, false),
        tests_use: dependencies(package, true),
    };
    packages.iter().map(|package| (name(&folder(package)), member(package))).collect()
}

/// What is there against what is allowed, as sentences.
fn deviations(
    title: &str,
    allowed: &BTreeMap<String, BTreeSet<String>>,
    found: &BTreeMap<String, &BTreeSet<String>>,
) -> Vec<String> {
    let edges = |from: &str, to: &BTreeSet<String>| -> Vec<String> {
        to.iter().map(|to| format!("{from} -> {to}")).collect()
    };
    let allowed: BTreeSet<String> = allowed.iter().flat_map(|(from, to)| edges(from, to)).collect();
    let found: BTreeSet<String> = found.iter().flat_map(|(from, to)| edges(from, to)).collect();
    let new = found.difference(&allowed).map(|edge| format!("{title}: {edge} is not allowed"));
    let gone = allowed.difference(&found).map(|edge| format!("{title}: {edge} is not there"));
    new.chain(gone).collect()
}

#[test]
fn crates_use_only_what_they_may() {
    let layout = Layout::read();
    let members = members();
    let named: Vec<&String> = layout.uses.keys().collect();
    assert_eq!(named, members.keys().collect::<Vec<_>>(), "[uses] names all members");
    let uses = members.iter().map(|(name, it)| (name.clone(), &it.uses)).collect();
    let tests_use = members.iter().map(|(name, it)| (name.clone(), &it.tests_use)).collect();
    let mut wrong = deviations("[uses]", &layout.uses, &uses);
    wrong.extend(deviations("[tests_use]", &layout.tests_use, &tests_use));
    assert!(wrong.is_empty(), "{wrong:#?}\nhint: crates/layout.toml says what may use what");
}

#[test]
fn an_edge_too_many_and_an_edge_too_few_are_deviations() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let allowed = BTreeMap::from([("a".to_owned(), names(&["b", "c"]))]);
    let exact: BTreeSet<String> = names(&["b", "c"]);
    let other: BTreeSet<String> = names(&["c", "d"]);
    let found = |uses| BTreeMap::from([("a".to_owned(), uses)]);
    assert_eq!(deviations("[uses]", &allowed, &found(&exact)), [""; 0]);
    assert_eq!(
        deviations("[uses]", &allowed, &found(&other)),
        ["[uses]: a -> d is not allowed", "[uses]: a -> b is not there"]
    );
}

#[test]
fn no_crate_is_too_large() {
    let layout = Layout::read();
    let members = members();
    let mut wrong = Vec::new();
    for (name, member) in &members {
        let lines = lines::of_folder(&member.folder.join("src"));
        println!("{lines:>6} {name}");
        match layout.larger.get(name) {
            None if lines > layout.most_lines => {
                wrong.push(format!("{name} has {lines} lines, and may have {}", layout.most_lines));
            }
            Some(may) if lines > *may => {
                wrong.push(format!("{name} has {lines} lines, and may have {may} until it is cut"));
            }
            Some(_) if lines <= layout.most_lines => {
                wrong.push(format!("{name} has {lines} lines: take it out of [larger]"));
            }
            _ => {}
        }
    }
    let unknown = layout.larger.keys().filter(|name| !members.contains_key(*name));
    wrong.extend(unknown.map(|name| format!("[larger] names {name}, which is no crate")));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_files_of_a_crate_depend_on_each_other_in_a_circle() {
    // The probe is here, too, which is no member of the workspace; modules for tests are not.
    let folders = std::fs::read_dir(CRATES).unwrap().map(|entry| entry.unwrap().path());
    let crates: Vec<PathBuf> = folders.filter(|folder| folder.join("src").is_dir()).collect();
    assert!(crates.len() > 30, "{crates:?}");
    let of_crate = |folder: &PathBuf| -> Vec<String> {
        let circles = circles::of_crate(&folder.join("src"));
        circles.iter().map(|it| format!("{}: {}", folder.display(), it.join(", "))).collect()
    };
    let circles: Vec<String> = crates.iter().flat_map(of_crate).collect();
    assert!(
        circles.is_empty(),
        "{circles:#?}\nhint: what two of them share has a file of its own, or stands in the one that \
         needs less"
    );
}

#[test]
fn a_name_of_a_type_means_one_thing() {
    let layout = Layout::read();
    let mut crates_by_name: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (member, it) in &members() {
        for name in names::of_public_types(&it.folder.join("src")) {
            crates_by_name.entry(name).or_default().insert(member.clone());
        }
    }
    crates_by_name.retain(|_, members| members.len() > 1);
    let new = crates_by_name.iter().filter(|(name, _)| !layout.same_names.contains_key(*name));
    let mut wrong: Vec<String> =
        new.map(|(name, members)| format!("{name} is a type of {members:?}")).collect();
    let gone = layout.same_names.keys().filter(|name| !crates_by_name.contains_key(*name));
    wrong.extend(gone.map(|name| format!("[same_names] names {name}, which stands once at most")));
    assert!(
        wrong.is_empty(),
        "{wrong:#?}\nhint: give one of them another name, or say in [same_names] of \
         crates/layout.toml what both mean"
    );
}
