//! `tapstone hosts`: which agents are there, what they offer, and how their clocks stand.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tapstone_hosts::{Around, PacketKey, Present, clock_of, look_around};
use tapstone_measure::units::Nanos;
use tapstone_record::{Environment, HostClock};
use tapstone_text::Foreign;

use crate::exit::Exit;
use crate::nats::{EnrolmentArguments, NatsArguments};
use crate::print::{outln, say};
use crate::{interrupt, values};

/// List the agents that are there.
///
/// Asked are the agents of the enrolment, and nobody else; what they answer is signed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    nats: NatsArguments,
    #[command(flatten)]
    enrolment: EnrolmentArguments,
    /// Make a packet key for an agent or a coordinator, and print what others enrol it by
    #[arg(long, value_name = "FILE", exclusive = true)]
    new_key: Option<PathBuf>,
    /// How long to wait for answers
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = values::duration)]
    wait: Nanos,
    /// What goes to standard output
    #[arg(long, value_enum, default_value_t = HostsFormat::Text)]
    format: HostsFormat,
}

const EXAMPLES: &str = "\
Examples:
  tapstone hosts --nats tls://hub:4222 --creds coordinator.creds --enrolment coordinator.toml
  tapstone hosts --nats nats://127.0.0.1:4222 --enrolment coordinator.toml --format json
  tapstone hosts --new-key packet.key

Exit codes: 0 done, also when no agent answered; 2 could not reach the server.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum HostsFormat {
    /// A table for people
    Text,
    /// A list of objects
    Json,
}

/// An agent for `--format json`.
#[derive(Debug, Serialize)]
struct ListedAgent<'a> {
    name: &'a str,
    agent: String,
    version: &'a str,
    /// Of the version of this program.
    usable: bool,
    busy: Option<&'a str>,
    targets: &'a [tapstone_hosts::TargetFacts],
    environment: Option<&'a Environment>,
    clock: Option<HostClock>,
}

pub(crate) fn run_hosts(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(path) = &arguments.new_key {
        return make_key(path);
    }
    let interrupt = interrupt::flag_on_signals()?;
    let server = arguments.nats.server()?;
    let enrolment = arguments.enrolment.read()?;
    let Around { present: all, absent } =
        look_around(&server, &enrolment, arguments.wait.into(), &interrupt)?;
    match arguments.format {
        HostsFormat::Json => {
            let listed: Vec<ListedAgent<'_>> = all.iter().map(listed).collect();
            outln!("{}", serde_json::to_string_pretty(&listed)?);
        }
        HostsFormat::Text => print(&all),
    }
    for (name, why) in &absent {
        say!("{} {why}", Foreign::new(name));
    }
    if all.is_empty() {
        say!(
            "no agent answered\nhint: `tapstone agent` on each client machine, with the same \
             server, and with this coordinator in its configuration"
        );
    }
    Ok(Exit::Done)
}

/// A new packet key in a file; its public half is data.
fn make_key(path: &Path) -> anyhow::Result<Exit> {
    let key = PacketKey::create(path)?;
    outln!("{}", key.identity());
    Ok(Exit::Done)
}

fn listed(present: &Present) -> ListedAgent<'_> {
    let facts = present.facts.as_ref();
    ListedAgent {
        name: &present.calling.name,
        agent: present.calling.agent.to_string(),
        version: &present.calling.version,
        usable: facts.is_some(),
        busy: facts.and_then(|facts| facts.busy.as_deref()),
        targets: facts.map_or(&[], |facts| &facts.targets),
        environment: facts.map(|facts| &facts.environment),
        clock: present.offset.ok().map(|offset| clock_of(offset.clock())),
    }
}

fn print(all: &[Present]) {
    let mut lines = vec![["HOST", "CORES", "CLOCK OFFSET", "STATE", "TARGETS"].map(str::to_owned)];
    lines.extend(all.iter().map(line));
    let mut widths = [0; 5];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for line in lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        outln!("{}", cells.collect::<Vec<String>>().join("  ").trim_end());
    }
}

fn line(present: &Present) -> [String; 5] {
    let Some(facts) = &present.facts else {
        let ours = env!("CARGO_PKG_VERSION");
        let state = match &present.calling.version[..] {
            version if version == ours => "does not say what it offers".to_owned(),
            version => format!("version {version}, this is {ours}"),
        };
        return [
            Foreign::new(&present.calling.name).to_string(),
            String::new(),
            String::new(),
            Foreign::new(&state).to_string(),
            String::new(),
        ];
    };
    let cores = facts.environment.cores.map(|cores| cores.to_string()).unwrap_or_default();
    let offset = match present.offset.map(tapstone_hosts::Offset::clock) {
        Ok(clock) => format!("{:+.6} s \u{b1} {}", clock.offset_ns as f64 / 1e9, clock.bound),
        Err(trouble) => trouble.to_string(),
    };
    let state = match &facts.busy {
        Some(by) => format!("busy with {by}"),
        None => "free".to_owned(),
    };
    let target = |target: &tapstone_hosts::TargetFacts| {
        let module = target.module.rsplit('/').next().unwrap_or_default();
        format!("{} ({module}, {})", target.name, target.token)
    };
    let targets: Vec<String> = facts.targets.iter().map(target).collect();
    [
        Foreign::new(&present.calling.name).to_string(),
        cores,
        offset,
        Foreign::new(&state).to_string(),
        Foreign::new(targets.join(", ")).to_string(),
    ]
}
