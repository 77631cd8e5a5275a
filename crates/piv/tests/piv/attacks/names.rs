//! Names that a CA above excludes: RFC 5280, 4.2.1.10, over the name forms of PIV.

use der::asn1::OctetString;
use der::{Any, Tag};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::NameConstraints;
use x509_cert::ext::pkix::constraints::name::GeneralSubtree;
use x509_cert::ext::pkix::name::{GeneralName, OtherName};
use x509_cert::name::Name;

use crate::support::{World, attack, excluded, extension, ia5, name, names, oid, permitted, upn};

/// Kinds of names that nothing here compares.
const FORM: &str = "1.3.6.1.4.1.99999.20";
const OTHER_FORM: &str = "1.3.6.1.4.1.99999.21";

fn mail(text: &str) -> GeneralName {
    GeneralName::Rfc822Name(ia5(text))
}

fn dns(text: &str) -> GeneralName {
    GeneralName::DnsName(ia5(text))
}

fn uri(text: &str) -> GeneralName {
    GeneralName::UniformResourceIdentifier(ia5(text))
}

fn address(bytes: &[u8]) -> GeneralName {
    GeneralName::IpAddress(OctetString::new(bytes).unwrap())
}

fn directory(text: &str) -> GeneralName {
    GeneralName::DirectoryName(name(text))
}

/// A card with this alternative name below a CA with this constraint.
fn named(constraint: &Extension, own: &GeneralName) -> impl Fn(&mut World) + use<> {
    let constraint = constraint.clone();
    let own = own.clone();
    move |world| {
        world.cas[0].set(constraint.clone());
        world.leaf.set(names(vec![own.clone()]));
    }
}

#[test]
fn alternative_names() {
    let urn = "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
    let network = address(&[10, 1, 0, 0, 255, 255, 0, 0]);
    let other = |kind| {
        let value = Any::new(Tag::Utf8String, &b"x"[..]).unwrap();
        GeneralName::OtherName(OtherName { type_id: oid(kind), value })
    };
    let cases: [(&str, Extension, GeneralName, GeneralName); 22] = [
        ("mail of another host", permitted(mail("a.gov")), mail("x@b.gov"), mail("x@A.gov")),
        ("mail of a host below", permitted(mail("a.gov")), mail("x@b.a.gov"), mail("x@a.gov")),
        (
            "mail of the domain itself",
            permitted(mail(".a.gov")),
            mail("x@a.gov"),
            mail("x@b.a.gov"),
        ),
        ("mail of no host below", permitted(mail(".a.gov")), mail("x@.a.gov"), mail("x@b.a.gov")),
        ("mail of another box", permitted(mail("x@a.gov")), mail("y@a.gov"), mail("x@a.gov")),
        ("mail that is excluded", excluded(mail("a.gov")), mail("x@A.GOV"), mail("x@b.gov")),
        ("mail without a host", permitted(mail("a.gov")), mail("a.gov"), mail("x@a.gov")),
        ("a host of another domain", permitted(dns("a.gov")), dns("ba.gov"), dns("b.a.gov")),
        ("a host that is excluded", excluded(dns("a.gov")), dns("b.A.gov"), dns("ba.gov")),
        (
            "a URI of another host",
            permitted(uri(".a.gov")),
            uri("http://a.gov/"),
            uri("http://b.a.gov/"),
        ),
        (
            "a URI with another's name in front",
            permitted(uri("a.gov")),
            uri("http://a.gov@b.gov/"),
            uri("http://b.gov@a.gov/"),
        ),
        ("a URI without a host", permitted(uri("a.gov")), uri(urn), uri("http://a.gov:80/")),
        (
            "a URI that is excluded",
            excluded(uri("a.gov")),
            uri("HTTP://A.GOV/x"),
            uri("http://b.gov/"),
        ),
        (
            "a URI with an address",
            excluded(uri("a.gov")),
            uri("http://10.0.0.1/"),
            uri("http://b.gov/"),
        ),
        (
            "an address outside",
            permitted(network.clone()),
            address(&[10, 2, 0, 1]),
            address(&[10, 1, 2, 3]),
        ),
        (
            "an address that is excluded",
            excluded(network),
            address(&[10, 1, 0, 9]),
            address(&[10, 2, 0, 1]),
        ),
        ("a user of another domain", permitted(upn("@a.gov")), upn("x@b.gov"), upn("X@A.gov")),
        ("a user of another name", permitted(upn("x@a.gov")), upn("y@a.gov"), upn("X@A.gov")),
        ("a user of an excluded domain", excluded(upn("a.gov")), upn("x@b.a.gov"), upn("x@ba.gov")),
        (
            "a directory name outside",
            permitted(directory("O=Tests")),
            directory("O=Other"),
            directory("CN=x,O=TESTS"),
        ),
        (
            "a directory name that is excluded",
            excluded(directory("OU=x,O=Tests")),
            directory("CN=y,OU=X,O=tests"),
            directory("CN=y,OU=z,O=Tests"),
        ),
        ("a form that is not compared", permitted(other(FORM)), other(FORM), other(OTHER_FORM)),
    ];
    for (text, constraint, bad, good) in cases {
        let code = "name-constraint";
        attack(text, code, World::new, named(&constraint, &bad), named(&constraint, &good));
    }
}

