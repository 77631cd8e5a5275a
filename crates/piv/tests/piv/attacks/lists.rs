//! CRLs that say it, CRLs that must not be believed, and CRLs that are about something else: RFC
//! 5280, sections 5 and 6.3.

use std::sync::Arc;

use der::asn1::{Ia5String, ObjectIdentifier};
use tapstone_piv::{Certificate, PathDemands, RevocationRule};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::crl::dp::{DistributionPoint, IssuingDistributionPoint, Reasons};
use x509_cert::ext::pkix::crl::{CrlDistributionPoints, CrlReason};
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName};
use x509_cert::ext::pkix::{KeyUsages, crl::dp::ReasonFlags};

use crate::support::{
    CA, CA_SERIAL, CARD_SERIAL, ListSpec, NOW, ROOT, Spec, World, attack, crl_number, days,
    extension, generalized, issuer_key_id, key_id, key_usage, name, unknown,
};

const DELTA: &str = "2.5.29.27";

fn uri(text: &str) -> DistributionPointName {
    let uri = GeneralName::UniformResourceIdentifier(Ia5String::new(text).unwrap());
    DistributionPointName::FullName(vec![uri])
}

/// An issuing distribution point about everything.
fn everything() -> IssuingDistributionPoint {
    IssuingDistributionPoint {
        distribution_point: None,
        only_contains_user_certs: false,
        only_contains_ca_certs: false,
        only_some_reasons: None,
        indirect_crl: false,
        only_contains_attribute_certs: false,
    }
}

fn scope(critical: bool, point: &IssuingDistributionPoint) -> Extension {
    extension("2.5.29.28", critical, point)
}

fn points(points: Vec<DistributionPoint>) -> Extension {
    extension("2.5.29.31", false, &CrlDistributionPoints(points))
}

/// The CA's list, which is the second one.
fn of_ca(world: &mut World) -> &mut ListSpec {
    &mut world.lists[1]
}

#[test]
fn what_they_list() {
    let world = World::listed;
    let lists = |serial| move |w: &mut World| of_ca(w).revoked.push((serial, Vec::new()));
    attack("a revoked card", "revoked", world, lists(CARD_SERIAL), lists(CARD_SERIAL + 1));
    let root = |serial| move |w: &mut World| w.lists[0].revoked.push((serial, Vec::new()));
    attack("a revoked CA", "revoked", world, root(CA_SERIAL), root(CARD_SERIAL));
    // The newer one by number, whichever comes first.
    let two = |older: Vec<u8>, newer: Vec<u8>| {
        move |w: &mut World| {
            w.lists.insert(0, ListSpec::new(CA, 1, 9, &newer));
            *of_ca(w) = ListSpec::new(ROOT, 0, 1, &[]);
            w.lists[2] = ListSpec::new(CA, 1, 8, &older);
        }
    };
    let card = vec![CARD_SERIAL];
    attack(
        "revoked by the newer list",
        "revoked",
        world,
        two(vec![], card.clone()),
        two(card, vec![]),
    );
    let old = |days_ago: i64| {
        move |w: &mut World| {
            let mut list = ListSpec::new(CA, 1, 1, &[CARD_SERIAL]);
            list.extensions.clear();
            list.from = days(-days_ago);
            of_ca(w).extensions.clear();
            w.lists.push(list);
        }
    };
    attack("revoked by the list of a later date", "revoked", world, old(1), old(3));
}

