//! A worker's standard input and output, moved out of reach of the code that it calls.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::{FdFlags, dup, fcntl_setfd};
use rustix::stdio::{dup2_stdin, dup2_stdout};

/// Standard input and output as private descriptors: orders and reports. In their place are
/// /dev/null and standard error, so that what a library prints is seen and disturbs nothing.
///
/// # Errors
/// What dup(2) and open(2) say.
pub fn private_pipes() -> io::Result<(File, File)> {
    let stdin = io::stdin();
    let stdout = io::stdout();
    let orders = dup(&stdin)?;
    let reports = dup(&stdout)?;
    let private = |pipe: OwnedFd| fcntl_setfd(&pipe, FdFlags::CLOEXEC).map(|()| File::from(pipe));
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(io::stderr())?;
    Ok((private(orders)?, private(reports)?))
}