#[test]
fn subjects() {
    let code = "name-constraint";
    let subject = |text: &'static str| {
        move |world: &mut World| {
            world.cas[0].set(permitted(directory("O=Tests")));
            world.leaf.subject = name(text);
        }
    };
    attack("a subject outside", code, World::new, subject("CN=x,O=Other"), subject("CN=x,O=tests"));
    let old_mail = |text: &'static str| {
        move |world: &mut World| {
            world.cas[0].set(permitted(mail("a.gov")));
            world.leaf.subject = name(text);
        }
    };
    attack(
        "mail in the subject",
        code,
        World::new,
        old_mail("1.2.840.113549.1.9.1=#160778406F2E676F76,O=Tests"),
        old_mail("1.2.840.113549.1.9.1=#16077840612E676F76,O=Tests"),
    );
    let by_anchor = |text: &'static str| {
        move |world: &mut World| {
            world.anchors[0].set(permitted(directory("O=Tests")));
            world.leaf.subject = name(text);
        }
    };
    attack(
        "what the anchor excludes",
        code,
        World::new,
        by_anchor("O=Other"),
        by_anchor("O=Tests"),
    );
}

/// RFC 5280 has no other minimum than 0, and no maximum.
#[test]
fn a_subtree_that_begins_somewhere() {
    let from = |minimum| {
        move |world: &mut World| {
            let base = directory("O=Tests");
            let subtree = GeneralSubtree { base, minimum, maximum: None };
            let permitted_subtrees = Some(vec![subtree]);
            let constraints = NameConstraints { permitted_subtrees, excluded_subtrees: None };
            world.cas[0].set(extension("2.5.29.30", true, &constraints));
        }
    };
    attack("a subtree with a minimum", "name-constraint", World::new, from(1), from(0));
}

/// What looks like an excluded name is one.
#[test]
fn names_that_hide() {
    let org = |text: &'static str| {
        move |world: &mut World| {
            world.cas[0].set(excluded(directory("O=Bad")));
            world.leaf.subject = name(text);
        }
    };
    for text in ["O=B\u{AD}ad", "O=Ba\u{200B}d", "O=\u{FEFF}BAD", "O=\u{FF22}ad", "O=B\u{7F}ad"] {
        attack(text, "name-constraint", World::new, org(text), org("O=B ad"));
    }
    let hosts = [
        (excluded(dns("a.gov")), dns("b.a.gov."), dns("ba.gov.")),
        (excluded(dns("a.gov.")), dns("a.gov"), dns("b.gov")),
        (excluded(mail("a.gov")), mail("x@a.gov."), mail("x@b.a.gov.")),
        (excluded(mail("x@a.gov")), mail("x@a.gov."), mail("y@a.gov.")),
        (excluded(uri("a.gov")), uri("http://a.gov./"), uri("http://b.gov./")),
        (excluded(uri("a.gov")), uri("http://%61.gov/"), uri("http://b.gov/%61")),
        (excluded(uri("a.gov")), uri("http://10.0.0.1./"), uri("http://b.gov/")),
        (excluded(upn("@a.gov")), upn("x@a.gov."), upn("x@b.gov.")),
    ];
    for (constraint, bad, good) in hosts {
        let text = format!("{bad:?}");
        let code = "name-constraint";
        attack(&text, code, World::new, named(&constraint, &bad), named(&constraint, &good));
    }
}

/// RFC 5280, 4.2.1.10: an address and a mask have 8 or 32 bytes. Of anything else it cannot be said
/// what it excludes, and an address of neither length lies nowhere.
#[test]
fn addresses_of_no_version() {
    let network = [10, 1, 0, 0, 255, 255, 0, 0];
    let own = address(&[10, 2, 0, 1]);
    let code = "name-constraint";
    let good = || named(&excluded(address(&network)), &own);
    for length in [0, 4, 5, 7, 9, 16, 31] {
        let bad = named(&excluded(address(&vec![9; length])), &own);
        attack("an excluded network of no version", code, World::new, bad, good());
    }
    for length in [0, 3, 5, 8, 15] {
        let bad = named(&excluded(address(&network)), &address(&vec![9; length]));
        attack("an address of no version", code, World::new, bad, good());
    }
}

/// RFC 5280, 4.2.1.10: without a subject there is no directory name to constrain.
#[test]
fn a_card_without_a_subject() {
    let named = |own: Name| {
        move |w: &mut World| {
            w.cas[0].set(permitted(directory("O=Elsewhere")));
            w.leaf.subject = own.clone();
        }
    };
    let outside = named(name("O=Tests"));
    attack("a subject outside", "name-constraint", World::new, outside, named(Name::default()));
}
