//! The functions of PKCS#11 that a process has in its memory, found without its help: by the lists of
//! functions (CK_FUNCTION_LIST) that modules hand out.
//!
//! A list is a version and then 68, 92 or 104 addresses in one module's code (PKCS#11 2.40, 3.0,
//! 3.2). First those that a module's file tells, by its relocations; then those in memory, which are
//! known by their shape. Functions of PC/SC and of reader drivers are found by their names.

mod file;
mod lists;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use tapstone_events::FUNCTIONS;

use self::file::ModuleFile;
use self::lists::FoundList;
use crate::place::{self, ProbePlace};
use crate::process::{self, Mapping, Memory};

/// A module's functions, where they are in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFunctions {
    /// Its path, as the process has it.
    pub name: String,
    /// The inode of its file, which is the same in all processes.
    pub inode: u64,
    /// A path by which it can be opened from here.
    pub path: PathBuf,
    /// By the entry's offset in the file.
    pub functions: BTreeMap<u64, FoundFunction>,
    /// How many lists of functions there are.
    pub lists: usize,
    /// It throws exceptions itself, or ends threads.
    pub unwinds: bool,
}

/// A function, or several that share an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFunction {
    /// Numbers in [`FUNCTIONS`], the first of the group in front.
    pub names: BTreeSet<u16>,
    /// Where a probe goes that looks at arguments.
    pub probe: ProbePlace,
    /// Where one goes that does not.
    pub counting_probe: ProbePlace,
}

impl FoundFunction {
    /// The name under which it is counted.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.names.first().map_or("", |number| FUNCTIONS[usize::from(*number)].name)
    }
}

/// What a process has.
#[derive(Clone, Debug, Default)]
pub struct ProcessModules {
    /// Each once, by its file.
    pub modules: Vec<ModuleFunctions>,
    /// Lists whose functions are in no file: made at run time (libffi closures).
    pub anonymous_lists: usize,
    /// The program itself throws exceptions, or ends threads.
    pub program_unwinds: bool,
}

/// Looks through a process.
///
/// # Errors
/// When it is not there, or may not be looked at.
pub fn find_modules(process: u32) -> io::Result<ProcessModules> {
    let mappings = process::mappings(process)?;
    let memory = Memory::open(process)?;
    let mut files = Files::new(process, &mappings);
    let mut found = ProcessModules {
        program_unwinds: files.program(process).is_some_and(|it| it.unwinds() || it.throws()),
        ..ProcessModules::default()
    };
    let lists = lists::find(&mappings, &memory, &mut files);
    let mut modules: BTreeMap<u64, ModuleFunctions> = BTreeMap::new();
    for list in lists {
        add_list(&mut found, &mut modules, &list, &mappings, &mut files);
    }
    add_exports(&mut modules, &mappings, &mut files);
    found.modules = modules.into_values().collect();
    for module in &mut found.modules {
        place_probes(module, &mut files);
    }
    Ok(found)
}

/// Files that a process has mapped, each opened once.
pub(crate) struct Files<'a> {
    process: u32,
    mappings: &'a [Mapping],
    /// What was opened, by the inode of the file; `None` where it cannot be read as a module.
    open: BTreeMap<u64, Option<ModuleFile>>,
}

impl<'a> Files<'a> {
    fn new(process: u32, mappings: &'a [Mapping]) -> Self {
        Self { process, mappings, open: BTreeMap::new() }
    }

    fn get(&mut self, mapping: &Mapping) -> Option<&ModuleFile> {
        let process = self.process;
        let open = || ModuleFile::open(&process::reachable_path(process, mapping)?);
        self.open.entry(mapping.inode).or_insert_with(open).as_ref()
    }

    fn program(&mut self, process: u32) -> Option<&ModuleFile> {
        let program = process::program(process);
        let mapping = self.mappings.iter().find(|it| it.name == program)?;
        self.get(mapping)
    }
}

fn add_list(
    found: &mut ProcessModules,
    modules: &mut BTreeMap<u64, ModuleFunctions>,
    list: &FoundList,
    mappings: &[Mapping],
    files: &mut Files<'_>,
) {
    let code = |address: u64| mappings.iter().find(|it| it.holds(address) && it.is_executable);
    let Some(first) = list.functions.first().and_then(|address| code(*address)) else { return };
    if !first.has_file() {
        found.anonymous_lists += 1;
        return;
    }
    let Some(path) = process::reachable_path(files.process, first) else { return };
    let unwinds = files.get(first).is_some_and(ModuleFile::unwinds);
    let module = modules.entry(first.inode).or_insert_with(|| ModuleFunctions {
        name: first.name.clone(),
        inode: first.inode,
        path,
        functions: BTreeMap::new(),
        lists: 0,
        unwinds,
    });
    module.lists += 1;
    for (number, address) in list.functions.iter().enumerate() {
        let Some(mapping) = code(*address).filter(|it| it.inode == first.inode) else { continue };
        let offset = address - mapping.start + mapping.offset;
        module.functions.entry(offset).or_default().names.insert(number as u16);
    }
}

/// Functions of PC/SC and of reader drivers, by the names under which libraries export them.
fn add_exports(
    modules: &mut BTreeMap<u64, ModuleFunctions>,
    mappings: &[Mapping],
    files: &mut Files<'_>,
) {
    let process = files.process;
    for mapping in mappings.iter().filter(|it| it.is_executable && it.has_file()) {
        let Some(file) = files.get(mapping).filter(|file| !file.exports.is_empty()) else {
            continue;
        };
        let Some(path) = process::reachable_path(process, mapping) else { continue };
        let module = modules.entry(mapping.inode).or_insert_with(|| ModuleFunctions {
            name: mapping.name.clone(),
            inode: mapping.inode,
            path,
            functions: BTreeMap::new(),
            lists: 0,
            unwinds: file.unwinds(),
        });
        for (number, address) in &file.exports {
            if let Some(offset) = file.offset(*address) {
                module.functions.entry(offset).or_default().names.insert(*number);
            }
        }
    }
}

fn place_probes(module: &mut ModuleFunctions, files: &mut Files<'_>) {
    let mapping = files.mappings.iter().find(|it| it.inode == module.inode);
    let Some(file) = mapping.and_then(|mapping| files.get(mapping)) else { return };
    let entries: Vec<u64> = module.functions.keys().copied().collect();
    for (place, (offset, function)) in module.functions.iter_mut().enumerate() {
        let code = file.code(*offset, entries.get(place + 1).copied());
        let place = |with_arguments| place::probe_place(place::Body { code, with_arguments });
        function.probe = place(true);
        function.counting_probe = place(false);
    }
}
