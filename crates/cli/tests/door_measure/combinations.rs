//! Every combination of known card, overlap and extended length, executed on virtual cards with RSA
//! and with P-256, with certificates as issued and smaller ones, each as it is and in gzip: what the
//! run itself and the model predict, against what it took.

use std::path::{Path, PathBuf};
use std::process::Command;

use tapstone_door::Scenario;
use tapstone_testing::{Held, hold};
use tapstone_vcard::piv::{PivAlgorithm, Recipe};

use crate::people::Holder;
use crate::support::{Outcome, Pcscd, undisturbed};

/// Of the time with a combination, at most so much off when it is predicted.
const OFF: f64 = 0.10;

/// By so many bytes gzip's output differs between two cards, whose keys and numbers are random.
const GZIP_BYTES: u64 = 16;

const MODEL: &str = "virtual-p71";

/// The card of a shipped profile, and how the model's scenario comes to it.
struct Variant {
    profile: &'static str,
    card: PivAlgorithm,
    certificate_bytes: usize,
    model_with: &'static [&'static str],
}

const VARIANTS: [Variant; 4] = [
    Variant {
        profile: "piv-p71-rsa2048",
        card: PivAlgorithm::Rsa2048,
        certificate_bytes: 1517,
        model_with: &[],
    },
    Variant {
        profile: "piv-p71-rsa2048",
        card: PivAlgorithm::Rsa2048,
        certificate_bytes: 1000,
        model_with: &["smaller-certificate"],
    },
    Variant {
        profile: "piv-p71-p256",
        card: PivAlgorithm::P256,
        certificate_bytes: 1314,
        model_with: &["algorithm:ecc-p256"],
    },
    Variant {
        profile: "piv-p71-p256",
        card: PivAlgorithm::P256,
        certificate_bytes: 800,
        model_with: &["algorithm:ecc-p256", "smaller-certificate"],
    },
];

impl Variant {
    fn holder(&self) -> Holder {
        Holder::with(&Recipe {
            chuid_bytes: Some(2339),
            management: PivAlgorithm::Rsa2048,
            card: self.card,
            certificate_bytes: Some(self.certificate_bytes),
            ..Recipe::default()
        })
    }

    /// The shipped profile, with this length of the certificate, as it is or in gzip.
    fn profile(&self, holder: &Holder, is_gzip: bool) -> PathBuf {
        let shipped = tapstone_vcard::shipped();
        let text = shipped.iter().find(|shipped| shipped.name == self.profile).unwrap().text;
        let line = text.lines().find(|line| line.starts_with("certificate_bytes")).unwrap();
        let bytes = self.certificate_bytes;
        let stored = if is_gzip { "gzip" } else { "plain" };
        let other = format!(
            "certificate_bytes = {{ bytes = {bytes}, from = \"assumed\" }}\n\
             certificates = \"{stored}\""
        );
        holder.file(&format!("{stored}.toml"), &text.replace(line, &other))
    }

    /// The changes that make the model's card to this one.
    fn changes(&self, is_gzip: bool) -> Vec<String> {
        let gzip = is_gzip.then_some("gzip-certificate");
        self.model_with.iter().copied().chain(gzip).map(str::to_owned).collect()
    }
}

#[test]
fn combinations_take_what_the_run_and_the_model_predict() {
    let holders = VARIANTS.map(|variant| variant.holder());
    let Some(pcscd) = Pcscd::start_urgently() else { return };
    for (variant, holder) in VARIANTS.iter().zip(&holders) {
        for is_gzip in [false, true] {
            let changes = variant.changes(is_gzip);
            if is_gzip {
                model_has_the_bytes_of(holder, &changes);
            }
            if !combinations_agree(&pcscd, holder, &variant.profile(holder, is_gzip), &changes) {
                return;
            }
        }
    }
}

/// What gzip makes of the certificate is as long as the scenario says.
#[track_caller]
fn model_has_the_bytes_of(holder: &Holder, changes: &[String]) {
    let scenario = Scenario::shipped(MODEL).unwrap().with_changes(changes).unwrap();
    let model = scenario.path.content.unwrap().certificate_bytes();
    let der = holder.folder().join("card_authentication_9e.der");
    let gzip = Command::new("gzip").args(["-9", "-n", "-c"]).arg(der).output().unwrap();
    let bytes = gzip.stdout.len() as u64;
    println!("{changes:?}: {bytes} bytes in gzip, {model} by the model");
    assert!(bytes.abs_diff(u64::from(model)) <= GZIP_BYTES, "{bytes} for {model}");
}

/// Whether all of them could be measured; they are within their bounds then.
fn combinations_agree(pcscd: &Pcscd, holder: &Holder, profile: &Path, changes: &[String]) -> bool {
    let _card = holder.insert(pcscd, profile);
    let with = changes.join(",");
    let measure = || {
        let mut command = holder
            .measure()
            .args("--rounds 4 --module-time 100ms --strategy combinations --model")
            .arg(MODEL);
        if !with.is_empty() {
            command = command.args("--model-with").arg(&with);
        }
        command.run().exits(0)
    };
    undisturbed(0.1, OFF, measure, |outcome| within(outcome, &with)).is_some()
}

fn within(outcome: &Outcome, with: &str) -> Held {
    let record = outcome.record();
    assert_eq!((record.trials.len(), record.model_predictions.len()), (7, 8));
    record.trials.iter().try_for_each(|trial| {
        let saved = trial.predicted.map(|of| f64::midpoint(of.low, of.high)).unwrap();
        let off = (trial.before_ns.estimate - saved) / trial.after_ns.estimate - 1.0;
        println!("[{with}] {}: the run {:+.1} %", trial.fix, 100.0 * off);
        hold(off.abs() <= OFF, format_args!("{}: {off}\n{}", trial.fix, outcome.stdout))
    })?;
    record.model_predictions.iter().try_for_each(|it| {
        println!(
            "[{with}] {}: the model {:.1} ms, executed {:.1} ms, {:+.1} %",
            it.operation,
            it.predicted_ns / 1e6,
            it.measured_ns.estimate / 1e6,
            100.0 * it.relative_error
        );
        assert!(it.changes.join(",").starts_with(with), "{:?}", it.changes);
        hold(
            it.relative_error.abs() <= OFF,
            format_args!("{}: {}\n{}", it.operation, it.relative_error, outcome.stdout),
        )
    })
}
