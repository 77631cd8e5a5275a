//! A client in C on SoftHSM2, in all the ways in which clients reach a module: every call is seen,
//! once, under its name, in its process.

use std::collections::BTreeMap;
use std::path::Path;

use tapstone_explain::timeline::End;

use crate::fixtures;
use crate::program::{Program, call, counts, spans};
use crate::softhsm::Hsm;
use crate::support::skip;

const SOFTHSM: &str = "libsofthsm2.so";
pub(crate) const PROXY: &str = "/usr/lib/x86_64-linux-gnu/p11-kit-proxy.so";

/// The client on a token of its own. `None`, which has been said then: something is missing.
pub(crate) fn client(options: &str) -> Option<(Program, Hsm)> {
    let client = fixtures::built("client")?;
    let hsm = Hsm::new()?;
    let program = Program::new(client).arg(hsm.module()).args(options);
    Some((program.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf")), hsm))
}

/// What the client calls for so many digests in so many threads.
fn expected(digests: u64, threads: u64) -> BTreeMap<&'static str, u64> {
    BTreeMap::from([
        ("C_GetFunctionList", 1),
        ("C_Initialize", 1),
        ("C_GetSlotList", 1),
        ("C_GetTokenInfo", 1),
        ("C_GetMechanismInfo", 1),
        ("C_OpenSession", 1 + threads),
        ("C_DigestInit", digests),
        ("C_Digest", digests),
        ("C_CloseSession", 1 + threads),
        ("C_Finalize", 1),
    ])
}

#[test]
fn a_list_is_followed_however_it_was_reached() {
    for options in ["", "--dlopen-deepbind", "--fork", "--exec"] {
        let Some((client, _hsm)) = client(&format!("--digest 37 {options}")) else { return };
        let record = client.unchanged().exits(0).whole();
        assert_eq!(counts(&record, SOFTHSM), expected(37, 1), "{options}");
    }
}

#[test]
fn functions_are_seen_that_are_asked_for_by_name() {
    let Some((client, _hsm)) = client("--digest 37 --direct") else { return };
    let record = client.unchanged().exits(0).whole();
    let mut expected = expected(37, 1);
    expected.remove("C_GetFunctionList");
    assert_eq!(counts(&record, SOFTHSM), expected);
}

#[test]
fn interfaces_of_version_3_are_followed() {
    let Some((client, module)) = fixtures::built("client").zip(fixtures::built("stand-in")) else {
        return;
    };
    let client = Program::new(client).arg(module).args("--digest 37 --interface");
    let record = client.unchanged().exits(0).whole();
    let mut expected = expected(37, 1);
    expected.remove("C_GetFunctionList");
    expected.insert("C_GetInterface", 1);
    assert_eq!(counts(&record, "stand-in.so"), expected);
}

#[test]
fn a_module_in_rust_is_seen_too() {
    let Some(client) = fixtures::built("client") else { return };
    let module = std::env::current_exe().unwrap().with_file_name("libnull_module.so");
    let record = Program::new(client).arg(module).args("--digest 37").unchanged().exits(0).whole();
    assert_eq!(counts(&record, "libnull_module.so"), expected(37, 1));
}

#[test]
fn eight_threads_are_eight_threads() {
    let Some((client, _hsm)) = client("--digest 37 --threads 8") else { return };
    let record = client.unchanged().exits(0).whole();
    assert_eq!(counts(&record, SOFTHSM), expected(8 * 37, 8));
    let seen = client.seen();
    let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
    for (thread, _) in spans(&seen, "C_Digest") {
        *threads.entry(thread.id).or_default() += 1;
    }
    assert_eq!(threads.into_values().collect::<Vec<_>>(), [37; 8]);
}

#[test]
fn eight_threads_share_a_session() {
    let Some((client, _hsm)) = client("--digest 100 --threads 8 --serialised") else { return };
    let record = client.unchanged().exits(0).whole();
    assert_eq!(counts(&record, SOFTHSM)["C_Digest"], 800);
    assert_eq!(counts(&record, SOFTHSM)["C_OpenSession"], 1);
}

/// The child inherits what the parent's calls go through.
#[test]
fn a_childs_calls_are_its_own() {
    let Some((client, _hsm)) = client("--digest 37 --fork") else { return };
    let seen = client.seen();
    let root = seen.timeline.root;
    let [child] = &seen.timeline.processes.iter().filter(|p| p.id != root).collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", seen.timeline.processes)
    };
    assert_eq!(child.parent, root);
    let digests = spans(&seen, "C_Digest");
    assert_eq!(digests.len(), 37);
    assert!(digests.iter().all(|(thread, _)| thread.process == child.id));
    let [(thread, _)] = spans(&seen, "C_GetFunctionList")[..] else { panic!("one list") };
    assert_eq!(thread.process, root);
}

