//! Profiles that say what they mean, and profiles that do not.

use tapstone_apdu::CommandApdu;

use super::*;
use crate::bench::BENCH_AID;
use crate::fault::Gone;

const HEAD: &str = "name = 'x'\ndescription = ''\nsource = ''\natr = '3B 80 01 81'\n";
const BENCH: &str = "[[applet]]\nname = 'bench'\n";
const LINK: &str =
    "[link]\nkind = 'contact'\nprotocol = 'T=1'\nclock_hz = 4000000\nfrom = 'assumed'\n";

fn with(rest: &str) -> String {
    format!("{HEAD}{BENCH}{rest}")
}

fn complaint(text: &str) -> String {
    Profile::parse("my.toml", text).unwrap_err().to_string()
}

fn card(rest: &str) -> VirtualCard {
    let mut card = Profile::parse("my.toml", &with(rest)).unwrap().card(None).unwrap();
    card.transmit(&CommandApdu::select(&BENCH_AID).encode()).unwrap();
    card
}

/// VERSION: 5 bytes there, 4 back.
fn version(card: &mut VirtualCard) -> Result<u64, Gone> {
    card.transmit(&[0x80, 0x12, 0, 0, 0]).map(|answer| answer.modelled.0)
}

#[test]
fn a_time_is_the_sum_of_what_is_priced() {
    let mut card = card(
        "[time]\ncommand = { us = 5, from = 'assumed' }\n\
         byte_to_card = { ns = 100, from = 'derived' }\n\
         byte_from_card = { ns = 1000, from = 'derived' }\n\
         [command]\n'bench ALLOCATE' = { us = 7, from = 'assumed' }\n\
         '20' = { us = 99, from = 'assumed' }\n'22' = { us = 11, from = 'assumed' }\n\
         [work]\nloop = { ns = 10, from = 'assumed' }\n",
    );
    assert_eq!(version(&mut card), Ok(5_000 + 500 + 4_000));
    let mut time = |bytes: &[u8]| card.transmit(bytes).unwrap().modelled.0;
    assert_eq!(time(&[0x80, 0x20, 0, 9, 0]), 7_000 + 500 + 3_000);
    assert_eq!(time(&[0x80, 0x22, 0, 0, 0]), 11_000 + 500 + 4_000);
    // REPEAT 00: one set-up and nine operations.
    assert_eq!(time(&[0x80, 0x60, 0, 0xFF, 4, 0, 1, 0, 9]), 5_000 + 900 + 2_000 + 10 * 10);
}

const PIV_WITH_P256: &str = "[[applet]]\nname = 'piv'\n\
    card_data = { authentication = 'p256', signature = 'p256', management = 'p256', card = 'p256' }\n";

/// The card of a profile with a PIV applet whose keys are all P-256.
fn piv_card(work: &str) -> Result<VirtualCard, String> {
    let text =
        format!("{HEAD}{PIV_WITH_P256}[time]\ncommand = {{ ms = 9, from = 'assumed' }}\n{work}");
    let profile = Profile::parse("my.toml", &text).unwrap();
    profile.card(None).map_err(|error| error.to_string())
}

#[test]
fn a_key_whose_work_is_not_priced_makes_no_card() {
    let one = "{ ms = 1, from = 'assumed' }\n";
    let rsa = format!("[work]\n'rsa2048.private' = {one}");
    let error = piv_card(&rsa).err().unwrap();
    assert!(error.contains("key 9A is p256") && error.contains("p256.sign"), "{error}");
    assert!(error.contains("\nhint: "), "{error}");
    // 9D agrees on keys.
    let error = piv_card(&format!("{rsa}'p256.sign' = {one}")).err().unwrap();
    assert!(error.contains("key 9D is p256") && error.contains("p256.ecdh"), "{error}");
    assert!(piv_card(&format!("{rsa}'p256.sign' = {one}'p256.ecdh' = {one}")).is_ok());
    // The whole command has a price, and so has what it computes.
    let command = format!("[command]\n'piv GENERAL AUTHENTICATE' = {one}");
    assert!(piv_card(&format!("{command}{rsa}")).is_ok());
    assert!(piv_card("").is_ok(), "every command takes 9 ms, whatever it computes");
}

