//! Cards that are slow on purpose. What is long is compared with what is short in the same run, and
//! the shortest of several counts, so that a busy machine changes nothing.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use tapstone_measure::units::Nanos;
use tapstone_vcard::Profile;

use crate::fixtures::source;
use crate::pcscd::{READER, VirtualCard, client};

/// The quickest of some listings of the objects on a card. `None`, which has been said then, where
/// there is no pcscd, or no OpenSC.
fn listing(card: &[&OsStr]) -> Option<Duration> {
    let _card = VirtualCard::insert(card)?;
    let arguments = ["--slot-description", READER, "--list-objects"];
    let mut quickest = Duration::MAX;
    for _ in 0..3 {
        let begin = Instant::now();
        let output = client("pkcs11-tool", &arguments)?;
        quickest = quickest.min(begin.elapsed());
        let objects = String::from_utf8(output.stdout).unwrap();
        assert_eq!(objects.matches("Certificate Object").count(), 4, "{objects}");
    }
    Some(quickest)
}

#[test]
fn delayed_acknowledgements_make_a_command_many_times_slower() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("card");
    let card: [&OsStr; 3] = ["piv".as_ref(), "--card-data".as_ref(), folder.as_ref()];
    let Some(at_once) = listing(&card) else { return };
    let delayed = [&card[..], &["--delayed-ack".as_ref()]].concat();
    let Some(delayed) = listing(&delayed) else { return };
    assert!(delayed > 5 * at_once, "{at_once:?} and {delayed:?}");
}

#[test]
fn each_command_takes_as_long_on_the_card_of_the_trials() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("card");
    let file = source("slow-apdu.toml");
    let profile = Profile::parse("slow-apdu.toml", &std::fs::read_to_string(&file).unwrap());
    let mut card = profile.unwrap().card(Some(&folder)).unwrap();
    let select = b"\x00\xA4\x04\x00\x09\xA0\x00\x00\x03\x08\x00\x00\x10\x00\x00";
    let chuid = b"\x00\xCB\x3F\xFF\x05\x5C\x03\x5F\xC1\x02\x00";
    for command in [&select[..], &chuid[..], b"\x00\xC0\x00\x00\x00"] {
        let answer = card.transmit(command).unwrap();
        assert_eq!(answer.modelled, Nanos::from_millis(30), "{command:02X?}");
        assert!(answer.response.len() > 2, "{answer:02X?}");
    }
    let arguments = [file.as_ref(), "--card-data".as_ref(), folder.as_os_str()];
    // OpenSC reads all of it, however long that takes.
    listing(&arguments);
}
