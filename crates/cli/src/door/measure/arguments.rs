//! The options of `tapstone door measure`, as typed.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use tapstone_door_measure::PolicyChoice;
use tapstone_door_measure::files::OcspChoice;
use tapstone_measure::units::Nanos;
use tapstone_piv::{
    AuthenticationMechanism, CARD_AUTHENTICATION_POLICY, Oid, RevocationRule, Strategy,
};

use super::model::ModelArguments;
use crate::live::LiveArguments;
use crate::output::OutputArguments;
use crate::token::PinSourceArguments;
use crate::values;

/// Authenticate a real card as a door does, and say where the time goes.
///
/// Each round reads the card, challenges its key, validates the path of its certificate and decides;
/// a card that is refused is refused with its reason. Several strategies of PKI-CAK take turns on
/// the same card. Nothing on the card changes; a PIN is given to it only by the mechanisms that
/// need one, after its retry counter was read, never with its last try, and never again after a
/// refusal.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The reader, or a part of its name that no other has
    #[arg(long, value_name = "NAME")]
    pub(crate) reader: Option<String>,
    /// Certificates of trust anchors, DER or PEM: a file, or a folder
    #[arg(long, value_name = "PATH", required_unless_present = "trust")]
    pub(crate) anchors: Vec<PathBuf>,
    /// Certificates of CAs between an anchor and a card, which nobody believes by themselves
    #[arg(long, value_name = "PATH")]
    pub(crate) intermediates: Vec<PathBuf>,
    /// Both in one place: self-signed certificates are anchors, the others CAs on the way
    #[arg(long, value_name = "PATH")]
    pub(crate) trust: Vec<PathBuf>,
    /// Fetch CAs' certificates that are missing from where a certificate says that they are, over
    /// plain HTTP: whoever shows a card chooses what is asked
    #[arg(long)]
    pub(crate) aia: bool,
    /// How long that may take for one card
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = values::duration)]
    pub(crate) aia_timeout: Nanos,
    /// CRLs, DER or PEM: a file, or a folder; complete, partitioned, indirect and delta
    #[arg(long, value_name = "PATH", help_heading = "Revocation")]
    pub(crate) crl: Vec<PathBuf>,
    /// Where indexes of CRLs are kept, a folder of yours alone; without it in your cache
    #[arg(long, value_name = "FOLDER", help_heading = "Revocation")]
    pub(crate) crl_index: Option<PathBuf>,
    /// OCSP answers that were fetched beforehand, DER: a file, or a folder
    #[arg(long, value_name = "PATH", help_heading = "Revocation")]
    pub(crate) ocsp: Vec<PathBuf>,
    /// Ask a responder about the card's certificate when no answer is fresh: the one that the
    /// certificate names, or this one
    #[arg(long, value_name = "HTTP-URL", num_args = 0..=1, default_missing_value = "", help_heading = "Revocation")]
    pub(crate) ocsp_live: Option<String>,
    /// How long a responder may take
    #[arg(long, value_name = "DURATION", help_heading = "Revocation", default_value = "5s", value_parser = values::duration)]
    pub(crate) ocsp_timeout: Nanos,
    /// How old an OCSP answer without nextUpdate may be
    #[arg(long, value_name = "DURATION", help_heading = "Revocation", default_value = "24h", value_parser = values::pause)]
    pub(crate) ocsp_max_age: Nanos,
    /// Refuse OCSP answers that do not repeat the nonce of their request
    #[arg(long, help_heading = "Revocation")]
    pub(crate) require_nonce: bool,
    /// What to do where nothing fresh says whether a certificate was revoked; without it `require`
    /// with CRLs or OCSP, and `off` without
    #[arg(long, value_enum, value_name = "RULE", help_heading = "Revocation")]
    pub(crate) revocation: Option<RevocationArgument>,
    /// How the card is authenticated
    #[arg(long, value_enum, default_value_t = MechanismArgument::PkiCak)]
    pub(crate) mechanism: MechanismArgument,
    /// The ways to carry out PKI-CAK that take turns; the plain one is always among them
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    pub(crate) strategy: Vec<Choice>,
    /// So many rounds, each of which goes through all strategies
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) rounds: u64,
    /// What decides the order within each round and the pauses between rounds
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The policy to ask for: `usual` (PIV's and PIV-I's for the mechanism), `any`, or an object
    /// identifier; without a value id-fpki-common-cardAuth
    #[arg(long, value_name = "POLICY", num_args = 0..=1, default_value = USUAL, default_missing_value = COMMON, value_parser = policy)]
    pub(crate) policy: PolicyChoice,
    /// The time of validation instead of now: 2026-11-21T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<Timestamp>,
    /// background-validation: how old a check made beforehand may be
    #[arg(long, value_name = "DURATION", default_value = "18h", value_parser = values::pause)]
    pub(crate) age_limit: Nanos,
    /// How long the door's module takes to validate a path: replayed, the rest is waited
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::pause)]
    pub(crate) module_time: Nanos,

    #[command(flatten)]
    pub(crate) model: ModelArguments,

    #[command(flatten)]
    pub(crate) pin: PinSourceArguments,

    /// How long a command may take before the card counts as hung
    #[arg(long, value_name = "DURATION", help_heading = "Timeouts", default_value = "60s", value_parser = values::duration)]
    pub(crate) timeout: Nanos,
    /// How long to wait for a reader that another program has, or for a card that was taken out
    #[arg(long, value_name = "DURATION", help_heading = "Timeouts", default_value = "30s", value_parser = values::pause)]
    pub(crate) wait: Nanos,

    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    pub(crate) live: LiveArguments,
}

