//! Paths that do not hold: RFC 5280, section 6.1.

use std::sync::Arc;

use tapstone_piv::{Certificate, Denial, PathDemands, PolicyInputs, Time};
use x509_cert::ext::pkix::KeyUsages;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

use crate::support::{
    CA, NOW, ROOT, Spec, World, attack, basic, inhibit_any, issuer_key_id, key_id, key_usage,
    mapping, name, oid, permitted, policies, policy_constraints, unknown,
};

const P1: &str = "1.3.6.1.4.1.99999.10.1";
const P2: &str = "1.3.6.1.4.1.99999.10.2";
const ANY: &str = "2.5.29.32.0";

/// A second CA between the first one and the card.
fn longer() -> World {
    let mut world = World::new();
    world.cas.push(Spec::ca("CN=Below,O=Tests", CA, [2, 1], 3));
    world.leaf.issuer = name("CN=Below,O=Tests");
    world.leaf.signer = 2;
    world
}

#[test]
fn signatures_and_names() {
    let world = World::new;
    attack("a forged card", "tampered", world, |w| w.leaf.signer = 5, |w| w.leaf.signer = 1);
    attack("a forged CA", "tampered", world, |w| w.cas[0].signer = 5, |w| w.cas[0].signer = 0);
    let stranger = name("CN=Other,O=Tests");
    attack(
        "an issuer of another name",
        "untrusted",
        world,
        |w| w.leaf.issuer = stranger.clone(),
        |w| w.leaf.issuer = name("CN=ca,O=TESTS"),
    );
    attack(
        "another algorithm inside than outside",
        "tampered",
        world,
        |w| w.leaf.inside = oid("1.2.840.10045.4.3.3"),
        |w| w.leaf.inside = oid("1.2.840.10045.4.3.2"),
    );
    // The CA is self-signed, and stands among the intermediates or among the anchors.
    let own = || {
        let mut world = World::new();
        world.cas[0] = Spec::ca(CA, CA, [1, 1], 2);
        world
    };
    attack(
        "a CA that trusts itself",
        "untrusted",
        own,
        |_| {},
        |w| {
            let ca = w.cas.remove(0);
            w.anchors.push(ca);
        },
    );
    attack(
        "a ring of CAs",
        "untrusted",
        longer,
        |w| w.cas[0] = Spec::ca(CA, "CN=Below,O=Tests", [1, 2], 2),
        |w| w.cas.push(Spec::ca(CA, "CN=Below,O=Tests", [1, 2], 9)),
    );
}

#[test]
fn moments() {
    let second = |time: Time, more: i64| Time(time.0.saturating_add_signed(more));
    let world = World::new;
    let ends = |w: &mut World, more| w.leaf.until = second(NOW, more);
    attack("a card that expired", "expired", world, move |w| ends(w, -1), move |w| ends(w, 0));
    let begins = |w: &mut World, more| w.leaf.from = second(NOW, more);
    attack("a card to come", "not-yet-valid", world, move |w| begins(w, 1), move |w| begins(w, 0));
    let ca = |w: &mut World, more| w.cas[0].until = second(NOW, more);
    attack("a CA that expired", "expired", world, move |w| ca(w, -1), move |w| ca(w, 0));
    let root = |w: &mut World, more| w.anchors[0].until = second(NOW, more);
    attack("an anchor that expired", "expired", world, move |w| root(w, -1), move |w| root(w, 0));
}

#[test]
fn authorities() {
    let world = World::new;
    attack(
        "a CA without basic constraints",
        "not-a-ca",
        world,
        |w| w.cas[0].remove(oid("2.5.29.19")),
        |w| w.cas[0].set(basic(true, None)),
    );
    attack(
        "an end entity that issues",
        "not-a-ca",
        world,
        |w| w.cas[0].set(basic(false, None)),
        |w| w.cas[0].set(basic(true, Some(0))),
    );
    attack(
        "a CA whose key may not sign certificates",
        "not-a-ca",
        world,
        |w| w.cas[0].set(key_usage(KeyUsages::CRLSign)),
        |w| w.cas[0].set(key_usage(KeyUsages::KeyCertSign)),
    );
    let length =
        |place: usize, most| move |w: &mut World| w.cas[place].set(basic(true, Some(most)));
    attack("a path that is too long", "path-too-long", longer, length(0, 0), length(0, 1));
    let root = |most| move |w: &mut World| w.anchors[0].set(basic(true, Some(most)));
    attack("longer than the anchor allows", "path-too-long", longer, root(1), root(2));
}

