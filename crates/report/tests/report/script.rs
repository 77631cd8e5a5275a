//! The page's script is what its sources make, and nothing in it can end the element it stands in.
//!
//! Without Node.js, or without the registry of its packages, the test that builds it skips, and says
//! so.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tapstone_testing::skip;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
const COMMITTED: &str = include_str!("../../src/html/page.js");

/// What npm says when it cannot reach the registry.
const UNREACHABLE: [&str; 7] = [
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "ENOTFOUND",
    "ETIMEDOUT",
];

#[test]
fn it_can_stand_in_a_page() {
    assert!(COMMITTED.len() < 40_000, "{} bytes", COMMITTED.len());
    assert!(!COMMITTED.to_ascii_lowercase().contains("</script"));
    assert!(!COMMITTED.contains("<!--"));
    // Whoever gets a page gets the licences of what is in it.
    assert!(COMMITTED.starts_with("/*!\n"));
    for part in ["d3-zoom", "d3-selection", "Copyright", "Permission to use, copy, modify"] {
        assert!(COMMITTED.split("*/").next().unwrap().contains(part), "{part}");
    }
}

#[test]
fn it_is_what_its_sources_make() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for file in ["package.json", "package-lock.json", ".npmrc", "build.js"] {
        fs::copy(Path::new(SOURCES).join(file), folder.join(file)).unwrap();
    }
    fs::create_dir(folder.join("src")).unwrap();
    for entry in fs::read_dir(format!("{SOURCES}/src")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.join("src").join(entry.file_name())).unwrap();
    }
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).current_dir(folder).output()
    };
    let Ok(installed) = run("npm", &["ci", "--prefer-offline"]) else {
        return skip("npm (scripts/setup test)");
    };
    let says = text(&installed);
    if !installed.status.success() && UNREACHABLE.iter().any(|code| says.contains(code)) {
        println!("{says}");
        return skip("the registry of npm");
    }
    assert!(installed.status.success(), "{says}");
    let built = run("node", &["build.js", "page.js"]).unwrap();
    assert!(built.status.success(), "{}", text(&built));
    let made = fs::read_to_string(folder.join("page.js")).unwrap();
    assert!(made == COMMITTED, "crates/report/src/html/page.js is old: npm run build in {SOURCES}");
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
