//! Pages in a browser: Chromium looks at them with and without a script, in both themes, wide,
//! narrow and on paper; axe-core looks for what keeps people out; and what a hostile device or user
//! has put into a record does nothing. `crates/report/page/test` says what is looked at.
//!
//! Without Chromium, Node.js or the packages of `crates/report/page` the tests skip, and say so.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod hostile;
mod pages;

use std::env;
use std::path::Path;
use std::process::{Command, Output};

use tapstone_testing::skip;

use crate::pages::Pages;

/// Where the script's packages are, and what looks at pages.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../report/page");

/// Checks of each page, and those of a page with a timeline, or with charts over time.
const FOR_EACH: usize = 36;
const FOR_TIMELINE: usize = 8;
const FOR_COURSE: usize = 5;

#[test]
fn pages_are_what_they_should_be_in_a_browser() {
    let Some(node) = node() else { return };
    let mut pages = Pages::new();
    pages.of_examples();
    pages.of_hostile_records();
    pages.of_a_timeline();
    pages.of_courses();
    let output = look_at(&node, pages.folder());
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    let (passed, others): (Vec<_>, Vec<_>) = said.lines().partition(|it| it.starts_with("ok "));
    let others = others.join("\n");
    assert!(output.status.success(), "{others}\n{}", String::from_utf8_lossy(&output.stderr));
    let expected = FOR_EACH * pages.count() + FOR_TIMELINE + 2 * FOR_COURSE;
    assert_eq!(passed.len(), expected, "{others}");
}

#[test]
fn a_page_that_does_what_it_should_not_is_noticed() {
    let Some(node) = node() else { return };
    let mut pages = Pages::new();
    pages.of_a_page_that_misbehaves();
    let output = look_at(&node, pages.folder());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = [
        "request: http://127.0.0.1:9/",
        "dialog: 1",
        "image-alt",
        "of 390 pixels",
        "FAILED wrong: it is small, and has no id twice",
        "FAILED wrong: nothing but the page's own script and style is in it",
        "FAILED wrong: its policy refuses what it was made to refuse",
    ];
    for expected in expected {
        assert!(said.contains(expected), "{expected} is not in:\n{said}");
    }
}

fn look_at(node: &str, folder: &Path) -> Output {
    let mut command = Command::new(node);
    command.arg(format!("{FOLDER}/test/browser.js")).arg(folder);
    command.output().unwrap()
}

/// Node.js, when all is there that looking at pages needs. `None` has been said.
fn node() -> Option<String> {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let chromium = env::var("TAPSTONE_TEST_CHROMIUM").unwrap_or("/usr/bin/chromium".into());
    let packages = format!("{FOLDER}/node_modules/playwright-core");
    let missing = [
        ("node", runs("node")),
        (chromium.as_str(), Path::new(&chromium).exists()),
        (packages.as_str(), Path::new(&packages).exists()),
    ];
    if let Some((missing, _)) = missing.iter().find(|(_, there)| !there) {
        skip(&format!("{missing} (scripts/setup test)"));
        return None;
    }
    Some("node".into())
}