#[test]
fn extensions() {
    let world = World::new;
    let code = "critical-extension";
    let set = |critical| move |w: &mut World| w.leaf.set(unknown(critical));
    attack("an unknown critical extension of a card", code, world, set(true), set(false));
    let ca = |critical| move |w: &mut World| w.cas[0].set(unknown(critical));
    attack("an unknown critical extension of a CA", code, world, ca(true), ca(false));
    let root = |critical| move |w: &mut World| w.anchors[0].set(unknown(critical));
    attack("an unknown critical extension of an anchor", code, world, root(true), root(false));
    attack(
        "an extension of a card twice",
        "not-a-certificate",
        world,
        |w| w.leaf.extensions.push(key_usage(KeyUsages::DigitalSignature)),
        |w| w.leaf.set(key_usage(KeyUsages::DigitalSignature)),
    );
    attack(
        "an extension of a CA twice",
        "untrusted",
        world,
        |w| w.cas[0].extensions.push(basic(true, None)),
        |w| w.cas[0].set(basic(true, None)),
    );
}

/// P1 is asked for, and the whole path asserts it unless a test changes that.
fn under_p1() -> World {
    let mut world = longer();
    world.policies = PolicyInputs::one_of([oid(P1)]);
    for ca in &mut world.cas {
        ca.set(policies(&[P1]));
    }
    world.leaf.set(policies(&[P1]));
    world
}

#[test]
fn policies_along_a_path() {
    let leaf = |policy| move |w: &mut World| w.leaf.set(policies(&[policy]));
    attack("another policy", "policy", under_p1, leaf(P2), leaf(P1));
    let ca = |policy| move |w: &mut World| w.cas[0].set(policies(&[policy]));
    attack("a CA that does not issue under it", "policy", under_p1, ca(P2), ca(ANY));
    // Below the first CA it is called P2.
    let mapped = |from, to| {
        move |w: &mut World| {
            w.cas[0].set(mapping(from, to));
            w.cas[1].set(policies(&[P2]));
            w.leaf.set(policies(&[P2]));
        }
    };
    attack("a mapping of something else", "policy", under_p1, mapped(P2, P1), mapped(P1, P2));
    attack("a mapping of any policy", "policy-mapping", under_p1, mapped(ANY, P2), mapped(P1, P2));
    attack("a mapping to any policy", "policy-mapping", under_p1, mapped(P1, ANY), mapped(P1, P2));
    // The second CA maps what the first one may inhibit.
    let inhibits = |skip| {
        move |w: &mut World| {
            w.cas[0].set(policy_constraints(None, Some(skip)));
            w.cas[1].set(mapping(P1, P2));
            w.leaf.set(policies(&[P2]));
        }
    };
    attack("a mapping that is inhibited", "policy", under_p1, inhibits(0), inhibits(1));
    let any = |skip| {
        move |w: &mut World| {
            w.cas[0].set(inhibit_any(skip));
            w.leaf.set(policies(&[ANY]));
        }
    };
    attack("any policy where it is inhibited", "policy", under_p1, any(1), any(2));
    let explicit = |skip| {
        move |w: &mut World| {
            w.policies = PolicyInputs::default();
            w.cas[0].set(policy_constraints(Some(skip), None));
            w.leaf.remove(oid("2.5.29.32"));
        }
    };
    attack("no policy where one is demanded", "policy", under_p1, explicit(1), explicit(3));
    // RFC 5280, 4.2.1.4: at least one policy, and none twice.
    let stated =
        |stated: &'static [&'static str]| move |w: &mut World| w.leaf.set(policies(stated));
    let code = "not-a-certificate";
    attack("a policy twice", code, under_p1, stated(&[P1, P2, P1]), stated(&[P1, P2]));
    attack("policies without a policy", code, under_p1, stated(&[]), stated(&[P1]));
    // RFC 5280, 6.1.5 (b): the card's own certificate may demand one, at once.
    let demands = |skip| {
        move |w: &mut World| {
            w.policies = PolicyInputs::default();
            w.leaf.remove(oid("2.5.29.32"));
            w.leaf.set(policy_constraints(Some(skip), None));
        }
    };
    attack("no policy where the card demands one", "policy", under_p1, demands(0), demands(1));
    attack(
        "a policy of the wrong half of a path",
        "policy",
        under_p1,
        |w| w.cas[1].remove(oid("2.5.29.32")),
        |w| w.cas[1].set(policies(&[P2, P1])),
    );
}