#[test]
fn whose_they_are() {
    let world = World::listed;
    let signer = |key| move |w: &mut World| of_ca(w).signer = key;
    attack("a forged list", "no-crl", world, signer(5), signer(1));
    attack(
        "a key that may not sign lists",
        "no-crl",
        world,
        |w| w.cas[0].set(key_usage(KeyUsages::KeyCertSign)),
        |w| w.cas[0].set(key_usage(KeyUsages::KeyCertSign | KeyUsages::CRLSign)),
    );
    let issuer = |text: &'static str| move |w: &mut World| of_ca(w).issuer = name(text);
    attack("a list of another CA", "no-crl", world, issuer("CN=X"), issuer("CN=ca,O=tests"));
    attack("no list at all", "no-crl", world, |w| drop(w.lists.remove(1)), |_| {});
    // The CA has a key of its own for lists, with a certificate of the root's or of nobody's.
    let apart = |by: usize| {
        move |w: &mut World| {
            let usage = key_usage(KeyUsages::CRLSign);
            let mut signer = Spec::ca(CA, ROOT, [4, by], 8).with(usage);
            signer.remove(ObjectIdentifier::new_unwrap("2.5.29.19"));
            w.cas.push(signer);
            of_ca(w).signer = 4;
        }
    };
    attack("a list by a key without a path", "no-crl", world, apart(5), apart(0));
    let revoked = |serial| {
        move |w: &mut World| {
            apart(0)(w);
            w.lists[0].revoked.push((serial, Vec::new()));
        }
    };
    attack("a list by a revoked key", "no-crl", world, revoked(8), revoked(9));
}

#[test]
fn when_they_are() {
    let world = World::listed;
    let until =
        |more: i64| move |w: &mut World| of_ca(w).until.0 = NOW.0.saturating_add_signed(more);
    attack("a list that expired", "crl-expired", world, until(-1), until(0));
    let from = |more: i64| move |w: &mut World| of_ca(w).from.0 = NOW.0.saturating_add_signed(more);
    attack("a list to come", "crl-not-yet-valid", world, from(1), from(0));
    // A list to come does not take the place of the one that there is.
    let newer = |more| {
        move |w: &mut World| {
            let mut list = ListSpec::new(CA, 1, 9, &[CARD_SERIAL]);
            list.from = days(more);
            w.lists.push(list);
        }
    };
    attack("a newer list", "revoked", world, newer(0), newer(1));
}

#[test]
fn what_is_not_understood() {
    let world = World::listed;
    let critical = |critical| move |w: &mut World| of_ca(w).extensions.push(unknown(critical));
    attack("a list with a critical extension", "no-crl", world, critical(true), critical(false));
    let entry =
        |critical| move |w: &mut World| of_ca(w).revoked.push((99, vec![unknown(critical)]));
    attack("an entry with a critical extension", "no-crl", world, entry(true), entry(false));
    // Critical or not, invalidityDate (5.3.2) is known.
    let dated = |id| {
        move |w: &mut World| {
            let date = extension(id, true, &generalized(days(-3)));
            of_ca(w).revoked.push((99, vec![date]));
        }
    };
    attack("an entry with a date that is not known", "no-crl", world, dated("2.5.29.99"), |w| {
        dated("2.5.29.24")(w);
    });
    let twice = |id: &'static str| {
        move |w: &mut World| {
            of_ca(w).extensions.push(crl_number(id, 3));
        }
    };
    attack("an extension of a list twice", "no-crl", world, twice("2.5.29.20"), |_| {});
    // One that cannot be used spoils no other.
    attack(
        "a bad list alone",
        "no-crl",
        world,
        |w| of_ca(w).extensions.push(unknown(true)),
        |w| {
            let bad = of_ca(w).clone().with(unknown(true));
            w.lists.insert(0, bad);
            w.raw_lists.push(b"no list".to_vec());
        },
    );
}

