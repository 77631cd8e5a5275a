//! What else differs between two runs: each could be the reason for a difference in their figures.

use tapstone_record::{Environment, Record, Target};
use tapstone_reference::Reference;

use crate::side;

/// Warnings for two records.
pub(crate) fn between_records(baseline: &Record, candidate: &Record) -> Vec<String> {
    let mut warnings = emulated(&[("baseline", baseline), ("candidate", candidate)]);
    let pairs = [
        ("kind of target", kind(baseline), kind(candidate)),
        ("machine", machine(&baseline.environment), machine(&candidate.environment)),
        ("cores", cores(&baseline.environment), cores(&candidate.environment)),
        ("kernel", baseline.environment.kernel.clone(), candidate.environment.kernel.clone()),
        ("clock", clock(&baseline.environment), clock(&candidate.environment)),
        ("module", module(&baseline.target), module(&candidate.target)),
        ("module's SHA-256", module_sha256(&baseline.target), module_sha256(&candidate.target)),
        ("token", tokens(&baseline.target), tokens(&candidate.target)),
        ("firmware", firmware(&baseline.target), firmware(&candidate.target)),
        ("card", card(&baseline.target), card(&candidate.target)),
        ("reader", reader(&baseline.target), reader(&candidate.target)),
        ("daemon", daemon(&baseline.target), daemon(&candidate.target)),
        ("program", program(&baseline.target), program(&candidate.target)),
        ("version of Tapstone", tool(baseline), tool(candidate)),
    ];
    let differing = pairs.into_iter().filter(|(_, one, other)| one != other);
    warnings.extend(differing.map(|(what, one, other)| {
        let said = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        format!("the {what} differs: {} and {}", said(one), said(other))
    }));
    warnings.extend(imported(&[("baseline", baseline), ("candidate", candidate)]));
    warnings
}

/// Warnings for a record and published figures.
pub(crate) fn from_reference(reference: &Reference, candidate: &Record) -> Vec<String> {
    let mut warnings = emulated(&[("candidate", candidate)]);
    warnings.push(format!(
        "the figures of {} were published, without intervals, by {}",
        reference.name, reference.source
    ));
    warnings.push(
        "they were made on another machine, reader and clock: only the interval of the measured \
         side is in the ratios"
            .to_owned(),
    );
    warnings.extend(imported(&[("candidate", candidate)]));
    warnings
}

fn emulated(sides: &[(&str, &Record)]) -> Vec<String> {
    let profile = |(side, record): &(&str, &Record)| {
        let profile = &record.target.emulated.as_ref()?.profile;
        Some(format!("the {side} was no real device: emulated, profile {profile}"))
    };
    sides.iter().filter_map(profile).collect()
}

fn imported(sides: &[(&str, &Record)]) -> Vec<String> {
    let origin = |(side, record): &(&str, &Record)| {
        let by = side::maker(record.imported.as_ref()?);
        Some(format!("the {side}'s figures were made by {by}, not by Tapstone"))
    };
    sides.iter().filter_map(origin).collect()
}

fn kind(record: &Record) -> Option<String> {
    Some(format!("{:?}", record.target.kind).to_lowercase())
}

fn tool(record: &Record) -> Option<String> {
    Some(record.tool.version.clone())
}

fn machine(environment: &Environment) -> Option<String> {
    let virtualisation = environment.virtualisation.as_deref();
    let cpu = environment.cpu.as_deref()?;
    Some([Some(cpu), virtualisation].into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn cores(environment: &Environment) -> Option<String> {
    let cores = environment.cores?;
    Some(match environment.cgroup_quota_cores {
        Some(quota) => format!("{cores} with a quota of {quota}"),
        None => cores.to_string(),
    })
}

/// Its step only: what a reading costs varies from run to run.
fn clock(environment: &Environment) -> Option<String> {
    Some(format!("steps of {}", environment.clock?.step_ns))
}

fn module(target: &Target) -> Option<String> {
    target.module.as_ref().map(|module| module.path.clone())
}

fn module_sha256(target: &Target) -> Option<String> {
    target.module.as_ref().map(|module| module.sha256.chars().take(16).collect())
}

fn tokens(target: &Target) -> Option<String> {
    let name = |token: &tapstone_record::Token| {
        format!("{} {} (serial {})", token.manufacturer, token.model, token.serial)
    };
    listed(target.tokens.iter().map(name))
}

fn firmware(target: &Target) -> Option<String> {
    let library = target.library.iter().map(|it| format!("library {}", it.version));
    let tokens = target.tokens.iter().map(|token| token.firmware_version.clone());
    listed(tokens.chain(library))
}

fn card(target: &Target) -> Option<String> {
    let card = target.card.as_ref()?;
    let parts = [card.name.clone(), Some(format!("ATR {}", card.atr)), card.protocol.clone()];
    listed(parts.into_iter().flatten())
}

fn reader(target: &Target) -> Option<String> {
    let reader = target.reader.as_ref()?;
    listed([Some(reader.name.clone()), reader.driver_version.clone()].into_iter().flatten())
}

fn daemon(target: &Target) -> Option<String> {
    target.daemon.as_ref().map(|daemon| format!("{} {}", daemon.name, daemon.version))
}

fn program(target: &Target) -> Option<String> {
    let program = target.program.as_ref()?;
    let sha256: String = program.sha256.chars().take(16).collect();
    Some(format!("{} (SHA-256 {sha256}…)", program.path))
}

fn listed(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
