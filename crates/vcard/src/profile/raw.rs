//! A profile as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Table};

use super::ProfileOrigin;
use crate::piv::{CertificateStorage, PivAlgorithm};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProfile {
    pub(super) name: Spanned<String>,
    pub(super) description: String,
    pub(super) source: String,
    pub(super) atr: Spanned<String>,
    #[serde(default)]
    pub(super) applet: Vec<Spanned<RawApplet>>,
    #[serde(default)]
    pub(super) time: RawTimes,
    #[serde(default)]
    pub(super) command: BTreeMap<String, Spanned<RawTime>>,
    #[serde(default)]
    pub(super) work: BTreeMap<String, Spanned<RawTime>>,
    pub(super) link: Option<Spanned<Table>>,
    pub(super) jitter: Option<RawJitter>,
    #[serde(default)]
    pub(super) fault: Vec<Spanned<RawFault>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawApplet {
    pub(super) name: Spanned<String>,
    #[serde(alias = "personality")]
    pub(super) card_data: Option<RawCardData>,
    pub(super) chuid_bytes: Option<Spanned<RawCount>>,
    pub(super) certificate_bytes: Option<Spanned<RawCount>>,
    pub(super) certificates: Option<CertificateStorage>,
}

/// The algorithms of a generated card; what is left out is as on any generated card.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCardData {
    pub(super) authentication: Option<PivAlgorithm>,
    pub(super) signature: Option<PivAlgorithm>,
    pub(super) management: Option<PivAlgorithm>,
    pub(super) card: Option<PivAlgorithm>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTimes {
    pub(super) power_on: Option<Spanned<RawTime>>,
    pub(super) command: Option<Spanned<RawTime>>,
    pub(super) byte_to_card: Option<Spanned<RawTime>>,
    pub(super) byte_from_card: Option<Spanned<RawTime>>,
}

/// A time in one of four units, with its origin.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a time with its origin, as { us = 5150, from = \"derived\" }"
)]
pub(super) struct RawTime {
    pub(super) ns: Option<f64>,
    pub(super) us: Option<f64>,
    pub(super) ms: Option<f64>,
    pub(super) s: Option<f64>,
    #[serde(rename = "from")]
    _from: ProfileOrigin,
}

/// A number of bytes with its origin.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a count with its origin, as { bytes = 2339, from = \"published\" }"
)]
pub(super) struct RawCount {
    pub(super) bytes: usize,
    #[serde(rename = "from")]
    _from: ProfileOrigin,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawJitter {
    pub(super) percent: Spanned<f64>,
    pub(super) seed: u64,
    #[serde(rename = "from")]
    _from: ProfileOrigin,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFault {
    pub(super) kind: Spanned<String>,
    pub(super) at: Spanned<u64>,
    pub(super) times: Option<Spanned<f64>>,
    pub(super) closes_after: Option<Spanned<RawTime>>,
    pub(super) status: Option<Spanned<String>>,
    pub(super) count: Option<Spanned<u32>>,
    #[serde(rename = "from")]
    _from: ProfileOrigin,
}
