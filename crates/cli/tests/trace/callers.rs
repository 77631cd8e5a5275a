//! Who asked: the functions and lines that the calls of a finding came from.

use tapstone_record::{CallSite, FindingKind, Record};

use crate::fixtures;
use crate::program::Program;
use crate::softhsm::Hsm;

/// The functions on the way to a finding's calls, and the file names of their source.
fn ways(record: &Record, kind: &FindingKind) -> Vec<Vec<(String, String)>> {
    let finding = record.findings.iter().find(|finding| finding.kind == *kind);
    let finding = finding.unwrap_or_else(|| panic!("no {kind:?} in {:#?}", record.findings));
    let named = |site: &CallSite| {
        let source = site.source.as_deref().unwrap_or_default();
        let file = source.split(':').next().unwrap_or_default();
        (site.function.clone().unwrap_or_default(), file.to_owned())
    };
    let sites = |path: &tapstone_record::CallPath| path.sites.iter().map(named).collect();
    finding.callers.iter().map(sites).collect()
}

/// The program of that name and these options, on a token of its own.
fn on_softhsm(name: &str, options: &str) -> Option<(Program, Hsm)> {
    let (program, hsm) = fixtures::built(name).zip(Hsm::new())?;
    let program = Program::new(program).arg(hsm.module()).args(options);
    Some((program.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf")), hsm))
}

fn is_main((function, file): &(String, String)) -> bool {
    function == "main" && file == "traced/searcher.c"
}

#[test]
fn a_search_is_traced_back_to_main() {
    let Some((searcher, _hsm)) = on_softhsm("searcher", "150") else { return };
    let ways = ways(&searcher.unchanged().exits(0).record(), &FindingKind::RepeatedSearch);
    // The search is made at one place; what was inlined is told too.
    assert_eq!(ways.len(), 1, "{ways:?}");
    assert_eq!(ways[0][0], ("search".to_owned(), "traced/searcher.c".to_owned()), "{ways:?}");
    assert!(ways[0].last().is_some_and(is_main), "{ways:?}");
}

#[test]
fn in_a_thread_the_way_ends_where_the_thread_began() {
    let Some((searcher, _hsm)) = on_softhsm("searcher", "150 --threads 2") else { return };
    let ways = ways(&searcher.unchanged().exits(0).record(), &FindingKind::RepeatedSearch);
    assert!(!ways.is_empty());
    for way in &ways {
        assert_eq!(way[0].0, "search", "{ways:?}");
        assert!(way.iter().all(|(_, file)| file == "traced/searcher.c"), "{ways:?}");
    }
}

#[test]
fn a_pause_of_the_program_is_traced_back() {
    let Some((searcher, _hsm)) = on_softhsm("searcher", "40 --keep --pause 5") else { return };
    let ways = ways(&searcher.unchanged().exits(0).record(), &FindingKind::Sleep);
    assert!(ways[0].last().is_some_and(is_main), "{ways:?}");
}

#[test]
fn callers_are_not_noted_on_request() {
    let Some((searcher, _hsm)) = on_softhsm("searcher", "150") else { return };
    let record = searcher.traced_with("--no-callers").exits(0).record();
    assert!(record.findings.iter().any(|it| it.kind == FindingKind::RepeatedSearch));
    assert!(record.findings.iter().all(|finding| finding.callers.is_empty()), "{record:#?}");
}