#[test]
fn what_they_are_about() {
    let world = World::listed;
    for critical in [true, false] {
        let point = |change: fn(&mut IssuingDistributionPoint)| {
            move |w: &mut World| {
                let mut point = everything();
                change(&mut point);
                of_ca(w).extensions.push(scope(critical, &point));
            }
        };
        let users = || point(|point| point.only_contains_user_certs = true);
        let cas = point(|point| point.only_contains_ca_certs = true);
        attack("a list of CAs", "no-crl", world, cas, users());
        let attributes = point(|point| point.only_contains_attribute_certs = true);
        attack("a list of attribute certificates", "no-crl", world, attributes, users());
        let other = point(|point| point.distribution_point = Some(uri("http://a/other.crl")));
        let own = move |w: &mut World| {
            let distribution_point = Some(uri("http://a/own.crl"));
            let own = IssuingDistributionPoint { distribution_point, ..everything() };
            of_ca(w).extensions.push(scope(critical, &own));
            w.leaf.set(points(vec![DistributionPoint {
                distribution_point: Some(uri("http://a/own.crl")),
                reasons: None,
                crl_issuer: None,
            }]));
        };
        attack("a list of another partition", "no-crl", world, other, own);
        // The card names its own partition, and the list another one.
        let other = move |w: &mut World| {
            own(w);
            of_ca(w).extensions.pop();
            let distribution_point = Some(uri("http://a/other.crl"));
            let other = IssuingDistributionPoint { distribution_point, ..everything() };
            of_ca(w).extensions.push(scope(critical, &other));
        };
        attack("a list of the other partition", "no-crl", world, other, own);
    }
    let reasons = |reasons: ReasonFlags| IssuingDistributionPoint {
        only_some_reasons: Some(reasons),
        ..everything()
    };
    let compromised: ReasonFlags = Reasons::KeyCompromise.into();
    let others = ReasonFlags::full() - Reasons::KeyCompromise;
    attack(
        "a list of some reasons",
        "no-crl",
        world,
        |w| of_ca(w).extensions.push(scope(true, &reasons(compromised))),
        |w| {
            of_ca(w).extensions.push(scope(true, &reasons(compromised)));
            let rest = ListSpec::new(CA, 1, 1, &[]).with(scope(true, &reasons(others)));
            w.lists.push(rest);
        },
    );
}

#[test]
fn lists_of_others() {
    const LISTER: &str = "CN=Lister,O=Tests";
    let indirect = IssuingDistributionPoint { indirect_crl: true, ..everything() };
    let directory = |text| GeneralName::DirectoryName(name(text));
    let of = |text| extension("2.5.29.29", true, &vec![directory(text)]);
    // A lister below the root signs for the CA; entries carry whose certificates they are.
    let world = move || {
        let mut world = World::listed();
        let usage = key_usage(KeyUsages::CRLSign);
        world.cas.push(Spec::ca(LISTER, ROOT, [4, 0], 8).with(usage));
        let mut list = ListSpec::new(LISTER, 4, 1, &[]).with(scope(true, &indirect));
        list.revoked.push((99, vec![of(CA)]));
        world.lists[1] = list;
        world.leaf.set(points(vec![DistributionPoint {
            distribution_point: None,
            reasons: None,
            crl_issuer: Some(vec![directory(LISTER)]),
        }]));
        world
    };
    attack(
        "a lister whom the card does not name",
        "no-crl",
        &world,
        |w| w.leaf.remove(ObjectIdentifier::new_unwrap("2.5.29.31")),
        |_| {},
    );
    attack(
        "a lister that is not indirect",
        "no-crl",
        &world,
        |w| drop(w.lists[1].extensions.pop()),
        |_| {},
    );
    // The issuer of an entry is that of the one before it, unless it says so.
    let listed = move |issuer: &'static str| {
        move |w: &mut World| w.lists[1].revoked.push((CARD_SERIAL, vec![of(issuer)]))
    };
    attack("revoked by a lister", "revoked", &world, listed(CA), listed(ROOT));
    attack(
        "revoked by a lister, after another of the CA",
        "revoked",
        &world,
        |w| w.lists[1].revoked.push((CARD_SERIAL, Vec::new())),
        |w| w.lists[1].revoked.insert(0, (CARD_SERIAL, Vec::new())),
    );
}