/// RFC 5280, 6.1.3 (f): the path ends there, and the reason names that certificate.
#[test]
fn the_ca_at_which_the_last_policy_is_lost_is_named() {
    let mut world = under_p1();
    world.cas[0].remove(oid("2.5.29.32"));
    let leaf = Arc::new(Certificate::parse(&world.leaf.der()).unwrap());
    let demands = PathDemands { purpose: None, policies: world.policies.clone() };
    let refusal = world.trust().unwrap().validate(&leaf, &demands, world.at).unwrap_err();
    let Denial::Policy { subject, policy } = refusal else { panic!("{refusal}") };
    assert_eq!((subject.as_str(), policy.as_str()), (CA, P1));
}

/// RFC 5280, 6.1.3 (b): a CA that issues to itself, as when its key changes, is not held to the
/// constraints above it; whoever has its name at the end of a path is.
#[test]
fn certificates_that_are_issued_to_oneself() {
    let elsewhere = || {
        let mut world = World::new();
        let outside = GeneralName::DirectoryName(name("O=Elsewhere"));
        world.cas[0].set(permitted(outside));
        world
    };
    let new_key = |w: &mut World| {
        w.cas[0].set(key_id(1));
        w.cas.push(Spec::ca(CA, CA, [2, 1], 3).with(key_id(2)).with(issuer_key_id(1)));
        w.leaf.set(issuer_key_id(2));
        w.leaf.signer = 2;
        w.leaf.subject = name("CN=A Card,O=Elsewhere");
    };
    attack(
        "a card with its CA's name",
        "name-constraint",
        elsewhere,
        |w| w.leaf.subject = name(CA),
        new_key,
    );
    attack(
        "a CA of another name below",
        "name-constraint",
        elsewhere,
        |w| {
            new_key(w);
            w.cas[1].subject = name("CN=Below,O=Tests");
            w.leaf.issuer = name("CN=Below,O=Tests");
        },
        new_key,
    );
}

/// A web of cross-certificates has more paths than can be walked; the search ends, and a short path
/// beside it is found.
#[test]
fn a_web_of_cross_certificates_ends() {
    let started = std::time::Instant::now();
    let web = || {
        let mut world = World::new();
        for number in 0..40 {
            let serial = 20 + number;
            world.cas.push(Spec::ca("CN=Web,O=Tests", "CN=Web,O=Tests", [3, 3], serial));
        }
        world.leaf.issuer = name("CN=Web,O=Tests");
        world.leaf.signer = 3;
        world
    };
    attack(
        "a web of CAs",
        "too-many-paths",
        web,
        |_| {},
        |w| {
            w.cas.insert(0, Spec::ca("CN=Web,O=Tests", ROOT, [3, 0], 99));
        },
    );
    assert!(started.elapsed() < std::time::Duration::from_secs(60));
}

