//! What is to be watched, and how.

/// What is to be watched, and how.
#[derive(Clone, Debug, Default)]
pub struct WatchPlan {
    /// The numbers of processes to watch.
    pub processes: Vec<u32>,
    /// And all that have this module loaded: a path, or a file name.
    pub users_of: Vec<String>,
    /// Each call one by one; otherwise counts and times only.
    pub with_events: bool,
    /// With events: keys, lengths, the shapes of templates and waits for input, too, which a workload
    /// is made of.
    pub with_load: bool,
    /// So much of them is kept, in bytes.
    pub most_events: u64,
    /// Returns of all functions, whatever may unwind through them.
    pub with_returns: bool,
    /// Pairs of probes, also where the kernel has sessions.
    pub as_pairs: bool,
}