#[test]
fn changes_of_lists() {
    let removes = || vec![extension("2.5.29.21", false, &CrlReason::RemoveFromCRL)];
    // List 5 holds the card; a delta of this base takes it off.
    let with_delta = move |base, number| {
        move |w: &mut World| {
            *of_ca(w) = ListSpec::new(CA, 1, 5, &[CARD_SERIAL]);
            let mut delta = ListSpec::new(CA, 1, number, &[]).with(crl_number(DELTA, base));
            delta.revoked.push((CARD_SERIAL, removes()));
            w.lists.push(delta);
        }
    };
    let world = World::listed;
    attack("a delta of a later list", "revoked", world, with_delta(6, 7), with_delta(5, 7));
    attack("a delta before the list", "revoked", world, with_delta(3, 4), with_delta(3, 6));
    let expired = move |until| {
        move |w: &mut World| {
            with_delta(5, 7)(w);
            w.lists[2].until = days(until);
        }
    };
    attack("a delta that expired", "revoked", world, expired(-1), expired(1));
    let adds = |serial| {
        move |w: &mut World| {
            w.lists.push(ListSpec::new(CA, 1, 2, &[serial]).with(crl_number(DELTA, 1)));
        }
    };
    attack("revoked by a delta", "revoked", world, adds(CARD_SERIAL), adds(99));
    // A list without a number is changed by deltas of a later date.
    let unnumbered = |days_ago: i64| {
        move |w: &mut World| {
            adds(CARD_SERIAL)(w);
            of_ca(w).extensions.clear();
            w.lists[2].from = days(-days_ago);
        }
    };
    attack("revoked by a later delta", "revoked", world, unnumbered(1), unnumbered(3));
    attack("revoked by a delta of later", "revoked", world, unnumbered(1), unnumbered(2));
    // Whether it is critical or not: it is no complete list.
    let alone = |w: &mut World| {
        let mut mark = crl_number(DELTA, 1);
        mark.critical = false;
        of_ca(w).extensions.push(mark);
    };
    attack("a delta without its base", "no-crl", world, alone, |w| {
        let base = of_ca(w).clone();
        alone(w);
        w.lists.push(base);
    });
    let in_complete = |reason| move |w: &mut World| of_ca(w).revoked.push((CARD_SERIAL, reason));
    let other = |w: &mut World| of_ca(w).revoked.push((CARD_SERIAL + 1, Vec::new()));
    attack("removed by a complete list", "revoked", world, |w| in_complete(removes())(w), other);
}

/// An anchor's key may sign lists about the certificates below it, and about those of no other.
#[test]
fn lists_by_an_anchor() {
    const OTHER: &str = "CN=Other Root,O=Tests";
    let directory = |text| GeneralName::DirectoryName(name(text));
    let by = |anchor: &'static str, key| {
        move |w: &mut World| {
            let indirect = IssuingDistributionPoint { indirect_crl: true, ..everything() };
            let mut list = ListSpec::new(anchor, key, 1, &[]).with(scope(true, &indirect));
            let of_ca = extension("2.5.29.29", true, &vec![directory(CA)]);
            list.revoked.push((99, vec![of_ca]));
            w.lists[1] = list;
            w.leaf.set(points(vec![DistributionPoint {
                distribution_point: None,
                reasons: None,
                crl_issuer: Some(vec![directory(anchor)]),
            }]));
        }
    };
    let world = || {
        let mut world = World::listed();
        world.anchors.push(Spec::ca(OTHER, OTHER, [5, 5], 1));
        world
    };
    attack("a list by another anchor", "no-crl", world, by(OTHER, 5), by(ROOT, 0));
}

/// The CA's older key and its newer one signed a list each, and one of them has the card: whichever
/// file comes first, and whichever is about less.
#[test]
fn every_list_of_a_good_signer_is_asked() {
    let two = |serial: u8, first: usize, by: usize| {
        move |w: &mut World| {
            let mut lister = Spec::ca(CA, ROOT, [4, by], 8).with(key_usage(KeyUsages::CRLSign));
            lister.remove(ObjectIdentifier::new_unwrap("2.5.29.19"));
            w.cas.push(lister);
            w.lists.insert(first, ListSpec::new(CA, 4, 1, &[serial]));
        }
    };
    for first in [0, 1, 2] {
        let bad = two(CARD_SERIAL, first, 0);
        attack("revoked by one list of two", "revoked", World::listed, bad, two(99, first, 0));
        let stranger = two(CARD_SERIAL, first, 5);
        let bad = two(CARD_SERIAL, first, 0);
        attack("revoked by a stranger too", "revoked", World::listed, bad, stranger);
    }
}

