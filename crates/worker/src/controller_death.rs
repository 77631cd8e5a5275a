//! What a worker does when the controller that started it dies.

use std::io;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Whether the controller still lived when a worker asked to be told of its death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// It lives; its death will come as the signal.
    Alive,
    /// It was gone already: no signal will come.
    Gone,
}

/// Asks the kernel to send this process `signal` when the one that started it dies. Processes whose
/// calls can hang need it: they may never look at their orders again.
///
/// # Errors
/// What prctl(2) says.
pub fn signal_at_controllers_death(signal: Signal) -> io::Result<Controller> {
    let controller = getppid();
    set_parent_process_death_signal(Some(signal))?;
    // It may have died between the two.
    Ok(if getppid() == controller { Controller::Alive } else { Controller::Gone })
}
