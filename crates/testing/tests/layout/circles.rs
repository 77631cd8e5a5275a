//! Which files of a crate take names from which others, and where that goes around in a circle.
//!
//! What a file takes from the modules that it is in is no edge: they are one subject.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::lines::{collect, without_tests};

/// The path of a module inside its crate; of the crate's own file it is empty.
type ModulePath = Vec<String>;

/// A file of a crate: the paths that it names, and those that it gives on under names of its own.
#[derive(Default)]
struct ModuleFile {
    named: Vec<Vec<String>>,
    given_on: BTreeMap<String, Vec<String>>,
}

/// Circles of files below a crate's `src`, each as its modules in order.
pub(crate) fn of_crate(src: &Path) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    collect(src, &mut paths);
    let texts = paths.iter().map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        (module_of(path.strip_prefix(src).unwrap()), text)
    });
    among(texts.collect())
}

fn module_of(file: &Path) -> ModulePath {
    let mut parts: ModulePath =
        file.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if matches!(parts.last().unwrap().as_str(), "lib" | "main" | "mod") {
        parts.pop();
    }
    parts
}

fn among(texts: Vec<(ModulePath, String)>) -> Vec<Vec<String>> {
    let of_tests = |module: &ModulePath| module.iter().any(|part| part.ends_with("tests"));
    let files: BTreeMap<ModulePath, ModuleFile> = texts
        .into_iter()
        .filter(|(module, _)| !of_tests(module))
        .map(|(module, text)| (module, ModuleFile::read(&text)))
        .collect();
    let mut edges: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> = BTreeMap::new();
    for (module, file) in &files {
        let targets = file.named.iter().filter_map(|path| resolved(&files, module, path, 0));
        let targets = targets.filter(|target| !module.starts_with(target));
        edges.insert(module, targets.collect());
    }
    let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
        edges.keys().map(|module| (*module, reached_from(&edges, module))).collect();
    let circle = |module: &ModulePath| -> Vec<String> {
        let all = reached[module].iter().filter(|other| reached[**other].contains(module));
        all.map(|module| module.join("/")).collect()
    };
    let in_circles = reached.iter().filter(|(module, reached)| reached.contains(*module));
    let circles: BTreeSet<Vec<String>> = in_circles.map(|(module, _)| circle(module)).collect();
    circles.into_iter().collect()
}

fn reached_from<'a>(
    edges: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>,
    start: &ModulePath,
) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&ModulePath> = edges[start].iter().copied().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(&edges[module]);
        }
    }
    reached
}

/// The module whose file has what a path names, seen from a module; `None` for what is no part of
/// this crate. Names that a file gives on lead to where they come from.
fn resolved<'a>(
    files: &'a BTreeMap<ModulePath, ModuleFile>,
    from: &ModulePath,
    path: &[String],
    depth: usize,
) -> Option<&'a ModulePath> {
    /// No name is given on so often.
    const DEEPEST: usize = 8;
    let mut module = from.clone();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => {
            module.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                module.pop()?;
                rest = &rest[1..];
            }
        }
        first => {
            files.get(&child_of(from, first))?;
        }
    }
    while let Some(first) = rest.first() {
        let child = child_of(&module, first);
        if !files.contains_key(&child) {
            break;
        }
        module = child;
        rest = &rest[1..];
    }
    let (known, file) = files.get_key_value(&module)?;
    let given_on = rest.first().and_then(|name| file.given_on.get(name));
    match given_on.filter(|_| depth < DEEPEST) {
        Some(path) => resolved(files, &module, path, depth + 1),
        None => Some(known),
    }
}

fn child_of(module: &ModulePath, name: &str) -> ModulePath {
    let mut child = module.clone();
    child.push(name.to_owned());
    child
}

impl ModuleFile {
    fn read(text: &str) -> Self {
        let code = without_tests(text);
        let code: Vec<&str> =
            code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.join("\n");
        let mut file = Self::default();
        let mut rest = code.as_str();
        while let Some(at) = rest.find("use ") {
            let line = rest[..at].rfind('\n').map_or(0, |end| end + 1);
            let visibility = rest[line..at].trim();
            rest = &rest[at + "use ".len()..];
            if !(visibility.is_empty()
                || visibility.starts_with("pub") && !visibility.contains('"'))
            {
                continue;
            }
            let Some(end) = rest.find(';') else { break };
            let mut paths = Vec::new();
            expand(&rest[..end], &mut Vec::new(), &mut paths);
            // Modules inside take also what is not public.
            file.given_on.extend(paths.iter().cloned());
            file.named.extend(paths.into_iter().map(|(_, path)| path));
            rest = &rest[end..];
        }
        for start in ["crate::", "super::"] {
            let begins = code.match_indices(start).filter(|(at, _)| !code[..*at].ends_with("::"));
            let inline = begins.map(|(at, _)| {
                let is_of_path = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
                let end = code[at..].find(|it| !is_of_path(it)).unwrap_or(code.len() - at);
                code[at..at + end].split("::").map(str::to_owned).collect::<Vec<String>>()
            });
            file.named.extend(inline);
        }
        file
    }
}

/// What stands between `use` and `;`: by the name that the file has for it, its path.
fn expand(tree: &str, before: &mut Vec<String>, paths: &mut Vec<(String, Vec<String>)>) {
    let tree = tree.trim();
    let depth = before.len();
    let mut rest = tree;
    while let Some((part, more)) = rest.split_once("::").filter(|(part, _)| !part.contains('{')) {
        before.push(part.trim().to_owned());
        rest = more.trim_start();
    }
    match rest.strip_prefix('{').and_then(|inner| inner.trim_end().strip_suffix('}')) {
        Some(inner) => parts_of(inner).for_each(|part| expand(part, before, paths)),
        None => {
            let name = rest.split_whitespace().next().unwrap_or_default();
            let mut path = before.clone();
            if !matches!(name, "self" | "*" | "") {
                path.push(name.to_owned());
            }
            let alias = rest.split_once(" as ").map(|(_, alias)| alias.trim().to_owned());
            let own = path.last().cloned().unwrap_or_default();
            paths.push((alias.unwrap_or(own), path));
        }
    }
    before.truncate(depth);
}

/// What commas part, outside of braces.
fn parts_of(inner: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    inner.split(move |it| {
        depth += i32::from(it == '{') - i32::from(it == '}');
        it == ',' && depth == 0
    })
}

#[test]
fn circles_are_found_through_braces_and_names_that_are_given_on() {
    let text = |module: &str, text: &str| {
        let parts = module.split('/').filter(|part| !part.is_empty());
        (parts.map(str::to_owned).collect::<ModulePath>(), text.to_owned())
    };
    let files = |b: &str| {
        vec![
            text("", "mod a;\nmod b;\nmod c;\npub use c::Third;\n"),
            text("a", "use crate::b::{self, deeper::{Second as Other}};\n"),
            text("b", b),
            text("b/deeper", "use super::Outer;\n"),
            text("c", "fn third() { crate::a::first() }\n"),
        ]
    };
    assert_eq!(among(files("mod deeper;\nuse std::fmt;\n")), [[""; 0]; 0]);
    let circles = among(files("mod deeper;\npub(crate) use crate::Third;\n"));
    assert_eq!(circles, [["a", "b", "c"]]);
    let in_tests = "mod deeper;\n#[cfg(test)]\nmod tests {\n    use crate::Third;\n}\n";
    assert_eq!(among(files(in_tests)), [[""; 0]; 0]);
}
