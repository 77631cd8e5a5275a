//! Which scenario: a file, or one that is shipped; and the card in it.

use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use tapstone_door::{SHIPPED, Scenario, UnknownScenario, with_card};
use tapstone_files::{FileLimit, read_text};
use tapstone_record::{Emulated, Environment, Record, Target, TargetKind};

use crate::command_line;
use crate::compare::tool;

/// What all verbs of the model take.
#[derive(Clone, Debug, Args)]
pub(super) struct ScenarioArguments {
    /// A scenario: a TOML file, or the name of a shipped one (hid-rsa2048, hid-p256,
    /// osdp-ip-rsa2048, osdp-ip-p256, virtual-p71)
    #[arg(value_name = "SCENARIO")]
    name: String,
    /// Changes that are made to the scenario first, as `door what-if` names them
    #[arg(long, value_name = "CHANGE", value_delimiter = ',')]
    with: Vec<String>,
    /// A record of `tapstone door measure`: its times take the place of the card's
    #[arg(long, value_name = "RECORD")]
    card: Option<PathBuf>,
}

/// A scenario, and what stood in for a real card.
pub(super) struct OpenedScenario {
    pub(super) name: String,
    pub(super) scenario: Scenario,
    emulated: Option<Emulated>,
}

impl ScenarioArguments {
    /// The TOML of a shipped scenario.
    pub(super) fn text(&self) -> anyhow::Result<&'static str> {
        let found = SHIPPED.iter().find(|(name, _)| *name == self.name).map(|(_, text)| *text);
        found.ok_or_else(|| UnknownScenario { name: self.name.clone() }.into())
    }

    pub(super) fn open(&self) -> anyhow::Result<OpenedScenario> {
        let mut scenario = read_scenario(&self.name)?;
        let mut emulated = None;
        if let Some(card) = &self.card {
            let record = Record::read(card)?;
            scenario = with_card(scenario, &record, &card.display().to_string())?;
            emulated = record.target.emulated;
        }
        scenario = scenario.with_changes(&self.with)?;
        if !self.with.is_empty() {
            let made = self.with.join(", ");
            scenario.notes.push(format!("the scenario is not as it is written: with {made}"));
        }
        Ok(OpenedScenario { name: self.name.clone(), scenario, emulated })
    }
}

/// The scenario of this name. A file of that name goes before a shipped scenario: it is the nearer
/// one.
pub(super) fn read_scenario(name: &str) -> anyhow::Result<Scenario> {
    let path = Path::new(name);
    let is_path = name.contains('/') || path.extension().is_some();
    if !is_path && !path.is_file() {
        return Ok(Scenario::shipped(name)?);
    }
    let unreadable = |error: std::io::Error| {
        let shipped: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
        anyhow::anyhow!(
            "cannot read {name}: {error}\nhint: name a TOML file, or one of {}",
            shipped.join(", ")
        )
    };
    let text = read_text(path, FileLimit::TOML).map_err(unreadable)?;
    Ok(Scenario::read(&text, name)?)
}

impl OpenedScenario {
    /// A record for what is made of it. No machine has a part in the figures of a model.
    pub(super) fn record(&self) -> Record {
        let target = Target { emulated: self.emulated.clone(), ..Target::new(TargetKind::Door) };
        let mut record = Record::new(tool(), Timestamp::now(), Environment::default(), target);
        record.command = command_line::words();
        record
    }
}