#[test]
fn every_shipped_profile_makes_a_card() {
    for shipped in shipped().iter().filter(|shipped| !shipped.profile().has_piv()) {
        assert!(shipped.profile().card(None).is_ok(), "{}", shipped.name);
    }
    // One card fits all that ask for no length of its certificates: their keys are of the one
    // algorithm that they price.
    let folder = tempfile::tempdir().unwrap();
    for shipped in shipped().iter().filter(|shipped| shipped.profile().has_piv()) {
        let of_its_own = shipped.text.contains("certificate_bytes");
        let card_data = folder.path().join(if of_its_own { shipped.name } else { "card" });
        let made = shipped.profile().card(Some(&card_data));
        assert!(made.is_ok(), "{}: {}", shipped.name, made.err().unwrap());
    }
}

#[test]
fn the_benchmark_applet_refuses_to_compute_what_is_not_priced() {
    let mut card = card(
        "[time]\ncommand = { ms = 1, from = 'assumed' }\n\
                         [work]\n'3des.init' = { ms = 1, from = 'assumed' }\n",
    );
    let status = |card: &mut VirtualCard, algorithm: u8| {
        let repeat = [0x80, 0x60, algorithm, 0xFF, 4, 0, 1, 0, 1];
        let answer = card.transmit(&repeat).unwrap();
        answer.response[answer.response.len() - 2..].to_vec()
    };
    // Nothing is repeated, and SHA-256 of nothing.
    assert_eq!(status(&mut card, 0), [0x90, 0x00]);
    assert_eq!(status(&mut card, 6), [0x6A, 0x81]);
    let mut unpriced = self::card("[time]\ncommand = { ms = 1, from = 'assumed' }\n");
    // 32 bytes are there to be fetched.
    assert_eq!(status(&mut unpriced, 6), [0x61, 0x20]);
}

#[test]
fn a_link_takes_its_time_and_long_computing_asks_for_more() {
    let prices = "[time]\ncommand = { s = 2, from = 'assumed' }\n";
    let mut linked = card(&format!("{LINK}{prices}"));
    let link: tapstone_link::Link =
        toml::from_str(&LINK.lines().skip(1).take(3).collect::<Vec<_>>().join("\n")).unwrap();
    // BWT is 1.43 s at 4 MHz: one extension.
    let expected = link.exchange(5, 4) + link.waiting_time_extension() + Nanos::from_secs(2);
    assert_eq!(version(&mut linked), Ok(expected.0));
    let fault = "[[fault]]\nkind = 'waiting_time_extension'\nat = 2\ncount = 3\nfrom = 'assumed'\n";
    let mut stretched = card(&format!("{LINK}{fault}"));
    let three = 3 * (link.waiting_time() + link.waiting_time_extension()).0;
    assert_eq!(version(&mut stretched), Ok(link.exchange(5, 4).0 + three));
    assert_eq!(version(&mut stretched), Ok(link.exchange(5, 4).0));
}

#[test]
fn jitter_is_seeded_and_stays_in_its_range() {
    let text = "[time]\ncommand = { ms = 1, from = 'assumed' }\n\
                [jitter]\npercent = 10\nseed = 7\nfrom = 'assumed'\n";
    let times = |mut card: VirtualCard| -> Vec<u64> {
        (0..500).map(|_| version(&mut card).unwrap()).collect()
    };
    let first = times(card(text));
    assert_eq!(first, times(card(text)));
    assert!(first.iter().all(|time| (900_000..=1_100_000).contains(time)));
    assert!(first.iter().any(|&time| time < 910_000) && first.iter().any(|&time| time > 1_090_000));
}

