//! A new card: keys, certificates from its own CA, and signed objects.

use der::DateTime;
use rsa::rand_core::{OsRng, RngCore};
use zeroize::Zeroizing;

use super::certificate::{Issuer, uuid};
use super::chuid;
use super::identifiers::Identifiers;
use super::store::{CA_CERTIFICATE, CA_KEY};
use super::{CardDataError, DEFAULT_PIN, DEFAULT_PUK, Files, Recipe, certificate_file};
use super::{containers, key_file, signed};
use crate::piv::key::PrivateKey;
use crate::piv::object::{self, by_tag};

/// Container identifiers: SP 800-73-5 part 1, table 3.
const CHUID_CONTAINER: u16 = 0x3000;
const PRINTED_INFORMATION_CONTAINER: u16 = 0x3001;
const DISCOVERY_CONTAINER: u16 = 0x6050;

/// The files of a card as the recipe says.
pub(super) fn files(recipe: &Recipe) -> Result<Files, CardDataError> {
    let mut guid = [0; 16];
    OsRng.fill_bytes(&mut guid);
    // A random UUID: RFC 9562, 5.4.
    guid[6] = guid[6] & 0x0F | 0x40;
    guid[8] = guid[8] & 0x3F | 0x80;
    let card = uuid(&guid);
    let ca = Issuer::new_ca(&card)?;
    let signer = ca.new_content_signer(&card)?;
    let last_day = ca.not_after();
    let identifiers = Identifiers {
        fasc_n: chuid::fasc_n(OsRng.next_u32(), u64::from(OsRng.next_u32())),
        guid,
        expires: format!("{:04}{:02}{:02}", last_day.year(), last_day.month(), last_day.day()),
    };
    let mut files = objects(recipe, &identifiers, &signer, last_day, &card)?;
    for (reference, algorithm) in recipe.keys() {
        let key = PrivateKey::generate(algorithm).map_err(|error| failed(error.to_string()))?;
        let subject = format!("Virtual PIV card {card} {reference:02X}");
        let wanted = recipe.certificate_bytes.filter(|_| reference == 0x9E);
        let certificate = ca.card_certificate(reference, &key, &subject, &identifiers, wanted)?;
        let key = key.to_pkcs8().map_err(|error| failed(error.to_string()))?;
        files.insert(key_file(reference), key);
        files.insert(certificate_file(reference).into(), Zeroizing::new(certificate));
    }
    files.insert(CA_CERTIFICATE.into(), Zeroizing::new(ca.certificate_der()?));
    files.insert(CA_KEY.into(), ca.key_der()?);
    files.insert("pin".into(), Zeroizing::new([DEFAULT_PIN, b"\n"].concat()));
    files.insert("puk".into(), Zeroizing::new([DEFAULT_PUK, b"\n"].concat()));
    Ok(files)
}

fn objects(
    recipe: &Recipe,
    identifiers: &Identifiers,
    signer: &Issuer,
    last_day: DateTime,
    card: &str,
) -> Result<Files, CardDataError> {
    let chuid = chuid::chuid(identifiers, signer, recipe.chuid_bytes)?;
    let printed =
        containers::printed_information("Virtual PIV card", &printed(last_day), &card[26..]);
    let discovery = containers::discovery();
    let security = signed::security_object(
        signer,
        &[
            (CHUID_CONTAINER, &chuid),
            (PRINTED_INFORMATION_CONTAINER, &printed),
            (DISCOVERY_CONTAINER, &discovery),
        ],
    )?;
    let capabilities = containers::card_capability_container(&identifiers.guid);
    let contents = [
        (object::CARD_CAPABILITY_CONTAINER, capabilities),
        (object::CHUID, chuid),
        (object::PRINTED_INFORMATION, printed),
        (object::DISCOVERY, discovery),
        (object::SECURITY_OBJECT, security),
    ];
    let named = contents.into_iter().filter_map(|(tag, content)| {
        by_tag(tag).map(|object| (object.file.to_owned(), Zeroizing::new(content)))
    });
    Ok(named.collect())
}

/// A day as printed on a card: `2031JAN02`.
fn printed(day: DateTime) -> String {
    const MONTHS: [&str; 12] =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let month = MONTHS[usize::from(day.month() - 1) % 12];
    format!("{:04}{month}{:02}", day.year(), day.day())
}

fn failed(why: String) -> CardDataError {
    CardDataError::Make { what: "a key of the card", why }
}