/// A newer key of the CA signs its lists: whether the certificate of that key is good is for a list
/// by the older key to say, not for its own.
#[test]
fn a_signer_of_lists_does_not_vouch_for_itself() {
    let by_newer_key = |w: &mut World| {
        let mut lister = Spec::ca(CA, CA, [4, 1], 8).with(key_usage(KeyUsages::CRLSign));
        lister.remove(ObjectIdentifier::new_unwrap("2.5.29.19"));
        w.cas.push(lister);
        *of_ca(w) = ListSpec::new(CA, 4, 1, &[]);
    };
    attack("a list about its own signer", "no-crl", World::listed, by_newer_key, |w| {
        by_newer_key(w);
        w.lists.push(ListSpec::new(CA, 1, 1, &[]));
    });
}

/// What a delta revokes stays revoked when the delta expires, or its own base is not here.
#[test]
fn a_delta_that_revokes_needs_less_than_one_that_removes() {
    let delta = |base, number, until| {
        move |w: &mut World| {
            let mark = crl_number(DELTA, base);
            let mut delta = ListSpec::new(CA, 1, number, &[CARD_SERIAL]).with(mark);
            delta.until = days(until);
            w.lists.push(delta);
        }
    };
    let world = || {
        let mut world = World::listed();
        *of_ca(&mut world) = ListSpec::new(CA, 1, 5, &[]);
        world
    };
    attack("a delta that expired", "revoked", world, delta(5, 6, -1), delta(3, 4, 1));
    attack("a delta of a later list", "revoked", world, delta(6, 7, 1), delta(3, 5, 1));
    let to_come = move |from| {
        move |w: &mut World| {
            delta(5, 6, 9)(w);
            w.lists[2].from = days(from);
        }
    };
    attack("a delta of now", "revoked", world, to_come(0), to_come(1));
    // A newer delta takes it off again, if it is valid itself; one that is silent does not.
    let then = move |serial, until| {
        move |w: &mut World| {
            delta(5, 6, -1)(w);
            let removes = vec![extension("2.5.29.21", false, &CrlReason::RemoveFromCRL)];
            let mut newer = ListSpec::new(CA, 1, 7, &[]).with(crl_number(DELTA, 5));
            newer.revoked.push((serial, removes));
            newer.until = days(until);
            w.lists.insert(0, newer);
        }
    };
    attack("an expired removal", "revoked", world, then(CARD_SERIAL, -1), then(CARD_SERIAL, 1));
    attack("a removal of another", "revoked", world, then(99, 1), then(CARD_SERIAL, 1));
}

