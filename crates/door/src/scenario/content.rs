//! What a card holds and signs, as a scenario says it.

use tapstone_source::Source;
use toml::Spanned;

use super::checks::ScenarioResult;
use super::raw::{RawCertificate, RawContent};
use crate::content::{CardContent, CertificateBytes, KeyKind, LengthFields};

/// What a door reads and lets sign.
pub(super) fn content(
    source: &Source<'_>,
    raw: &Spanned<RawContent>,
) -> ScenarioResult<CardContent> {
    let RawContent { key, certificate, select_bytes, chuid_bytes } = raw.get_ref();
    let kind = KeyKind::named(key.get_ref()).ok_or_else(|| {
        let name = key.get_ref();
        let hint = "hint: rsa2048, rsa3072, ecc-p256 or ecc-p384";
        source.error(key.span(), format!("no card has a key {name:?}\n{hint}"))
    })?;
    if [*select_bytes, chuid_bytes.unwrap_or_default()].iter().any(|bytes| *bytes > 65_000) {
        let problem = "more than any card answers\nhint: at most 65,000 bytes";
        return Err(source.error(raw.span(), problem));
    }
    Ok(CardContent {
        select_bytes: *select_bytes,
        key: kind,
        certificate: self::certificate(source, certificate)?,
        chuid_bytes: *chuid_bytes,
        lengths: LengthFields::Short,
        is_gzip: false,
        is_small: false,
        is_known: false,
    })
}

/// The forms of a certificate: each at least as large as anything that names a key, and none larger
/// than the plain one.
pub(super) fn certificate(
    source: &Source<'_>,
    raw: &Spanned<RawCertificate>,
) -> ScenarioResult<CertificateBytes> {
    let RawCertificate { bytes, gzip, small, small_gzip } = *raw.get_ref();
    let others = [gzip, small, small_gzip];
    let all = || others.into_iter().flatten().chain([bytes]);
    if all().any(|size| !(64..=20_000).contains(&size)) {
        let problem = "no certificate has so many bytes\nhint: 64 to 20,000; GSA's test cards have \
                       about 1,500";
        return Err(source.error(raw.span(), problem));
    }
    if all().any(|size| size > bytes) {
        let problem = "a compressed or smaller certificate has more bytes than the plain one\nhint: \
                       leave out what saves nothing";
        return Err(source.error(raw.span(), problem));
    }
    Ok(CertificateBytes { plain: bytes, gzip, small, small_gzip })
}
