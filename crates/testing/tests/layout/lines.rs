//! Lines of Rust in a folder, inline tests apart.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of all `.rs` files below a folder, without modules that only tests have: neither those that
/// stand in a file nor those with files of their own.
pub(crate) fn of_folder(folder: &Path) -> usize {
    let mut files = Vec::new();
    collect(folder, &mut files);
    let split: Vec<(PathBuf, Split)> = files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path, Split::new(&text))
        })
        .collect();
    let test_files: BTreeSet<PathBuf> = split
        .iter()
        .flat_map(|(path, split)| split.test_modules.iter().map(|name| beside(path, name)))
        .collect();
    let is_test = |path: &Path| {
        // `tests.rs`, or anything in the folder `tests`.
        path.ancestors().any(|part| test_files.contains(&part.with_extension("")))
    };
    split.iter().filter(|(path, _)| !is_test(path)).map(|(_, split)| split.lines()).sum()
}

/// All `.rs` files below a folder.
pub(crate) fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Where the files of a module are, without the extension: `src/a.rs` has its module `b` in
/// `src/a/b`, `src/lib.rs` and `src/a/mod.rs` have it beside them.
fn beside(path: &Path, module: &str) -> PathBuf {
    let stem = path.file_stem().unwrap();
    if stem == "lib" || stem == "main" || stem == "mod" {
        path.with_file_name(module)
    } else {
        path.with_extension("").join(module)
    }
}

/// A file's text without the items that only tests have.
pub(crate) fn without_tests(text: &str) -> String {
    Split::new(text).kept
}

/// A file's text without what only tests have, and the modules that it declares for them.
struct Split {
    kept: String,
    test_modules: Vec<String>,
}

impl Split {
    fn new(text: &str) -> Self {
        let mut split = Self { kept: String::new(), test_modules: Vec::new() };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line != "#[cfg(test)]" {
                split.kept.push_str(line);
                split.kept.push('\n');
                continue;
            }
            // The item that it stands before, further attributes apart.
            let item = lines.by_ref().find(|line| !line.starts_with("#[")).unwrap_or_default();
            if let Some(module) = item.strip_suffix(';').and_then(|item| item.split_once("mod ")) {
                split.test_modules.push(module.1.to_owned());
            } else if !item.ends_with([';', '}']) {
                // As formatted, an item ends with its closing brace at the start of a line.
                lines.by_ref().find(|line| *line == "}");
            }
        }
        split
    }

    fn lines(&self) -> usize {
        self.kept.lines().count()
    }
}

#[test]
fn inline_tests_are_no_lines_of_a_file() {
    let text = "\
//! A file.

#[cfg(test)]
mod samples;
#[cfg(test)]
pub(crate) mod words;
#[cfg(test)]
use std::fs;

fn body() {
}

#[cfg(test)]
#[expect(clippy::unwrap_used)]
mod tests {
    #[test]
    fn t() {
    }
}
";
    let split = Split::new(text);
    assert_eq!((split.lines(), split.test_modules), (6, vec!["samples".into(), "words".into()]));
    assert!(split.kept.ends_with("fn body() {\n}\n\n"), "{}", split.kept);
}

#[test]
fn files_that_only_tests_have_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a;\n#[cfg(test)]\nmod samples;\n");
    write("samples.rs", "fn s() {}\n");
    write("a.rs", "mod tests_of_others;\n#[cfg(test)]\nmod tests;\n");
    write("a/tests.rs", "mod more;\n");
    write("a/tests/more.rs", "fn m() {}\n");
    write("a/tests_of_others.rs", "fn o() {}\nfn p() {}\n");
    assert_eq!(of_folder(folder.path()), 4);
}
