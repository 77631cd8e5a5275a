//! `tapstone targets`: what there is to measure.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tapstone_discover::{self as discover, Candidate, FoundBy, State};
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::mechanism_name;
use tapstone_text::Foreign;
use tapstone_token::controller::look_at;
use tapstone_token::module::{LibraryInfo, MechanismInfo, ModuleArguments, SlotInfo};

use crate::exit::Exit;
use crate::print::{outln, say};
use crate::token::{ModuleArgumentsArguments, worker};
use crate::values;

/// List PKCS#11 modules, their tokens and what those offer.
///
/// Looks in p11-kit's configuration and at well-known paths. Each module is loaded in a process of
/// its own, so one that hangs or crashes hides no other. Nobody logs in.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Look at this module; several may be named, and then no others are looked at
    #[arg(long, value_name = "PATH")]
    module: Vec<PathBuf>,
    #[command(flatten)]
    module_args: ModuleArgumentsArguments,
    /// Also list each token's mechanisms
    #[arg(long)]
    mechanisms: bool,
    /// How long a module may take to answer
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    timeout: Nanos,
    /// What goes to standard output
    #[arg(long, value_enum, default_value_t = TargetsFormat::Text)]
    format: TargetsFormat,
}

const EXAMPLES: &str = "\
Examples:
  tapstone targets
  tapstone targets --module /usr/lib/softhsm/libsofthsm2.so --mechanisms

Exit codes: 0 done, 2 no module was found, or one that was named failed.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TargetsFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

/// A module with its answer, as it is printed and serialised.
#[derive(Serialize)]
struct ListedModule {
    path: PathBuf,
    name: Option<String>,
    found_by: String,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    library: Option<LibraryInfo>,
    slots: Vec<Slot>,
}

#[derive(Serialize)]
struct Slot {
    #[serde(flatten)]
    slot: SlotInfo,
    flags: Vec<&'static str>,
    mechanisms: Vec<ListedMechanism>,
}

#[derive(Serialize)]
struct ListedMechanism {
    name: String,
    min_key_size: u64,
    max_key_size: u64,
    hardware: bool,
}

pub(crate) fn run_targets(arguments: &Arguments) -> anyhow::Result<Exit> {
    let found = discover::modules(&arguments.module);
    let named = |candidate: &Candidate| candidate.found_by == FoundBy::Named;
    let wanted = |candidate: &Candidate| arguments.module.is_empty() || named(candidate);
    let mut listed = Vec::new();
    for candidate in found.candidates.into_iter().filter(wanted) {
        listed.push(look(candidate, arguments)?);
    }
    for note in &found.notes {
        say!("note: {}", Foreign::with_lines(note.to_string()));
    }
    match arguments.format {
        TargetsFormat::Json => outln!("{}", serde_json::to_string_pretty(&listed)?),
        TargetsFormat::Text => print(&listed, arguments.mechanisms),
    }
    if listed.is_empty() {
        say!("no PKCS#11 module was found\nhint: name one with --module");
    }
    // A module that was found may fail; one that was named must not.
    let failed = !arguments.module.is_empty() && listed.iter().any(|one| one.error.is_some());
    Ok(if failed || listed.is_empty() { Exit::NotMeasured } else { Exit::Done })
}

fn look(candidate: Candidate, arguments: &Arguments) -> anyhow::Result<ListedModule> {
    let mut listed = ListedModule {
        path: candidate.path,
        name: candidate.name,
        found_by: match candidate.found_by {
            FoundBy::Named => "--module".to_owned(),
            FoundBy::P11Kit { config } => config.display().to_string(),
            FoundBy::WellKnownPath => "well-known path".to_owned(),
        },
        notes: candidate.notes,
        error: None,
        library: None,
        slots: Vec::new(),
    };
    match candidate.state {
        State::Ready => {}
        State::Disabled => {
            listed.notes.push("disabled for tapstone in p11-kit's configuration".to_owned());
            return Ok(listed);
        }
        State::Missing => {
            listed.error = Some("no such file".to_owned());
            return Ok(listed);
        }
    }
    // A text for one module is nothing that all others should be told.
    let text = arguments.module_args.module_args.clone().filter(|_| !arguments.module.is_empty());
    let told = text.map(ModuleArguments::new);
    match look_at(&worker()?, &listed.path, told, arguments.timeout.into()).answer {
        Ok((library, slots)) => {
            listed.library = Some(library);
            listed.slots = slots.into_iter().map(slot).collect();
        }
        Err(error) => listed.error = Some(error.to_string()),
    }
    Ok(listed)
}

fn slot((slot, mechanisms): (SlotInfo, Vec<MechanismInfo>)) -> Slot {
    Slot {
        flags: slot.token.as_ref().map(|token| token.flag_names()).unwrap_or_default(),
        slot,
        mechanisms: mechanisms.iter().map(mechanism).collect(),
    }
}

fn mechanism(info: &MechanismInfo) -> ListedMechanism {
    let known = mechanism_name(info.mechanism).map(str::to_owned);
    ListedMechanism {
        name: known.unwrap_or_else(|| format!("0x{:X}", info.mechanism)),
        min_key_size: info.min_key_size,
        max_key_size: info.max_key_size,
        hardware: info.hardware(),
    }
}

fn print(listed: &[ListedModule], mechanisms: bool) {
    for module in listed {
        let name = module.name.as_deref().unwrap_or("module");
        outln!(
            "{}  ({}, {})",
            Foreign::new(module.path.to_string_lossy()),
            Foreign::new(name),
            Foreign::new(&module.found_by)
        );
        for note in &module.notes {
            outln!("    {}", Foreign::new(note));
        }
        if let Some(error) = &module.error {
            let error = Foreign::with_lines(error.replace('\n', "\n    "));
            outln!("    cannot be used: {error}");
        }
        if let Some(library) = &module.library {
            outln!(
                "    {} {}, {}, Cryptoki {}",
                Foreign::new(&library.description),
                library.version,
                Foreign::new(&library.manufacturer),
                library.cryptoki_version
            );
        }
        for slot in &module.slots {
            print_slot(slot, mechanisms);
        }
        outln!();
    }
}

fn print_slot(slot: &Slot, mechanisms: bool) {
    let kind = if slot.slot.hardware { "hardware slot" } else { "slot" };
    outln!("    {kind} {}: {}", slot.slot.id, Foreign::new(&slot.slot.description));
    let Some(token) = &slot.slot.token else {
        outln!("        no token");
        return;
    };
    outln!(
        "        token \"{}\": {} {}, serial {}, firmware {}",
        Foreign::new(&token.label),
        Foreign::new(&token.manufacturer),
        Foreign::new(&token.model),
        Foreign::new(&token.serial),
        token.firmware_version
    );
    outln!("        {}", slot.flags.join(" "));
    outln!("        {} mechanisms", slot.mechanisms.len());
    if mechanisms {
        for one in &slot.mechanisms {
            let hardware = if one.hardware { "hardware" } else { "software" };
            outln!(
                "            {:36} {:>5} to {:<10} {hardware}",
                one.name,
                one.min_key_size,
                one.max_key_size
            );
        }
    }
}
