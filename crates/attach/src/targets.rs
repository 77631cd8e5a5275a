//! Which processes are to be watched, and what they have.

use std::collections::BTreeSet;

use crate::error::{self, AttachError};
use crate::modules::{self, ProcessModules};
use crate::plan::WatchPlan;
use crate::process::{self, Mapping};

/// Those that were named, and those that use a module.
pub(crate) fn processes_of(plan: &WatchPlan) -> Result<BTreeSet<u32>, AttachError> {
    let mut processes = BTreeSet::new();
    for process in &plan.processes {
        match *process {
            it if it == std::process::id() => return Err(AttachError::Oneself(it)),
            it if !process::is_alive(it) => return Err(AttachError::NoProcess(it)),
            it => processes.insert(it),
        };
    }
    for module in &plan.users_of {
        let users = users_of(module);
        if users.is_empty() {
            return Err(AttachError::NoUsers(module.clone()));
        }
        processes.extend(users);
    }
    Ok(processes)
}

/// Processes that have a module loaded, by its path or its file name.
fn users_of(module: &str) -> Vec<u32> {
    let real = std::fs::canonicalize(module).ok();
    let is_it = |it: &Mapping| {
        let by_path = real.as_ref().is_some_and(|real| real.as_os_str() == it.name.as_str());
        it.is_executable && it.has_file() && (by_path || it.file_name() == module)
    };
    let has_it = |process: &u32| {
        let mappings = process::mappings(*process);
        *process != std::process::id() && mappings.is_ok_and(|them| them.iter().any(is_it))
    };
    process::all().into_iter().filter(has_it).collect()
}

/// A process's modules; at least one.
pub(crate) fn modules_of(process: u32) -> Result<ProcessModules, AttachError> {
    let found = modules::find_modules(process).map_err(|why| {
        match (why.raw_os_error(), error::missing_for(process)) {
            (Some(libc::EACCES | libc::EPERM), Some(sentence)) => AttachError::Rights(sentence),
            _ => AttachError::Look { process, why },
        }
    })?;
    if found.modules.is_empty() {
        let program = process::program(process);
        let anonymous = match found.anonymous_lists {
            0 => String::new(),
            lists => format!(" from a file ({lists} lists of functions were made at run time)"),
        };
        return Err(AttachError::NoModules { process, program, anonymous });
    }
    Ok(found)
}