/// Whoever asks for nothing in particular is given anything; whoever asks for no policy at all is
/// given none, not even where the whole path is for any (RFC 5280, 6.1.5 (g)).
#[test]
fn any_policy_along_the_whole_path() {
    let world = || {
        let mut world = longer();
        for certificate in world.cas.iter_mut().chain([&mut world.leaf]) {
            certificate.set(policies(&[ANY]));
        }
        world
    };
    let wanted = |wanted: &'static [&'static str]| {
        move |w: &mut World| {
            w.policies = PolicyInputs::one_of(wanted.iter().map(|policy| oid(policy)));
        }
    };
    attack("any policy where none will do", "policy", world, wanted(&[]), wanted(&[P1]));
    let explicit = |policy: &'static [&'static str]| {
        move |w: &mut World| {
            w.policies = PolicyInputs { explicit: true, ..PolicyInputs::default() };
            w.cas[0].set(policies(policy));
            w.cas[1].set(policies(&[P1]));
            w.leaf.set(policies(&[P1]));
        }
    };
    attack("no policy of the whole path", "policy", world, explicit(&[P2]), explicit(&[P1]));
}

/// The leaf's issuer, and so on, and the anchor: ten in all.
#[test]
fn so_long_is_a_path_and_no_longer() {
    let decide = |cas: usize| {
        let mut world = World::new();
        world.cas.clear();
        let name_of = |place: usize| match place {
            0 => ROOT.to_owned(),
            place => format!("CN=CA {place},O=Tests"),
        };
        for place in 1..=cas {
            let signer = usize::from(place > 1);
            world.cas.push(Spec::ca(&name_of(place), &name_of(place - 1), [1, signer], 2));
        }
        world.leaf.issuer = name(&name_of(cas));
        world.decide()
    };
    assert_eq!(decide(9), Ok(Vec::new()));
    assert_eq!(decide(10), Err("untrusted"));
}

/// Certificates of the issuer's name with other keys, in front of the right one. With it and the
/// anchor 400 are tried.
#[test]
fn so_many_issuers_are_tried_and_no_more() {
    let decide = |others: u64| {
        let mut world = World::new();
        let other = |number: u64| {
            let mut ca = Spec::ca(CA, ROOT, [5, 0], 3);
            ca.until = Time(NOW.0 + 1000 + number);
            ca
        };
        world.cas.splice(0..0, (0..others).map(other));
        world.decide()
    };
    assert_eq!(decide(398), Ok(Vec::new()));
    assert_eq!(decide(399), Err("too-many-paths"));
    assert_eq!(decide(420), Err("too-many-paths"));
}

/// No certificate stands twice in a path: three that issue each other have few ways.
#[test]
fn a_small_web_has_an_end() {
    let web = || {
        let mut world = World::new();
        world.cas.clear();
        for serial in [20, 21, 22] {
            world.cas.push(Spec::ca(CA, CA, [1, 1], serial));
        }
        world
    };
    let with_a_way_out = |w: &mut World| w.cas.insert(0, Spec::ca(CA, ROOT, [1, 0], 2));
    attack("a small web of CAs", "untrusted", web, |_| {}, with_a_way_out);
}

/// RFC 5280, 4.1.2.4: an issuer has a name. Nobody's is not that of an anchor without one.
#[test]
fn issuers_without_a_name() {
    let named = |own: Name| {
        move |w: &mut World| {
            w.cas[0].subject = own.clone();
            w.leaf.issuer = own.clone();
        }
    };
    let nobody = named(Name::default());
    attack("a CA without a name", "untrusted", World::new, nobody, named(name("CN=X")));
}

/// What a certificate says of itself.
#[test]
fn self_signed_is_what_its_own_key_signed_in_its_own_name() {
    let parsed = |subject: &str, issuer: &str, keys| {
        Certificate::parse(&Spec::ca(subject, issuer, keys, 1).der()).unwrap()
    };
    assert!(parsed(ROOT, ROOT, [0, 0]).is_self_signed());
    assert!(parsed("CN=root,O=TESTS", ROOT, [0, 0]).is_self_signed());
    assert!(!parsed(CA, CA, [2, 1]).is_self_signed(), "by its older key");
    assert!(!parsed(CA, ROOT, [0, 0]).is_self_signed(), "in another's name");
    assert_eq!(parsed(CA, ROOT, [1, 0]).issuer(), ROOT);
    assert_eq!(parsed(CA, ROOT, [1, 0]).subject(), CA);
}
