//! What the pages show is what is printed: commands whose output does not depend on the machine are
//! run again, on the files in docs/examples. (That every other command can be typed is tested beside
//! their definitions.)
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use tapstone_testing::private_environment;
use tempfile::TempDir;

/// Stands for any number of lines.
const LEFT_OUT: &str = "…";

/// Pages with such commands, and how many each has: a page that is read wrongly would have fewer.
const REPEATED: [(&str, usize); 7] = [
    ("ci.md", 1),
    ("compare.md", 2),
    ("door.md", 4),
    ("import.md", 3),
    ("jcop.md", 1),
    ("published-cases.md", 4),
    ("which.md", 0),
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The examples in a folder of their own.
fn examples() -> TempDir {
    let folder = TempDir::new().unwrap();
    for entry in fs::read_dir(docs().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    folder
}

/// Each command of a page with the lines below it.
fn shown(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for block in page.split("```text\n").skip(1) {
        let (block, _) = block.split_once("\n```").unwrap();
        let mut inside = false;
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                all.push((command, Vec::new()));
                inside = true;
            } else if inside {
                all.last_mut().unwrap().1.push(line);
            }
        }
    }
    all
}

/// Whether a command's output follows from what is in the folder, and from nothing else.
fn is_repeatable(words: &[&str], folder: &Path) -> bool {
    let known = match words {
        ["tapstone", "compare" | "import", ..]
        | ["tapstone", "door", "budget" | "what-if" | "simulate", ..] => true,
        ["tapstone", "report", rest @ ..] => !rest.contains(&"--output"),
        _ => false,
    };
    let written = words.iter().position(|word| *word == "--output").map(|place| place + 1);
    let is_there = |(place, word): (usize, &&str)| {
        let is_file =
            [".json", ".csv", ".toml", ".parquet"].iter().any(|ending| word.ends_with(ending));
        !is_file || Some(place) == written || folder.join(word).exists()
    };
    known && !words.contains(&LEFT_OUT) && words.iter().enumerate().all(is_there)
}

/// Everything that a terminal would show.
fn printed(words: &[&str], folder: &Path) -> String {
    let screen = folder.join("screen");
    let file = File::create(&screen).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    private_environment(&mut command);
    command.current_dir(folder).args(&words[1..]).env_remove("COLUMNS");
    let status = command.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
    let text = fs::read_to_string(&screen).unwrap();
    assert_ne!(status.code(), Some(2), "{words:?}: {text}");
    text
}

/// A line without the moment that stands at the end of a record's first line.
fn timeless(line: &str) -> &str {
    match line.rsplit_once(" · ") {
        Some((rest, moment)) if line.starts_with("tapstone ") && moment.ends_with(" UTC") => rest,
        _ => line.trim_end(),
    }
}

/// The first part of `shown`, between what is left out, that is not in `printed` in this order.
fn difference(shown: &[&str], printed: &[&str]) -> Option<String> {
    let lines = |lines: &[&str]| -> Vec<String> {
        let mut lines: Vec<_> = lines.iter().map(|line| timeless(line).to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    };
    let shown = lines(shown);
    let printed = lines(printed);
    let mut parts = shown.split(|line| line.trim() == LEFT_OUT);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else { return Some(first.join("\n")) };
    // Nothing after the last mark: then any number of lines may follow.
    let mut open = false;
    for part in parts {
        open = part.is_empty();
        if open {
            continue;
        }
        let found = rest.windows(part.len()).position(|lines| lines == part);
        let Some(place) = found else { return Some(part.join("\n")) };
        rest = &rest[place + part.len()..];
    }
    (!rest.is_empty() && !open).then(|| "the end".to_owned())
}

#[test]
fn what_the_pages_show_is_printed() {
    let mut wrong = Vec::new();
    for entry in fs::read_dir(docs()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let page = fs::read_to_string(&path).unwrap();
        // What one command of a page writes, the next one reads.
        let folder = examples();
        let mut repeated = 0;
        for (command, shown) in shown(&page) {
            let words: Vec<&str> = command.split(' ').collect();
            if !is_repeatable(&words, folder.path()) {
                continue;
            }
            repeated += 1;
            let text = printed(&words, folder.path());
            if let Some(line) = difference(&shown, &text.lines().collect::<Vec<_>>()) {
                wrong.push(format!("{name}: {command}\nis not printed: {line}\n{text}"));
            }
        }
        let expected = REPEATED.iter().find(|(page, _)| *page == name);
        let expected = expected.map_or(0, |(_, number)| *number);
        if repeated != expected {
            wrong.push(format!("{name}: {repeated} commands can be repeated, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Those into the sources too, which the book leaves out.
#[test]
fn links_of_the_pages_lead_to_files() {
    let mut wrong = Vec::new();
    let mut links = 0;
    for folder in ["..", ".", "examples", "mutants", "../applet", "../deploy"] {
        for entry in fs::read_dir(docs().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            let page = fs::read_to_string(&path).unwrap();
            for part in page.split("](").skip(1) {
                let link = part.split([')', '#']).next().unwrap_or_default();
                if link.is_empty() || link.contains(' ') || link.contains("://") {
                    continue;
                }
                links += 1;
                if !path.with_file_name(link).exists() {
                    wrong.push(format!("{}: {link}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(links > 300, "{links} links are all that was seen");
}

#[test]
fn differences_are_seen() {
    let printed = ["a", "b", "c", "d"];
    for (shown, missing) in [
        (&["a", "b", "c", "d"][..], None),
        (&["a", "…", "d"], None),
        (&["…", "b", "…"], None),
        (&["a", "c", "…"], Some("a\nc")),
        (&["…", "c", "…", "b"], Some("b")),
        (&["…", "b"], Some("the end")),
        (&["a", "…", "e"], Some("e")),
    ] {
        assert_eq!(difference(shown, &printed).as_deref(), missing, "{shown:?}");
    }
}