/// Where its list is missing, a delta says nothing of cards that it leaves out; of others it does.
#[test]
fn a_delta_alone_revokes() {
    let world = || {
        let mut world = World::listed();
        world.rule = RevocationRule::Prefer;
        world.lists.truncate(1);
        world
    };
    let delta =
        |number, serial: u8| ListSpec::new(CA, 1, number, &[serial]).with(crl_number(DELTA, 1));
    let alone = |serial| move |w: &mut World| w.lists.push(delta(2, serial));
    attack("a delta without its list", "revoked", world, alone(CARD_SERIAL), alone(99));
    let by =
        |signer| move |w: &mut World| w.lists.push(ListSpec { signer, ..delta(2, CARD_SERIAL) });
    attack("a delta of the CA", "revoked", world, by(1), by(5));
    let from = |from| {
        move |w: &mut World| {
            w.lists.push(ListSpec { from: days(from), ..delta(2, CARD_SERIAL) });
        }
    };
    attack("a delta of now", "revoked", world, from(0), from(1));
    // A newer one takes it off, and so does a newer list; an older one of either does not.
    let then = |number| {
        move |w: &mut World| {
            alone(CARD_SERIAL)(w);
            let removes = vec![extension("2.5.29.21", false, &CrlReason::RemoveFromCRL)];
            let mut other = ListSpec { revoked: Vec::new(), ..delta(number, 0) };
            other.revoked.push((CARD_SERIAL, removes));
            w.lists.push(other);
        }
    };
    attack("an older removal", "revoked", world, then(1), then(3));
    let list = |number, from| {
        move |w: &mut World| {
            alone(CARD_SERIAL)(w);
            w.lists.push(ListSpec { from: days(from), ..ListSpec::new(CA, 1, number, &[]) });
        }
    };
    attack("a newer list to come", "revoked", world, list(3, 1), list(3, -1));
    attack("an older list", "revoked", world, list(1, -1), list(2, -1));
    // A delta says nothing of what it leaves out.
    let mut silent = world();
    alone(99)(&mut silent);
    assert_eq!(silent.decide().unwrap().len(), 1);
}

/// A list is no better than what is known of its signer.
#[test]
fn what_is_not_known_of_a_signer_of_lists_is_told() {
    let mut world = World::listed();
    world.rule = RevocationRule::Prefer;
    let mut signer = Spec::ca(CA, ROOT, [4, 0], 8).with(key_usage(KeyUsages::CRLSign));
    signer.remove(ObjectIdentifier::new_unwrap("2.5.29.19"));
    world.cas.push(signer);
    of_ca(&mut world).signer = 4;
    assert_eq!(world.decide(), Ok(Vec::new()));
    // Now nobody knows of the CA, and nobody of the signer.
    world.lists.remove(0);
    let told = world.decide().unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
    world.rule = RevocationRule::Require;
    assert_eq!(world.decide(), Err("no-crl"));
}

/// What nothing is known of: refused, granted and told, or not asked for.
#[test]
fn when_nothing_is_fresh() {
    let decide = |rule, revoked: &[u8], until| {
        let mut world = World::listed();
        world.rule = rule;
        *of_ca(&mut world) = ListSpec::new(CA, 1, 1, revoked);
        of_ca(&mut world).until = days(until);
        world.decide()
    };
    assert_eq!(decide(RevocationRule::Require, &[], -1), Err("crl-expired"));
    let told = decide(RevocationRule::Prefer, &[], -1).unwrap();
    assert!(told.len() == 1 && told[0].contains("has expired"), "{told:?}");
    assert_eq!(decide(RevocationRule::Prefer, &[], 1), Ok(Vec::new()));
    assert_eq!(decide(RevocationRule::Prefer, &[CARD_SERIAL], -1), Err("revoked"));
    assert_eq!(decide(RevocationRule::Off, &[CARD_SERIAL], -1), Ok(Vec::new()));
}

/// The index of a list says what the list says, and a damaged one says nothing.
#[test]
fn an_index_is_as_good_as_its_list() {
    let world = World::listed();
    let trust = || {
        let anchors = world.anchors.iter().map(|spec| Certificate::parse(&spec.der()).unwrap());
        let cas = world.cas.iter().map(|spec| Certificate::parse(&spec.der()).unwrap());
        let trust = tapstone_piv::Trust::new(anchors.collect(), cas.collect()).unwrap();
        trust.checking_revocation(RevocationRule::Require, &[world.lists[0].der()])
    };
    let leaf = Arc::new(Certificate::parse(&world.leaf.der()).unwrap());
    for (serials, code) in [(vec![1, 3, 200], None), (vec![200, CARD_SERIAL], Some("revoked"))] {
        let list = trust().parse_list(&ListSpec::new(CA, 1, 4, &serials).der()).unwrap();
        let mut bytes = Vec::new();
        list.write_index([7; 32], &mut bytes).unwrap();
        let kept = tapstone_piv::RevocationList::read_index(&mut &bytes[..]).unwrap();
        assert_eq!((kept.crl_sha256, kept.list.entries()), ([7; 32], serials.len()));
        let path = trust().with_list(kept.list).validate(&leaf, &PathDemands::default(), NOW);
        assert_eq!(path.err().map(|refusal| refusal.code()), code);
        for place in (0..bytes.len()).step_by(7) {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            let read = tapstone_piv::RevocationList::read_index(&mut &changed[..]);
            assert!(read.is_err(), "a changed byte {place}");
            assert!(tapstone_piv::RevocationList::read_index(&mut &bytes[..place]).is_err());
        }
    }
}

