//! Distribution points: which list is about which certificate, and for which reasons (RFC 5280,
//! 4.2.1.13, 5.2.5 and 6.3.3), and who may list for others.

use der::asn1::ObjectIdentifier;
use tapstone_piv::Time;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::KeyUsages;
use x509_cert::ext::pkix::crl::CrlDistributionPoints;
use x509_cert::ext::pkix::crl::dp::{
    DistributionPoint, IssuingDistributionPoint, ReasonFlags, Reasons,
};
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName};

use crate::support::{
    CA, CARD_SERIAL, ListSpec, ROOT, Spec, World, attack, crl_number, days, extension, key_usage,
    name, oid,
};

const LISTER: &str = "CN=Lister,O=Tests";

fn point(distribution_point: Option<DistributionPointName>) -> DistributionPoint {
    DistributionPoint { distribution_point, reasons: None, crl_issuer: None }
}

fn points(point: DistributionPoint) -> Extension {
    extension("2.5.29.31", false, &CrlDistributionPoints(vec![point]))
}

fn scope(change: impl Fn(&mut IssuingDistributionPoint)) -> Extension {
    let mut point = IssuingDistributionPoint {
        distribution_point: None,
        only_contains_user_certs: false,
        only_contains_ca_certs: false,
        only_some_reasons: None,
        indirect_crl: false,
        only_contains_attribute_certs: false,
    };
    change(&mut point);
    extension("2.5.29.28", true, &point)
}

fn directory(text: &str) -> GeneralName {
    GeneralName::DirectoryName(name(text))
}

/// The card names one partition of its CA's lists, and the list is another one.
#[test]
fn partitions_by_name() {
    let full = |text: &str| DistributionPointName::FullName(vec![directory(text)]);
    let relative =
        |text: &str| DistributionPointName::NameRelativeToCRLIssuer(name(text).0[0].clone());
    let list_of = |of_card: DistributionPointName, of_list: DistributionPointName| {
        move |w: &mut World| {
            w.leaf.set(points(point(Some(of_card.clone()))));
            let of_list = of_list.clone();
            w.lists[1].extensions.push(scope(|one| one.distribution_point = Some(of_list.clone())));
        }
    };
    attack(
        "the list of another directory",
        "no-crl",
        World::listed,
        list_of(full("CN=One,O=Tests"), full("CN=Two,O=Tests")),
        list_of(full("CN=One,O=Tests"), full("CN=one,O=TESTS")),
    );
    attack(
        "the list of another relative name",
        "no-crl",
        World::listed,
        list_of(relative("CN=One"), relative("CN=Two")),
        list_of(relative("CN=One"), relative("CN=One")),
    );
    // Relative to the CA's name, and not to none.
    attack(
        "the list of a name of its own",
        "no-crl",
        World::listed,
        list_of(relative("CN=One"), full("CN=One")),
        list_of(relative("CN=One"), relative("CN=One")),
    );
}

/// Every reason has to be asked for. The first bit stands for none.
#[test]
fn reasons_of_points_and_lists() {
    let of_card = |reasons: ReasonFlags| {
        move |w: &mut World| {
            let uri = GeneralName::UniformResourceIdentifier(crate::support::ia5("http://a/x.crl"));
            let name = DistributionPointName::FullName(vec![uri]);
            let own = DistributionPoint { reasons: Some(reasons), ..point(Some(name.clone())) };
            w.leaf.set(points(own));
            w.lists[1].extensions.push(scope(|one| one.distribution_point = Some(name.clone())));
        }
    };
    let some: ReasonFlags = Reasons::KeyCompromise.into();
    let all = ReasonFlags::full();
    attack("a point for some reasons", "no-crl", World::listed, of_card(some), of_card(all));
    let of_list = |reasons: ReasonFlags| {
        move |w: &mut World| {
            w.lists[1].extensions.push(scope(|one| one.only_some_reasons = Some(reasons)));
        }
    };
    let none: ReasonFlags = Reasons::Unused.into();
    attack("a list for no reason", "no-crl", World::listed, of_list(none), of_list(all));
}

