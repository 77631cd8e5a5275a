//! Which of the records that were kept is the baseline of a new one.
//!
//! Of a module, its token or a card, what a new version changes is not looked at: firmware,
//! serial number, digest and path. What a user chose and sees is: kind, label or name, profile.

use tapstone_record::{NotCompared, Outcome, Record, Token};

use crate::pairs;

/// Whether two records are runs of the same work on the same device: of one kind, on what has the
/// same name, with an operation in common that the kept one has a figure of.
#[must_use]
pub fn is_baseline_of(kept: &Record, candidate: &Record) -> bool {
    if kept.target.kind != candidate.target.kind || device(kept) != device(candidate) {
        return false;
    }
    // An operation that failed in the new run is the same work too.
    let matched = pairs::match_records(kept, candidate);
    !matched.pairs.is_empty() || !matched.not_compared.is_empty()
}

/// Operations for which a record is no baseline, although it tried them: they failed, in part or
/// altogether, or gave wrong results. What a device does not offer is not among them.
#[must_use]
pub fn without_figures(record: &Record) -> Vec<NotCompared> {
    let tried = record.results.iter().filter(|case| case.status.outcome != Outcome::Unsupported);
    tried.filter_map(pairs::failure).collect()
}

/// What a file of this record is called, without its ending: `token-demo`, `command-sha256sum`.
#[must_use]
pub fn file_stem(record: &Record) -> String {
    let name: String = device(record).to_lowercase();
    let parts = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words =
        [record.target.kind.name()].into_iter().chain(parts.filter(|part| !part.is_empty()));
    words.collect::<Vec<_>>().join("-").chars().take(MOST_CHARACTERS).collect()
}

/// Longer names help nobody; file systems take 255 bytes.
const MOST_CHARACTERS: usize = 80;

/// What the device is called by those who use it; a program by its file.
fn device(record: &Record) -> String {
    let target = &record.target;
    let token = |token: &Token| match token.label.trim() {
        "" => token.model.trim().to_owned(),
        label => label.to_owned(),
    };
    let card = target.card.iter().map(|card| card.name.clone().unwrap_or_else(|| card.atr.clone()));
    let program = target.program.iter().map(|program| {
        let file = program.path.rsplit('/').next();
        file.unwrap_or(&program.path).to_owned()
    });
    let profile = target.emulated.iter().map(|emulated| emulated.profile.clone());
    let parts = target.tokens.iter().map(token).chain(card).chain(program).chain(profile);
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use tapstone_record::TargetKind;

    use super::*;

    /// A run on a token with these operations.
    fn run(label: &str, firmware: &str, operations: &[&str]) -> Record {
        let rows: Vec<String> = operations
            .iter()
            .map(|operation| {
                format!(
                    r#"{{"operation": "{operation}", "status": {{"outcome": "ok"}},
                    "concurrency": {{"threads": 1, "processes": 1, "hosts": 1}},
                    "load": {{"kind": "closed"}}, "completed": 100,
                    "throughput": {{"estimate": 10, "low": 9, "high": 11, "unit": "operations/s"}}}}"#
                )
            })
            .collect();
        let text = format!(
            r#"{{"schema": "tapstone.record/2", "tool": {{"name": "tapstone", "version": "0.1.0"}},
            "command": [], "started_at": "2026-01-15T09:30:00Z",
            "environment": {{"load": {{}}}},
            "target": {{"kind": "token", "tokens": [{{"slot": {{"id": 1, "description": ""}},
            "label": "{label}", "manufacturer": "m", "model": "x", "serial": "{firmware}",
            "firmware_version": "{firmware}", "hardware_version": "1", "flags": []}}]}},
            "results": [{}]}}"#,
            rows.join(",")
        );
        Record::from_json(&text, "a test").unwrap()
    }

    #[test]
    fn the_same_work_on_the_same_device_whatever_its_version() {
        let new = run("perf", "2.0", &["rsa2048.sign", "ecdsa-p256.sign"]);
        assert!(is_baseline_of(&run("perf", "1.0", &["rsa2048.sign"]), &new));
        let mut failed = new.clone();
        failed.results.iter_mut().for_each(|case| case.status.outcome = Outcome::Failed);
        assert!(is_baseline_of(&new, &failed));
        assert!(!is_baseline_of(&failed, &new));
        assert_eq!((without_figures(&new).len(), without_figures(&failed).len()), (0, 2));
        assert!(!is_baseline_of(&run("other", "2.0", &["rsa2048.sign"]), &new));
        assert!(!is_baseline_of(&run("perf", "2.0", &["rsa4096.sign"]), &new));
        let mut card = new.clone();
        card.target.kind = TargetKind::Card;
        assert!(!is_baseline_of(&card, &new));
        let mut emulated = new.clone();
        emulated.target.emulated =
            Some(tapstone_record::Emulated { profile: "plain".into(), sha256: "00".into() });
        assert!(!is_baseline_of(&emulated, &new));
    }

    #[test]
    fn a_file_is_named_by_kind_and_device() {
        assert_eq!(file_stem(&run("HSM a/../b", "1", &[])), "token-hsm-a-b");
        assert_eq!(file_stem(&run("", "1", &[])), "token-x");
        assert!(file_stem(&run(&"long ".repeat(40), "1", &[])).len() <= MOST_CHARACTERS);
    }
}