#[test]
fn a_crash_leaves_the_call_open_in_which_it_happened() {
    let Some((client, _hsm)) = client("--digest 37 --crash") else { return };
    let left = client.unchanged().exits(0);
    assert!(left.stdout.starts_with("a child ended with 139\n"), "{}", left.stdout);
    let record = left.whole();
    let digest = call(&record, SOFTHSM, "C_Digest");
    assert_eq!((digest.count, &digest.failed), (38, &[("never returned".to_owned(), 1)].into()));
    let seen = client.seen();
    let open: Vec<_> = seen
        .timeline
        .threads
        .iter()
        .flat_map(|thread| thread.spans.iter().map(move |span| (thread.process, span)))
        .filter(|(_, span)| span.end_kind == End::Open)
        .collect();
    let [(process, span)] = open[..] else { panic!("{open:?}") };
    assert_eq!(seen.timeline.call(span.call).function, "C_Digest");
    assert_ne!(process, seen.timeline.root);
}

#[test]
fn a_failed_login_is_a_failed_call() {
    let Some((client, _hsm)) = client("--sign 1 --rsa --pin 00000000") else { return };
    let record = client.unchanged().exits(1).whole();
    let login = call(&record, SOFTHSM, "C_Login");
    assert_eq!((login.count, &login.failed), (1, &[("CKR_PIN_INCORRECT".to_owned(), 1)].into()));
}

/// p11-kit hands out a module of its own, which calls SoftHSM2: two modules, one inside the other.
#[test]
fn a_proxy_and_the_module_behind_it_are_two() {
    if !Path::new(PROXY).exists() {
        return skip("p11-kit-proxy.so (Debian: libp11-kit0)");
    }
    let Some((client, hsm)) = fixtures::built("client").zip(Hsm::new()) else { return };
    // No card is to be in the way, and no token of another module that the system has.
    let client = Program::new(client).arg(PROXY).args("--digest 37 --token").arg(hsm.label());
    let client = client.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"));
    let client = client.env("PCSCLITE_CSOCK_NAME", "/nowhere");
    let record = client.unchanged().exits(0).whole();
    for module in [SOFTHSM, "p11-kit-proxy.so"] {
        let counts = counts(&record, module);
        assert_eq!((counts["C_DigestInit"], counts["C_Digest"]), (37, 37), "{module}");
    }
    let outer = call(&record, "p11-kit-proxy.so", "C_Digest");
    let inner = call(&record, SOFTHSM, "C_Digest");
    assert_eq!(outer.total_ns - outer.self_ns, inner.total_ns);
    let seen = client.seen();
    let module = |span: &tapstone_explain::timeline::Span| &seen.timeline.call(span.call).module;
    for (thread, span) in spans(&seen, "C_Digest") {
        let outer = span.parent.map(|at| &thread.spans[at.index()]);
        match outer {
            None => assert_eq!(module(span), "p11-kit-proxy.so"),
            Some(outer) => {
                assert_eq!(
                    (module(span).as_str(), module(outer).as_str()),
                    (SOFTHSM, "p11-kit-proxy.so")
                );
            }
        }
    }
}