/// Two lists of one number and one date ought to be the same list. Where a CA made two, whichever
/// file comes first, the card is on one of them.
#[test]
fn two_lists_of_one_number() {
    let two = |first: &'static [u8], second: &'static [u8]| {
        move |w: &mut World| {
            *of_ca(w) = ListSpec::new(CA, 1, 4, first);
            w.lists.push(ListSpec::new(CA, 1, 4, second));
        }
    };
    for bad in [two(&[CARD_SERIAL], &[]), two(&[], &[CARD_SERIAL])] {
        attack("revoked by one of two lists", "revoked", World::listed, bad, two(&[], &[99]));
    }
}

/// A delta that lists a card twice: the worse entry counts.
#[test]
fn a_delta_with_two_entries_for_a_card() {
    let removes = || vec![extension("2.5.29.21", false, &CrlReason::RemoveFromCRL)];
    let world = || {
        let mut world = World::listed();
        *of_ca(&mut world) = ListSpec::new(CA, 1, 5, &[CARD_SERIAL]);
        world
    };
    let entries = |all: [bool; 2]| {
        move |w: &mut World| {
            let mut delta = ListSpec::new(CA, 1, 6, &[]).with(crl_number(DELTA, 5));
            for is_removed in all {
                let extensions = if is_removed { removes() } else { Vec::new() };
                delta.revoked.push((CARD_SERIAL, extensions));
            }
            w.lists.push(delta);
        }
    };
    for bad in [[true, false], [false, true]] {
        attack("removed and revoked", "revoked", world, entries(bad), entries([true, true]));
    }
}

/// RFC 5280, 5.3.3: only an indirect list says whose a certificate is. A list that does so and is
/// none cannot be used.
#[test]
fn a_direct_list_with_certificates_of_others() {
    let of = |text: &'static str| {
        move |w: &mut World| {
            let issuer = vec![GeneralName::DirectoryName(name(text))];
            of_ca(w).revoked.push((99, vec![extension("2.5.29.29", true, &issuer)]));
        }
    };
    let mut bad = World::listed();
    of(ROOT)(&mut bad);
    assert_eq!(bad.decide(), Err("no-crl"));
    let left_out = bad.trust().unwrap().left_out().join("; ");
    assert!(left_out.contains("it lists certificates of others and is not indirect"), "{left_out}");
    let mut good = World::listed();
    of(CA)(&mut good);
    assert_eq!(good.decide(), Ok(Vec::new()));
}

/// Which of several keys of one name signed a list (RFC 5280, 5.2.1).
#[test]
fn a_list_names_the_key_that_signed_it() {
    let names = |id| {
        move |w: &mut World| {
            w.cas[0].set(key_id(1));
            of_ca(w).extensions.push(issuer_key_id(id));
        }
    };
    attack("a list by another key of the CA", "no-crl", World::listed, names(2), names(1));
}

