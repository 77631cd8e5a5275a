//! Every combination of known card, overlap and extended length, executed on virtual cards with RSA
//! and with P-256: what the run itself and the model predict, against what it took.

use std::path::Path;

use tapstone_testing::hold;
use tapstone_vcard::piv::{CertificateStorage, PivAlgorithm, Recipe};

use crate::people::Holder;
use crate::support::{Outcome, Pcscd, undisturbed};

/// Of the time with a combination, at most so much off when it is predicted.
const OFF: f64 = 0.10;

/// The card of a shipped profile, and how the model's scenario comes to it.
struct Variant {
    profile: &'static str,
    card: PivAlgorithm,
    certificate_bytes: usize,
    model_with: &'static str,
}

const VARIANTS: [Variant; 4] = [
    Variant {
        profile: "piv-p71-rsa2048",
        card: PivAlgorithm::Rsa2048,
        certificate_bytes: 1517,
        model_with: "",
    },
    Variant {
        profile: "piv-p71-rsa2048",
        card: PivAlgorithm::Rsa2048,
        certificate_bytes: 1000,
        model_with: "--model-with smaller-certificate",
    },
    Variant {
        profile: "piv-p71-p256",
        card: PivAlgorithm::P256,
        certificate_bytes: 1314,
        model_with: "--model-with algorithm:ecc-p256",
    },
    Variant {
        profile: "piv-p71-p256",
        card: PivAlgorithm::P256,
        certificate_bytes: 800,
        model_with: "--model-with algorithm:ecc-p256,smaller-certificate",
    },
];

impl Variant {
    fn holder(&self) -> Holder {
        Holder::with(&Recipe {
            chuid_bytes: Some(2339),
            management: PivAlgorithm::Rsa2048,
            card: self.card,
            certificate_bytes: Some(self.certificate_bytes),
            certificates: CertificateStorage::Plain,
            ..Recipe::default()
        })
    }

    /// The shipped profile, with this length of the certificate.
    fn profile(&self, holder: &Holder) -> std::path::PathBuf {
        let shipped = tapstone_vcard::shipped();
        let text = shipped.iter().find(|shipped| shipped.name == self.profile).unwrap().text;
        let line = text.lines().find(|line| line.starts_with("certificate_bytes")).unwrap();
        let bytes = self.certificate_bytes;
        let other = format!("certificate_bytes = {{ bytes = {bytes}, from = \"assumed\" }}");
        holder.file("card.toml", &text.replace(line, &other))
    }
}

#[test]
fn combinations_take_what_the_run_and_the_model_predict() {
    let Some(pcscd) = Pcscd::start() else { return };
    for variant in VARIANTS {
        let holder = variant.holder();
        let profile = variant.profile(&holder);
        let _card = holder.insert(&pcscd, Path::new(&profile));
        let measure = || {
            let options =
                "--rounds 4 --module-time 100ms --strategy combinations --model virtual-p71";
            holder.measure().args(options).args(variant.model_with).run().exits(0)
        };
        let within = |outcome: &Outcome| {
            let record = outcome.record();
            assert_eq!((record.trials.len(), record.model_predictions.len()), (7, 8));
            record.trials.iter().try_for_each(|trial| {
                let saved = trial.predicted.map(|of| f64::midpoint(of.low, of.high)).unwrap();
                let off = (trial.before_ns.estimate - saved) / trial.after_ns.estimate - 1.0;
                println!("{} {}: the run {:+.1} %", variant.profile, trial.fix, 100.0 * off);
                hold(off.abs() <= OFF, format_args!("{}: {off}\n{}", trial.fix, outcome.stdout))
            })?;
            record.model_predictions.iter().try_for_each(|it| {
                let what = format!("{} {}", variant.model_with, it.operation);
                println!("{what}: the model {:+.1} %", 100.0 * it.off);
                hold(it.off.abs() <= OFF, format_args!("{what}: {}\n{}", it.off, outcome.stdout))
            })
        };
        if undisturbed(0.1, OFF, measure, within).is_none() {
            return;
        }
    }
}
