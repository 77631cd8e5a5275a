//! The modules that p11-kit is configured with: pkcs11.conf(5), followed where the manual is
//! silent as `p11-kit/conf.c` and `p11-kit/modules.c` of p11-kit have it.
//!
//! Each module has a file `NAME.module`. The same name in several directories is one module:
//! the user's file says first, then the administrator's, then the package's, key by key.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::conf::{Note, Setting, Settings};
use super::{Candidate, FoundBy, Roots, State};

/// What `enable-in` and `disable-in` know this program by: the name of its executable.
const PROGRAM: &str = "tapstone";

/// The configured modules, by priority and then by name, as p11-kit hands them out.
pub(super) fn configured(roots: &Roots, notes: &mut Vec<Note>) -> Vec<Candidate> {
    let global = Global::read(roots, notes);
    let mut modules = BTreeMap::new();
    for directory in global.module_directories(roots) {
        for (name, settings) in read_directory(&directory, notes) {
            match modules.entry(name) {
                Entry::Vacant(entry) => _ = entry.insert(settings),
                Entry::Occupied(entry) => entry.into_mut().fill_from(settings),
            }
        }
    }
    let mut ranked = Vec::new();
    for (name, settings) in modules {
        if let Some(candidate) = candidate(&name, &settings, &global, roots, notes) {
            ranked.push((priority(&settings, notes), candidate));
        }
    }
    // Stable, so that modules of the same priority stay in the order of their names.
    ranked.sort_by_key(|(priority, _)| Reverse(*priority));
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The settings that are not about a single module.
struct Global {
    user_config: UserConfig,
    /// Overrules the modules' own settings.
    managed: Option<bool>,
}

/// What becomes of the files in the user's home: `user-config`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UserConfig {
    None,
    Merge,
    Only,
}

impl Global {
    /// The user's file counts if the system's allows it, and may then decide against itself.
    fn read(roots: &Roots, notes: &mut Vec<Note>) -> Self {
        let mut settings = Settings::read(&roots.at("/etc/pkcs11/pkcs11.conf"), notes);
        let mut user_config = read_user_config(&settings, notes).unwrap_or(UserConfig::Merge);
        if user_config != UserConfig::None
            && let Some(file) = roots.at_home(".config/pkcs11/pkcs11.conf")
        {
            let mut user = Settings::read(&file, notes);
            user_config = read_user_config(&user, notes).unwrap_or(user_config);
            settings = match user_config {
                UserConfig::None => settings,
                UserConfig::Only => user,
                UserConfig::Merge => {
                    user.fill_from(settings);
                    user
                }
            };
        }
        let managed = settings.get("managed").and_then(|setting| setting.boolean(notes));
        Self { user_config, managed }
    }

    /// The directories with modules' files; what is said in an earlier one counts.
    fn module_directories(&self, roots: &Roots) -> Vec<PathBuf> {
        let user = roots.at_home(".config/pkcs11/modules");
        let system =
            ["/etc/pkcs11/modules", "/usr/share/p11-kit/modules"].map(|path| roots.at(path));
        match self.user_config {
            UserConfig::None => system.into(),
            UserConfig::Merge => user.into_iter().chain(system).collect(),
            UserConfig::Only => user.into_iter().collect(),
        }
    }
}

fn read_user_config(settings: &Settings, notes: &mut Vec<Note>) -> Option<UserConfig> {
    let setting = settings.get("user-config")?;
    match setting.value.as_str() {
        "none" => Some(UserConfig::None),
        "merge" => Some(UserConfig::Merge),
        // The second is an old name, which p11-kit still takes.
        "only" | "override" => Some(UserConfig::Only),
        other => {
            let text = format!("{other:?} is none of `none`, `merge` and `only`: ignored");
            notes.push(setting.note(text));
            None
        }
    }
}

/// The `*.module` files of a directory, by the names of their modules.
fn read_directory(directory: &Path, notes: &mut Vec<Note>) -> Vec<(String, Settings)> {
    let mut files = match list(directory) {
        Ok(files) => files,
        Err(error) => {
            if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
                notes.push(Note::about(directory, error.to_string()));
            }
            return Vec::new();
        }
    };
    files.sort();
    let mut modules = Vec::new();
    for file in files {
        let file_name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match file_name.strip_suffix(".module") {
            Some(name) => modules.push((name.to_owned(), Settings::read(&file, notes))),
            None => notes.push(Note::about(&file, "not read: not called `*.module`")),
        }
    }
    modules
}

fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.map(|entry| Ok(entry?.path()));
    entries.filter(|path| !path.as_ref().is_ok_and(|path| path.is_dir())).collect()
}

/// The module that these settings are about, unless they leave nothing to load.
fn candidate(
    name: &str,
    settings: &Settings,
    global: &Global,
    roots: &Roots,
    notes: &mut Vec<Note>,
) -> Option<Candidate> {
    if let Some(remote) = settings.get("remote") {
        notes.push(remote.note(format!(
            "`{name}` runs in another process ({}), not in a file to load: p11-kit-proxy.so has it",
            remote.value
        )));
        return None;
    }
    let Some(module) = settings.get("module") else {
        notes.push(Note::about(&settings.file, "no `module:` line, so there is nothing to load"));
        return None;
    };
    if module.value.is_empty() {
        notes.push(module.note(format!("`module:` is blank: `{name}` is switched off")));
        return None;
    }
    let found_by = FoundBy::P11Kit { config: module.file.clone() };
    let mut candidate = Candidate::new(&library(&module.value, roots), found_by);
    candidate.name = Some(name.to_owned());
    if let Some(ban) = ban(settings, notes) {
        if candidate.state == State::Ready {
            candidate.state = State::Disabled;
        }
        candidate.notes.push(format!("p11-kit is told to keep it from {PROGRAM} by {ban}"));
    }
    let own = settings.get("managed").and_then(|setting| setting.boolean(notes));
    if global.managed.or(own) == Some(false) {
        candidate.notes.push("p11-kit is told not to manage it (`managed: no`)".to_owned());
    }
    Some(candidate)
}

/// The file that a `module:` line means: a relative path is one in p11-kit's own directory.
fn library(module: &str, roots: &Roots) -> PathBuf {
    if module.starts_with('/') {
        return roots.at(module);
    }
    let mut directories: Vec<_> = roots.p11_kit_modules().collect();
    // The directory with the file; else one that exists, which is then where the file is missing.
    directories.sort_by_key(|directory| (!directory.join(module).is_file(), !directory.is_dir()));
    directories.into_iter().next().unwrap_or_default().join(module)
}

/// The list that keeps the module from this program.
fn ban<'a>(settings: &'a Settings, notes: &mut Vec<Note>) -> Option<&'a Setting> {
    let enable = settings.get("enable-in");
    let disable = settings.get("disable-in");
    if let (Some(_), Some(disable)) = (enable, disable) {
        notes.push(disable.note("`disable-in` is ignored, because there is `enable-in` too"));
    }
    match enable {
        Some(enable) => Some(enable).filter(|list| !list.lists(PROGRAM)),
        None => disable.filter(|list| list.lists(PROGRAM)),
    }
}

fn priority(settings: &Settings, notes: &mut Vec<Note>) -> i32 {
    let Some(setting) = settings.get("priority") else { return 0 };
    setting.value.parse().unwrap_or_else(|_| {
        notes.push(
            setting.note(format!("priority {:?} is not an integer: 0 is meant", setting.value)),
        );
        0
    })
}
