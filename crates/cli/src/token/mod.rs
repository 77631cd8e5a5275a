//! `tapstone token`: how fast a PKCS#11 token or HSM is, really.

mod arguments;
mod cases;
mod host_list;
mod judge;
mod leftovers;
mod run;
mod target;

pub(crate) use self::arguments::{Arguments, ModuleArgumentsArguments, PinSourceArguments};
pub(crate) use self::target::{read_pin, worker};
use crate::exit::Exit;

pub(crate) fn run_token(arguments: Arguments) -> anyhow::Result<Exit> {
    if arguments.leftovers.leftovers {
        return leftovers::list_leftovers(&arguments);
    }
    run::measure_token(arguments)
}
