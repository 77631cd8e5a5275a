//! Setting probes: on which functions of a module, where, and at which of their ends.

use std::collections::BTreeSet;

use tapstone_events::FUNCTIONS;

use super::{Watch, counted};
use crate::bpf::ProbeSite;
use crate::calibration::RESERVED;
use crate::counted::FunctionTimes;
use crate::error::AttachError;
use crate::functions::WatchedFunction;
use crate::layout::{self, Arguments};
use crate::modules::{FoundFunction, ModuleFunctions, ProcessModules};
use crate::place::ProbePlace;
use crate::plan::WatchPlan;
use crate::process;

/// Functions that may come, later ones included.
const MOST_FUNCTIONS: u32 = 1024;

impl Watch {
    /// Sets the probes of a process that are not there yet.
    pub(super) fn probe(
        &mut self,
        process: u32,
        found: &ProcessModules,
    ) -> Result<(), AttachError> {
        if found.anonymous_lists > 0 {
            self.notes.insert(format!(
                "{} of process {process} {} made at run time and in no file, so not watched: calls \
                 are seen in the modules beneath",
                counted(found.anonymous_lists as u64, "list of functions", "lists of functions"),
                if found.anonymous_lists == 1 { "was" } else { "were" },
            ));
        }
        for module in &found.modules {
            self.probe_module(module, found.program_unwinds)?;
        }
        Ok(())
    }

    fn probe_module(
        &mut self,
        module: &ModuleFunctions,
        program_unwinds: bool,
    ) -> Result<(), AttachError> {
        let may_be_left = module.unwinds || program_unwinds;
        let mut with_return = Vec::new();
        let mut entry_only = Vec::new();
        for (offset, function) in &module.functions {
            if !self.probed.insert((module.inode, *offset)) {
                continue;
            }
            let blocks = matches!(function.name(), "C_WaitForSlotEvent" | "SCardGetStatusChange");
            let is_entry_only = !self.plan.with_returns && (blocks || may_be_left);
            let Some(number) = self.number(module, function) else { continue };
            let others = function.names.iter().skip(1).map(|it| FUNCTIONS[usize::from(*it)].name);
            self.functions[usize::from(number - RESERVED)].others.extend(others);
            let WatchPlan { with_events, with_load, .. } = self.plan;
            let arguments = match (with_events, with_load) {
                (false, _) => Arguments::Ignored,
                (true, false) => Arguments::Of(function.name()),
                (true, true) => Arguments::OfLoad(function.name()),
            };
            let cookie = layout::cookie(number, arguments);
            let site = ProbeSite { offset: offset + self.place(function).behind, cookie };
            if is_entry_only { entry_only.push(site) } else { with_return.push(site) }
        }
        self.note_module(module, may_be_left);
        self.kernel
            .probe(&module.path, &with_return, &entry_only)
            .map_err(|why| AttachError::Probes { module: module.name.clone(), why })
    }

    const fn place(&self, function: &FoundFunction) -> ProbePlace {
        if self.plan.with_events { function.probe } else { function.counting_probe }
    }

    fn number(&mut self, module: &ModuleFunctions, function: &FoundFunction) -> Option<u16> {
        let name = *function.names.first()?;
        let is_stepped = self.place(function).is_stepped;
        let key = (module.inode, name, is_stepped);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        if self.functions.len() as u32 >= MOST_FUNCTIONS {
            self.notes
                .insert(format!("functions of {} are too many: some are not watched", module.name));
            return None;
        }
        let number = self.functions.len() as u16 + RESERVED;
        let standard_name = FUNCTIONS[usize::from(name)].name;
        if !self.plan.with_events && u32::from(number) >= self.timed_functions {
            self.notes.insert(format!(
                "times of functions that {} brought along are not counted: it was loaded when many \
                 others were watched already; watching anew counts them",
                module.name
            ));
        }
        let module = process::file_name(&module.name);
        self.functions.push(WatchedFunction {
            name: standard_name,
            family: FUNCTIONS[usize::from(name)].family,
            module: module.clone(),
            is_stepped,
            others: BTreeSet::new(),
            is_called: false,
        });
        self.times.push(FunctionTimes::new(standard_name, module, self.cost.of(is_stepped)));
        self.numbers.insert(key, number);
        Some(number)
    }

    fn note_module(&mut self, module: &ModuleFunctions, may_be_left: bool) {
        let name = process::file_name(&module.name);
        if may_be_left && self.plan.with_returns {
            self.notes.insert(format!(
                "--returns: {name} or the program can leave calls by an exception or pthread_cancel, \
                 which aborts the program or skips its clean-up while returns are watched"
            ));
        } else if may_be_left {
            self.has_unseen_returns = true;
            self.notes.insert(format!(
                "calls of {name} are seen where they begin only, so without return codes and times: \
                 it or the program imports pthread_cancel, pthread_exit or _Unwind_RaiseException, \
                 or the program throws C++ exceptions, and a watched return would change what these \
                 do; --returns watches them all the same"
            ));
        }
    }
}