/// A lister below the root signs for the CA, and the card names it.
fn listed_by_another() -> World {
    let mut world = World::listed();
    let lister = Spec::ca(LISTER, ROOT, [4, 0], 8).with(key_usage(KeyUsages::CRLSign));
    world.cas.push(lister);
    let mut list = ListSpec::new(LISTER, 4, 1, &[]).with(scope(|one| one.indirect_crl = true));
    let of_ca = extension("2.5.29.29", true, &vec![directory(CA)]);
    list.revoked.push((99, vec![of_ca]));
    world.lists[1] = list;
    world.leaf.set(named_lister());
    world
}

fn named_lister() -> Extension {
    points(DistributionPoint { crl_issuer: Some(vec![directory(LISTER)]), ..point(None) })
}

/// A list that says nothing of others is none about this card, whoever is named.
#[test]
fn a_lister_of_its_own_certificates_alone() {
    attack(
        "a list of a lister's own",
        "no-crl",
        listed_by_another,
        |w| {
            w.lists[1].extensions.pop();
            w.lists[1].revoked.clear();
        },
        |w| w.lists[1].revoked.clear(),
    );
}

/// Wherever its certificate stands among the others.
#[test]
fn a_lister_in_front_of_the_ca() {
    attack(
        "revoked by the first of the intermediates",
        "revoked",
        listed_by_another,
        |w| {
            w.cas.rotate_right(1);
            w.lists[1].revoked.push((CARD_SERIAL, Vec::new()));
        },
        |w| w.cas.rotate_right(1),
    );
}

/// A lister may say of its own certificate whether it was revoked where its issuer wrote so into it.
/// Of the CA above it, it may not: then its word would rest on itself.
#[test]
fn a_lister_does_not_vouch_for_whoever_vouches_for_it() {
    let decide = |is_below_another: bool, names_itself: bool| {
        let mut world = listed_by_another();
        // Everything is on the lister's list, and nothing on the root's.
        world.lists.remove(0);
        for (place, issuer) in [ROOT, CA].iter().enumerate() {
            let of = extension("2.5.29.29", true, &vec![directory(issuer)]);
            world.lists[0].revoked.insert(place, (90 + place as u8, vec![of]));
        }
        for ca in &mut world.cas {
            ca.set(named_lister());
        }
        if !names_itself {
            world.cas[1].remove(oid("2.5.29.31"));
        }
        if is_below_another {
            let middle = Spec::ca("CN=Middle,O=Tests", ROOT, [6, 0], 9).with(named_lister());
            world.cas.push(middle);
            world.cas[1].issuer = name("CN=Middle,O=Tests");
            world.cas[1].signer = 6;
        }
        world.decide()
    };
    assert_eq!(decide(false, true), Ok(Vec::new()));
    assert_eq!(decide(false, false), Err("no-crl"));
    assert_eq!(decide(true, true), Err("no-crl"));
}

/// Without a number, a list is changed by deltas of a later second.
#[test]
fn a_delta_of_the_next_second() {
    let delta = |more: u64| {
        move |w: &mut World| {
            w.lists[1].extensions.clear();
            let from = Time(days(-2).0 + more);
            let mark = crl_number("2.5.29.27", 1);
            w.lists.push(ListSpec { from, ..ListSpec::new(CA, 1, 2, &[CARD_SERIAL]).with(mark) });
        }
    };
    attack("a delta of the next second", "revoked", World::listed, delta(1), delta(0));
}

/// An end entity's certificate that signs lists, without basic constraints.
#[test]
fn a_key_for_lists_is_no_ca() {
    let is_ca = |is_ca: bool| {
        move |w: &mut World| {
            if !is_ca {
                w.cas[1].remove(ObjectIdentifier::new_unwrap("2.5.29.19"));
            }
        }
    };
    let bad = |w: &mut World| w.cas[1].set(key_usage(KeyUsages::KeyCertSign));
    attack("a lister that may not list", "no-crl", listed_by_another, bad, is_ca(false));
}
