//! A scenario as it stands in TOML. Times are looked at later, where their place is known.

use std::collections::BTreeMap;

use serde::Deserialize;
use tapstone_link::Hop;
use tapstone_record::Provenance;
use toml::{Spanned, Value};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScenario {
    pub(super) title: String,
    /// A shipped scenario that this one starts from.
    pub(super) base: Option<Spanned<String>>,
    /// The changes that are made to it.
    #[serde(default)]
    pub(super) with: Vec<Spanned<String>>,
    pub(super) operation: Option<String>,
    pub(super) source: Option<String>,
    pub(super) target_ms: Option<Spanned<Value>>,
    pub(super) content: Option<Spanned<RawContent>>,
    #[serde(default)]
    pub(super) component: Vec<Spanned<RawComponent>>,
    #[serde(default)]
    pub(super) link: Vec<Spanned<RawLink>>,
    pub(super) self_check: Option<RawTimed>,
    #[serde(default)]
    pub(super) change: Vec<Spanned<RawChange>>,
    #[serde(default)]
    pub(super) effort: BTreeMap<String, Spanned<u32>>,
    #[serde(default)]
    pub(super) projection: Vec<RawProjection>,
    pub(super) people: Option<RawPeople>,
}

/// What is read from the card and signed by it, in bytes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawContent {
    pub(super) key: Spanned<String>,
    pub(super) certificate: Spanned<RawCertificate>,
    #[serde(default = "usual_select")]
    pub(super) select_bytes: u32,
    pub(super) chuid_bytes: Option<u32>,
}

/// The answer of GSA's cards to SELECT is about as long.
const fn usual_select() -> u32 {
    63
}

/// A certificate's bytes, and those of its other forms.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCertificate {
    pub(super) bytes: u32,
    pub(super) gzip: Option<u32>,
    pub(super) small: Option<u32>,
    pub(super) small_gzip: Option<u32>,
}

/// What a link carries, where it is not said message by message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawCarried {
    /// The commands that the content needs.
    Commands,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawComponent {
    pub(super) kind: Spanned<RawKind>,
    pub(super) name: Option<Spanned<String>>,
    pub(super) time_ms: Option<Spanned<Value>>,
    pub(super) steps: Option<Spanned<BTreeMap<String, f64>>>,
    /// For each command of the content.
    pub(super) command_ms: Option<Spanned<Value>>,
    #[serde(default)]
    pub(super) work: Vec<RawWork>,
    pub(super) from: Option<Provenance>,
    pub(super) source: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawKind {
    Card,
    Reader,
    Module,
    Controller,
    Door,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWork {
    pub(super) step: Spanned<String>,
    pub(super) time_ms: Spanned<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLink {
    pub(super) between: Spanned<[String; 2]>,
    pub(super) by: Option<Spanned<Hop>>,
    pub(super) time_ms: Option<Spanned<Value>>,
    #[serde(default)]
    pub(super) message: Vec<RawMessage>,
    pub(super) carries: Option<Spanned<RawCarried>>,
    pub(super) from: Option<Provenance>,
    pub(super) source: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMessage {
    pub(super) step: Spanned<String>,
    #[serde(default = "one")]
    pub(super) count: u32,
    #[serde(default)]
    pub(super) command_bytes: u32,
    #[serde(default)]
    pub(super) response_bytes: u32,
}

const fn one() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTimed {
    pub(super) time_ms: Spanned<Value>,
    pub(super) from: Option<Provenance>,
    pub(super) source: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawChange {
    pub(super) kind: RawChangeKind,
    pub(super) name: String,
    pub(super) what: Option<String>,
    pub(super) saves_ms: Option<Spanned<Value>>,
    pub(super) factor: Option<Spanned<Value>>,
    /// Of an algorithm: the certificate of such a key.
    pub(super) certificate: Option<Spanned<RawCertificate>>,
    /// Of a card or module: what these steps take.
    pub(super) steps_ms: Option<BTreeMap<Spanned<String>, Spanned<Value>>>,
    /// The change without which it is none.
    pub(super) needs: Option<Spanned<String>>,
    pub(super) over: Option<Vec<Spanned<String>>>,
    pub(super) by: Option<Spanned<Hop>>,
    pub(super) from: Option<Provenance>,
    pub(super) condition: Option<String>,
}

/// What only a scenario can tell: how much another algorithm or another card saves, and how else
/// something can be wired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawChangeKind {
    Algorithm,
    FasterCard,
    FasterModule,
    Link,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProjection {
    pub(super) says: String,
    #[serde(default)]
    pub(super) with: Vec<Spanned<String>>,
    pub(super) saving_ms: Option<Spanned<Value>>,
    pub(super) total_ms: Option<Spanned<Value>>,
    pub(super) still_ms: Option<Spanned<Value>>,
    /// The last part that the source's figure has in it, without the self-check.
    pub(super) until: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPeople {
    pub(super) tap_ms: Option<Spanned<Value>>,
    pub(super) hold_ms: Option<Spanned<Value>>,
    pub(super) again_ms: Option<Spanned<Value>>,
    pub(super) read_failure: Option<Spanned<f64>>,
    pub(super) attempts: Option<Spanned<u32>>,
    pub(super) patience_ms: Option<Spanned<Value>>,
    pub(super) pass_ms: Option<Spanned<Value>>,
    pub(super) doors: Option<Spanned<u32>>,
    #[serde(default)]
    pub(super) card: Vec<Spanned<RawCardKind>>,
}

/// A kind of card that a part of the people hold.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCardKind {
    pub(super) name: String,
    pub(super) share: Spanned<f64>,
    /// The changes that make the scenario's card to this one.
    #[serde(default)]
    pub(super) with: Vec<Spanned<String>>,
}
