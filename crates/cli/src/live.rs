//! `--live`: a run that others may look at while it goes on.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use tapstone_live::LiveSocket;

/// What every verb takes that tells how it goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct LiveArguments {
    /// Tell how it goes on this socket while it runs, for `tapstone report --serve SOCKET`
    #[arg(long, value_name = "SOCKET")]
    live: Option<PathBuf>,
}

impl LiveArguments {
    /// Makes the socket, if one is asked for.
    pub(crate) fn bind(&self) -> anyhow::Result<Option<LiveSocket>> {
        let bind = |path: &PathBuf| {
            LiveSocket::bind(path).with_context(|| {
                format!(
                    "{}: the socket of --live cannot be made\nhint: name a path in a folder of \
                     yours, of at most 107 bytes, where nothing is yet",
                    path.display()
                )
            })
        };
        self.live.as_ref().map(bind).transpose()
    }
}
