//! The options of `tapstone door measure`, as typed.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use tapstone_measure::units::Nanos;
use tapstone_piv::{AuthenticationMechanism, CARD_AUTHENTICATION_POLICY, Oid, Strategy};

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
    /// Certificates of CAs, DER or PEM: a file, or a folder; self-signed ones are trust anchors
    #[arg(long, value_name = "PATH", required = true)]
    pub(crate) trust: Vec<PathBuf>,
    /// CRLs, DER or PEM: a file, or a folder; with them every certificate must be on none
    #[arg(long, value_name = "PATH")]
    pub(crate) crl: Vec<PathBuf>,
    /// How the card is authenticated
    #[arg(long, value_enum, default_value_t = MechanismArgument::PkiCak)]
    pub(crate) mechanism: MechanismArgument,
    /// The ways to carry out PKI-CAK that take turns; the plain one is always among them
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    pub(crate) strategy: Vec<Choice>,
    /// So many rounds, each of which goes through all strategies
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) rounds: u64,
    /// Ask for a policy; without a value for id-fpki-common-cardAuth
    #[arg(long, value_name = "OID", num_args = 0..=1, default_missing_value = COMMON, value_parser = oid)]
    pub(crate) policy: Option<Oid>,
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
    pub(crate) pin: PinSourceArguments,

    /// How long a command may take before the card counts as hung
    #[arg(long, value_name = "DURATION", help_heading = "Patience", default_value = "60s", value_parser = values::duration)]
    pub(crate) timeout: Nanos,
    /// How long to wait for a reader that another program has, or for a card that was taken out
    #[arg(long, value_name = "DURATION", help_heading = "Patience", default_value = "30s", value_parser = values::pause)]
    pub(crate) wait: Nanos,

    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

impl Arguments {
    /// What takes turns, the baseline first.
    pub(crate) fn mechanisms(&self) -> anyhow::Result<Vec<AuthenticationMechanism>> {
        let one = match self.mechanism {
            MechanismArgument::PkiCak => {
                let chosen = |strategy: &Strategy| {
                    let named = |choice: &Choice| choice.0.is_none_or(|one| one == *strategy);
                    *strategy == Strategy::Plain || self.strategy.iter().any(named)
                };
                let strategies = Strategy::ALL.into_iter().filter(chosen);
                return Ok(strategies.map(AuthenticationMechanism::PkiCak).collect());
            }
            MechanismArgument::Chuid => AuthenticationMechanism::Chuid,
            MechanismArgument::PkiAuth => AuthenticationMechanism::PkiAuth,
            MechanismArgument::Contact => AuthenticationMechanism::Contact,
        };
        let named = self.strategy.iter().any(|choice| choice.0.is_some());
        anyhow::ensure!(!named, "--strategy is for --mechanism pki-cak\nhint: leave it out");
        Ok(vec![one])
    }
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

/// A strategy, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice(pub(crate) Option<Strategy>);

impl ValueEnum for Choice {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Choice; 6] = [
            Choice(None),
            Choice(Some(Strategy::Plain)),
            Choice(Some(Strategy::NoChuid)),
            Choice(Some(Strategy::KnownCard)),
            Choice(Some(Strategy::Overlap)),
            Choice(Some(Strategy::BackgroundValidation)),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            None => PossibleValue::new("all").help("all of them"),
            Some(strategy) => PossibleValue::new(strategy.name()).help(strategy.condition()),
        })
    }
}

/// The text of [`CARD_AUTHENTICATION_POLICY`].
const COMMON: &str = "id-fpki-common-cardAuth";

fn oid(text: &str) -> Result<Oid, String> {
    if text == COMMON {
        return Ok(CARD_AUTHENTICATION_POLICY);
    }
    Oid::from_str(text).map_err(|error| format!("{error}: write 2.16.840.1.101.3.2.1.3.17"))
}

const EXAMPLES: &str = "\
Examples:
  tapstone door measure --trust roots/                        PKI-CAK, all strategies
  tapstone door measure --trust roots/ --crl crls/ --policy --output run.json
  tapstone door measure --trust roots/ --strategy known-card --rounds 100
  tapstone door measure --trust roots/ --mechanism pki-auth --pin-prompt

Exit codes: 0 done and granted, 1 refused, 2 could not measure.";