impl Arguments {
    pub(crate) fn revocation_rule(&self) -> anyhow::Result<RevocationRule> {
        let has_source = !self.crl.is_empty() || !self.ocsp.is_empty() || self.ocsp_live.is_some();
        let rule = match self.revocation {
            None if has_source => RevocationRule::Require,
            None | Some(RevocationArgument::Off) => RevocationRule::Off,
            Some(RevocationArgument::Require) => RevocationRule::Require,
            Some(RevocationArgument::Prefer) => RevocationRule::Prefer,
        };
        anyhow::ensure!(
            has_source || rule == RevocationRule::Off,
            "there is nothing to ask whether a certificate was revoked\nhint: --crl names CRLs, --ocsp \
             answers, and --ocsp-live asks responders"
        );
        Ok(rule)
    }

    pub(crate) fn ocsp_choice(&self) -> OcspChoice {
        OcspChoice {
            is_live: self.ocsp_live.is_some(),
            address: self.ocsp_live.clone().filter(|address| !address.is_empty()),
            max_age: self.ocsp_max_age,
            require_nonce: self.require_nonce,
            timeout: self.ocsp_timeout,
        }
    }

    /// What takes turns, the baseline first.
    pub(crate) fn mechanisms(&self) -> anyhow::Result<Vec<AuthenticationMechanism>> {
        let one = match self.mechanism {
            MechanismArgument::PkiCak => {
                let named = |strategy: &Strategy| {
                    self.strategy.iter().any(|choice| choice.strategies().contains(strategy))
                };
                let mut strategies = vec![Strategy::Plain];
                for strategy in Strategy::ALL.into_iter().chain(Strategy::COMBINATIONS) {
                    if named(&strategy) && !strategies.contains(&strategy) {
                        strategies.push(strategy);
                    }
                }
                let strategies = strategies.into_iter();
                return Ok(strategies.map(AuthenticationMechanism::PkiCak).collect());
            }
            MechanismArgument::Chuid => AuthenticationMechanism::Chuid,
            MechanismArgument::PkiAuth => AuthenticationMechanism::PkiAuth,
            MechanismArgument::Contact => AuthenticationMechanism::Contact,
        };
        let named = self.strategy.iter().any(|choice| *choice != Choice::All);
        anyhow::ensure!(!named, "--strategy is for --mechanism pki-cak\nhint: leave it out");
        let modelled = self.model.is_named();
        anyhow::ensure!(!modelled, "--model is for --mechanism pki-cak\nhint: leave it out");
        Ok(vec![one])
    }
}

/// What is done where nothing says whether a certificate was revoked, as `--revocation` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RevocationArgument {
    /// The card is refused
    Require,
    /// The card is granted, and that is told
    Prefer,
    /// Nobody asks
    Off,
}

/// An authentication mechanism, as `--mechanism` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MechanismArgument {
    /// The card authentication key signs a challenge; no PIN
    PkiCak,
    /// Only the signature of the CHUID is checked: a copy of it would do
    Chuid,
    /// The PIN, then the PIV authentication key signs a challenge
    PkiAuth,
    /// As the published comparison of contact cards: connect, select, CHUID, PIN, sign
    Contact,
}

/// A strategy, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Every way to carry out the dialogue.
    All,
    /// Every combination of what a relying system can change by itself.
    Combinations,
    /// A single strategy.
    One(Strategy),
}

impl Choice {
    fn strategies(&self) -> &[Strategy] {
        match self {
            Self::All => &Strategy::ALL,
            Self::Combinations => &Strategy::COMBINATIONS,
            Self::One(strategy) => std::slice::from_ref(strategy),
        }
    }
}

impl ValueEnum for Choice {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Choice; 12] = [
            Choice::All,
            Choice::Combinations,
            Choice::One(Strategy::Plain),
            Choice::One(Strategy::NoChuid),
            Choice::One(Strategy::KnownCard),
            Choice::One(Strategy::Overlap),
            Choice::One(Strategy::BackgroundValidation),
            Choice::One(Strategy::ExtendedLength),
            Choice::One(Strategy::KnownCardExtendedLength),
            Choice::One(Strategy::OverlapExtendedLength),
            Choice::One(Strategy::KnownCardOverlap),
            Choice::One(Strategy::KnownCardOverlapExtendedLength),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::All => PossibleValue::new("all").help("all ways, none combined"),
            Self::Combinations => PossibleValue::new("combinations")
                .help("known-card, overlap, extended-length, and all their combinations"),
            Self::One(strategy) => PossibleValue::new(strategy.name()).help(strategy.condition()),
        })
    }
}

/// The text of [`CARD_AUTHENTICATION_POLICY`].
const COMMON: &str = "id-fpki-common-cardAuth";
const USUAL: &str = "usual";

fn policy(text: &str) -> Result<PolicyChoice, String> {
    let oid = match text {
        USUAL => return Ok(PolicyChoice::Usual),
        "any" => return Ok(PolicyChoice::Any),
        COMMON => CARD_AUTHENTICATION_POLICY,
        other => Oid::from_str(other).map_err(|error| {
            format!("{error}: write usual, any, or 2.16.840.1.101.3.2.1.3.17 for example")
        })?,
    };
    Ok(PolicyChoice::One(oid.to_string()))
}

const EXAMPLES: &str = "\
Examples:
  tapstone door measure --anchors root.cer --intermediates cas/     PKI-CAK, all strategies
  tapstone door measure --anchors root.cer --crl crls/ --output run.json
  tapstone door measure --anchors root.cer --policy any --strategy known-card --rounds 100
  tapstone door measure --anchors root.cer --strategy combinations --module-time 200ms
  tapstone door measure --anchors root.cer --mechanism pki-auth --pin-prompt

Exit codes: 0 done and granted, 1 refused, 2 could not measure.";