/// A list counts for whoever has its issuer's name and key and may sign lists; who that is can be
/// asked of it.
#[test]
fn a_list_is_of_whoever_signed_it() {
    let world = World::listed();
    let trust = world.trust().unwrap();
    let parsed = |spec: ListSpec| trust.parse_list(&spec.der()).unwrap();
    let own = parsed(ListSpec::new(CA, 1, 1, &[3, 4]));
    assert_eq!((own.issuer(), own.entries(), own.is_signed()), (CA, 2, true));
    assert!(trust.knows_signer(&own));
    // The CA's key in another's name, and the CA's name with another key.
    for list in [ListSpec::new("CN=X,O=Tests", 1, 1, &[]), ListSpec::new(CA, 5, 1, &[])] {
        let other = parsed(list.clone());
        assert!(!other.is_signed() && !trust.knows_signer(&other), "{}", other.issuer());
        let with_it = world.trust().unwrap().with_crl(&list.der());
        assert_eq!(with_it.left_out().len(), 1, "{:?}", with_it.left_out());
    }
    assert_eq!(world.trust().unwrap().revocation_rule(), RevocationRule::Require);
    assert_eq!(World::new().trust().unwrap().revocation_rule(), RevocationRule::Off);
}

/// Older by number; without numbers by date; and only among lists of one series (5.2.3).
#[test]
fn a_list_is_older_than_another_of_its_series() {
    let trust = World::listed().trust().unwrap();
    let parsed = |spec: &ListSpec| trust.parse_list(&spec.der()).unwrap();
    let numbered =
        |number, from| parsed(&ListSpec { from: days(from), ..ListSpec::new(CA, 1, number, &[]) });
    assert!(numbered(3, -1).is_older_than(&numbered(4, -2)));
    assert!(!numbered(4, -2).is_older_than(&numbered(3, -1)));
    assert!(!numbered(4, -2).is_older_than(&numbered(4, -2)));
    let unnumbered = |from| {
        let mut spec = ListSpec { from: days(from), ..ListSpec::new(CA, 1, 1, &[]) };
        spec.extensions.clear();
        parsed(&spec)
    };
    assert!(unnumbered(-2).is_older_than(&unnumbered(-1)));
    assert!(!unnumbered(-1).is_older_than(&unnumbered(-2)));
    let of_root = parsed(&ListSpec::new(ROOT, 0, 9, &[]));
    assert!(!numbered(3, -1).is_older_than(&of_root));
    assert!(!of_root.is_older_than(&numbered(200, -1)));
}

/// What is missing is said: a list, or the lists of some reasons.
#[test]
fn what_is_missing_is_named() {
    let why = |world: &World| {
        let leaf = Arc::new(Certificate::parse(&world.leaf.der()).unwrap());
        let demands = PathDemands::default();
        world.trust().unwrap().validate(&leaf, &demands, world.at).unwrap_err().to_string()
    };
    let mut world = World::listed();
    world.lists.pop();
    assert_eq!(why(&world), "no CRL says whether \"CN=A Card,O=Tests\" is revoked");
    let compromised = Some(Reasons::KeyCompromise.into());
    let some = IssuingDistributionPoint { only_some_reasons: compromised, ..everything() };
    world.lists.push(ListSpec::new(CA, 1, 1, &[]).with(scope(true, &some)));
    let said = why(&world);
    assert!(said.contains("leave out some reasons"), "{said}");
}

/// A list that is not needed any more says nothing of how long the status lasts, nor of its signer.
#[test]
fn what_one_list_has_said_no_other_has_to_say() {
    let mut world = World::listed();
    world.rule = RevocationRule::Prefer;
    world.lists.remove(0);
    let mut signer = Spec::ca(CA, ROOT, [4, 0], 8).with(key_usage(KeyUsages::CRLSign));
    signer.remove(ObjectIdentifier::new_unwrap("2.5.29.19"));
    world.cas.push(signer);
    // The CA's own list says all; nothing is known of the CA alone.
    world.lists.push(ListSpec::new(CA, 4, 1, &[]));
    let told = world.decide().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    // By the other key alone: now nothing is known of that key, too.
    world.lists.remove(0);
    assert_eq!(world.decide().unwrap().len(), 2);
}
