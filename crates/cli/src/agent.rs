//! `tapstone agent`: this machine's part of a load from many machines.

use std::path::PathBuf;

use clap::Args;
use tapstone_hosts::{Config, agent};
use tapstone_measure::clock::{Monotonic, Precision};
use tapstone_text::Foreign;

use crate::exit::Exit;
use crate::nats::NatsArguments;
use crate::print::say;
use crate::{environment, interrupt, token};

/// Offer this machine's targets to a load from many machines.
///
/// The agent waits for plans of `tapstone token --hosts` and runs one at a time. It hears only the
/// coordinators that its configuration enrols, and offers only the targets that it names: no path,
/// PIN or command comes over the network.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    nats: NatsArguments,
    /// The targets that it offers, as TOML
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Be so many agents, to try out how a coordinator copes; not for measuring
    #[arg(long, value_name = "N", default_value_t = 1, hide = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    copies: u32,
}

const EXAMPLES: &str = "\
Examples:
  tapstone agent --nats tls://hub:4222 --creds agent.creds --config agent.toml
  tapstone agent --nats nats://127.0.0.1:4222 --config agent.toml

A configuration:
  name = \"client-1\"                  # without it, the machine's name
  packet-key = \"/etc/tapstone/packet.key\"  # `tapstone hosts --new-key FILE` makes one
  coordinators = { lab = \"…\" }       # their public packet keys
  [targets.hsm-a]
  module = \"/opt/hsm/lib/libhsm.so\"
  token-label = \"performance\"        # or token-serial, or slot
  pin-file = \"/etc/tapstone/hsm-a.pin\"  # or pin-env

Exit codes: 0 ended by a signal, 2 could not serve.";

pub(crate) fn run_agent(arguments: &Arguments) -> anyhow::Result<Exit> {
    let config = Config::read(&arguments.config)?;
    let mut worker = token::worker()?;
    let variables = config.targets.values().filter_map(|target| target.pin_env.as_ref());
    worker.hidden = variables.map(Into::into).collect();
    let options = agent::Options {
        server: arguments.nats.server()?,
        config,
        environment: environment::observe(Precision::measure(&Monotonic)),
        worker,
        copies: arguments.copies,
        interrupt: interrupt::flag_on_signals()?,
        say: |text| say!("{}", Foreign::with_lines(text)),
    };
    agent::serve(options)?;
    Ok(Exit::Done)
}
