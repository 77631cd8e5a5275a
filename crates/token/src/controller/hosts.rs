//! Other machines whose agents run workers for this controller, as the controller sees them. How they are found
//! and spoken to is not its business.

use std::path::PathBuf;

use tapstone_measure::units::Nanos;

use tapstone_worker::{RemoteWorker, ReportSender};

use super::{TokenMeasureError, TokenTarget};
use crate::module::LibraryInfo;
use crate::protocol::{Report, TokenProtocol};

/// Hosts that have agreed to take part in this run, by number.
pub trait Hosts: Send {
    /// The names of the hosts, by their number.
    fn names(&self) -> Vec<String>;

    /// What the target is called in the agents' configurations.
    fn target(&self) -> String;

    /// The run's number, by which its keys are known on all of them.
    fn run(&self) -> u64;

    /// Starts workers, which report under their numbers: each has loaded its agent's module and
    /// entered its token. An answer for each, in order.
    fn join(&mut self, wanted: &[Wanted], reports: &ReportSender<Report>) -> Vec<Joining>;

    /// Measures the hosts' clocks, anew for each case.
    fn set_clocks(&mut self);

    /// The hosts' clocks since they were set: looked at again after a case.
    fn clocks(&mut self) -> Vec<HostClock>;

    /// How long ahead all of them have to be told of a moment.
    fn notice(&self) -> Nanos;

    /// The processor cores that each may use.
    fn cores(&self) -> Vec<u32>;

    /// Why a host is lost; `None` while it is there.
    fn lost(&self, host: usize) -> Option<String>;
}

/// What became of a wish for a worker.
pub type Joining = Result<Joined, TokenMeasureError>;

/// A worker that is to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The number that it reports under.
    pub number: usize,
    /// The number of the host that it is to run on.
    pub host: usize,
}

/// A worker on another machine, ready for tasks.
pub struct Joined {
    /// The way to it.
    pub worker: Box<dyn RemoteWorker<TokenProtocol>>,
    /// The module that it has loaded.
    pub module: PathBuf,
    /// What that says of itself.
    pub library: LibraryInfo,
    /// The token that it has entered.
    pub target: TokenTarget,
}

/// What is known of a host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostClock {
    /// The host's CLOCK_MONOTONIC less this machine's, in nanoseconds.
    pub offset_ns: i64,
    /// The true offset lies no further from that.
    pub bound: Nanos,
    /// The shortest of the round trips that say so.
    pub round_trip: Nanos,
}