#[test]
fn faults_happen_at_their_command() {
    let mut slow = card(
        "[time]\ncommand = { us = 1, from = 'assumed' }\n\
         [[fault]]\nkind = 'slow'\nat = 3\ntimes = 3\nfrom = 'assumed'\n",
    );
    let times = [(); 4].map(|()| version(&mut slow));
    assert_eq!(times, [Ok(1_000), Ok(3_000), Ok(3_000), Ok(3_000)]);

    let mut wrong =
        card("[[fault]]\nkind = 'wrong_status'\nat = 3\nstatus = '6F00'\nfrom = 'assumed'\n");
    let words = [(); 3].map(|()| wrong.transmit(&[0x80, 0x12, 0, 0, 0]).unwrap().response);
    assert_eq!(words, [vec![1, 0, 0x90, 0], vec![0x6F, 0], vec![1, 0, 0x90, 0]]);

    let mut removed = card(
        "[time]\ncommand = { us = 8, from = 'assumed' }\n\
         [[fault]]\nkind = 'removed'\nat = 2\nfrom = 'assumed'\n",
    );
    let gone = Err(Gone::Removed { after: Nanos(4_000) });
    assert_eq!([version(&mut removed), version(&mut removed)], [gone, gone]);

    let mut mute = card(
        "[[fault]]\nkind = 'mute'\nat = 2\ncloses_after = { s = 9, from = 'assumed' }\nfrom = 'assumed'\n",
    );
    mute.reset();
    assert_eq!(version(&mut mute), Err(Gone::Mute { closes_after: Nanos::from_secs(9) }));
}

#[test]
fn numbers_are_refused_that_have_no_origin_or_cannot_be() {
    let time = |time: &str| complaint(&with(&format!("[time]\ncommand = {time}\n")));
    insta::assert_snapshot!(
        [
            time("5"),
            time("{ us = 5 }"),
            time("{ us = 5, from = 'guessed' }"),
            time("{ us = -5, from = 'derived' }"),
            time("{ us = 5, ms = 5, from = 'derived' }"),
            time("{ from = 'derived' }"),
            time("{ s = 1e9, from = 'derived' }"),
            complaint(&with("[jitter]\npercent = 101\nseed = 1\nfrom = 'assumed'\n")),
            complaint(&with("[jitter]\npercent = 1\nseed = 1\n")),
            complaint(&with(&LINK.replace("from = 'assumed'\n", ""))),
            complaint(&with(&LINK.replace("4000000", "4"))),
            complaint(&with(&LINK.replace("clock_hz", "clock"))),
        ]
        .join("\n\n")
    );
}

#[test]
fn names_are_refused_that_nothing_has() {
    let one = "{ us = 1, from = 'assumed' }\n";
    insta::assert_snapshot!(
        [
            complaint(HEAD),
            complaint(&format!("{HEAD}[[applet]]\nname = 'pvi'\n")),
            complaint(&format!("{HEAD}{BENCH}{BENCH}")),
            complaint(&with("card_data = { card = 'p256' }\n")),
            complaint(&with(&format!("[command]\n'bench WRIET' = {one}"))),
            complaint(&with(&format!("[command]\n'piv VERIFY' = {one}"))),
            complaint(&with(&format!("[command]\n'87' = {one}"))),
            complaint(&with(&format!("[work]\n'rsa4096.private' = {one}"))),
            complaint(&with("[tiem]\n")),
            complaint(&HEAD.replace("'x'", "'an x'")),
            complaint("name = 'x\n"),
        ]
        .join("\n\n")
    );
}

#[test]
fn contradictions_are_refused() {
    let fault = |kind: &str| format!("[[fault]]\nfrom = 'assumed'\nkind = '{kind}'\n");
    let mute = format!("{}at = 5\ncloses_after = {{ s = 1, from = 'assumed' }}\n", fault("mute"));
    let at = |kind: &str, rest: &str| complaint(&with(&format!("{}{rest}\n", fault(kind))));
    let bytes = "[time]\nbyte_to_card = { us = 1, from = 'assumed' }\n";
    insta::assert_snapshot!(
        [
            complaint(&with(&format!("{mute}{}at = 6\n", fault("removed")))),
            complaint(&with(&format!("{mute}{}at = 5\nstatus = '6F00'\n", fault("wrong_status")))),
            at("removed", "at = 0"),
            at("slow", "at = 1"),
            at("slow", "at = 1\ntimes = 0.5"),
            at("removed", "at = 1\ntimes = 2"),
            at("wrong_status", "at = 1\nstatus = '1234'"),
            at("waiting_time_extension", "at = 1\ncount = 2"),
            at("stubborn", "at = 1"),
            complaint(&with(&format!("{bytes}{LINK}"))),
            complaint(&with(&LINK.replace("T=1", "T=0"))),
            complaint(&HEAD.replace("3B 80 01 81", "3B 80 01 82")),
            complaint(&HEAD.replace("3B 80 01 81", "3B8")),
        ]
        .join("\n\n")
    );
}
