//! `tapstone token`: how fast a PKCS#11 token or HSM is, really.

mod arguments;
mod cases;
mod host_list;
mod judge;
mod leftovers;
mod replay;
mod run;
mod target;

pub(crate) use self::arguments::{Arguments, ModuleArgumentsArguments, PinSourceArguments};
pub(crate) use self::target::{read_pin, worker};
use crate::exit::Exit;

pub(crate) fn run_token(arguments: Arguments) -> anyhow::Result<Exit> {
    if arguments.leftovers.leftovers {
        return leftovers::list_leftovers(&arguments);
    }
    if let Some(file) = &arguments.recorded.workload {
        return replay::replay_workload(&arguments, file);
    }
    run::measure_token(arguments)
}
