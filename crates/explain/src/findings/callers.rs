//! Where the calls of a finding came from: the functions of the program that want to be changed.
//!
//! A stretch that a fix would remove begins with a call; where its stack is known, the stack says
//! who asked, else that of the call around it. Stacks are known of the first calls of each place, so
//! how often each way was taken is not.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use tapstone_events::system_calls::StackFrame;
use tapstone_measure::units::Nanos;
use tapstone_record as record;

use super::Finding;
use crate::timeline::{CalledFunction, FunctionId, Place, Span, Thread, Timeline};

/// Ways to a call that are told, at most.
const MOST_PATHS: usize = 3;
/// Functions on each of them.
const MOST_FRAMES: usize = 6;

/// The ways to the calls of a finding: to the function that it names, then to others, those that were
/// seen most often first.
pub(super) fn paths_to(timeline: &Timeline, finding: &Finding) -> Vec<record::CallPath> {
    let mut paths = Paths::default();
    let is_it = |id: FunctionId| is_of(timeline.call(id), finding);
    for removed in &finding.removed {
        let thread = &timeline.threads[removed.thread];
        let place = thread.spans.partition_point(|span| span.start < removed.start);
        let begun = thread.spans[place..].iter().take_while(|span| span.start == removed.start);
        paths.add_call(thread, removed.start, begun.map(|span| span.call).any(is_it));
    }
    // Of short waits inside a call, and of those for pcscd, it is known where the call came from.
    if paths.list.is_empty() {
        let mut calls: Vec<(usize, &Span)> = Vec::new();
        for removed in &finding.removed {
            let around = call_around(&timeline.threads[removed.thread], removed.start);
            calls.extend(around.map(|call| (removed.thread, call)));
        }
        calls.sort_by_key(|(thread, call)| (*thread, call.start));
        calls.dedup_by_key(|(thread, call)| (*thread, call.start));
        for (thread, call) in calls {
            paths.add_call(&timeline.threads[thread], call.start, is_it(call.call));
        }
    }
    // What would not go, or goes in one piece with something else.
    if paths.list.is_empty() {
        for thread in &timeline.threads {
            let spans = thread.spans.iter().filter(|span| is_it(span.call)).map(|it| it.start);
            let leaves = thread.leaves.iter().filter(|leaf| is_it(leaf.call)).map(|it| it.start);
            spans.chain(leaves).for_each(|start| paths.add_call(thread, start, true));
        }
    }
    paths.finish()
}

/// The innermost call that had begun before.
fn call_around(thread: &Thread, at: Nanos) -> Option<&Span> {
    let begun = thread.spans.partition_point(|span| span.start < at);
    let last = begun.checked_sub(1).map(|number| Place::new(number as u32));
    thread.path(last).find(|span| span.end > at)
}

fn is_of(call: &CalledFunction, finding: &Finding) -> bool {
    // Others may be counted behind it.
    let function = finding.place.split(' ').next();
    function == Some(call.function) && (call.module == finding.module || finding.module.is_empty())
}

/// Ways, in the order in which they were first seen.
#[derive(Default)]
struct Paths {
    /// Whether each leads to the function that the finding names.
    list: Vec<(bool, record::CallPath)>,
    numbers: HashMap<Vec<record::CallSite>, usize>,
}

impl Paths {
    /// The call that began at this moment, if it is known where it came from, and whether it is of the
    /// function that the finding names.
    fn add_call(&mut self, thread: &Thread, start: Nanos, is_named: bool) {
        let Ok(at) = thread.callers.binary_search_by_key(&start, |call| call.at) else { return };
        let sites = sites(&thread.callers[at].frames);
        if sites.is_empty() {
            return;
        }
        let Self { list, numbers } = self;
        let number = *numbers.entry(sites).or_insert_with_key(|sites| {
            list.push((false, record::CallPath { calls: 0, sites: sites.clone() }));
            list.len() - 1
        });
        let (leads_there, path) = &mut self.list[number];
        *leads_there |= is_named;
        path.calls += 1;
    }

    fn finish(mut self) -> Vec<record::CallPath> {
        self.list.sort_by_key(|(leads_there, path)| Reverse((*leads_there, path.calls)));
        self.list.truncate(MOST_PATHS);
        self.list.into_iter().map(|(_, path)| path).collect()
    }
}

/// The functions of a stack, without what starts programs and threads.
fn sites(frames: &Arc<[StackFrame]>) -> Vec<record::CallSite> {
    let last = frames.iter().rposition(|frame| !starts_programs(frame));
    let frames = frames.iter().take(last.map_or(0, |last| last + 1).min(MOST_FRAMES));
    let site = |frame: &StackFrame| record::CallSite {
        module: frame.module.to_string(),
        function: frame.function.as_deref().map(str::to_owned),
        source: frame.source.as_deref().map(str::to_owned),
        offset: frame.offset,
    };
    frames.map(site).collect()
}

/// What lies below `main` and below a thread's own function.
fn starts_programs(frame: &StackFrame) -> bool {
    frame.module.starts_with("libc.so")
        || frame.module.starts_with("ld-linux")
        || frame.function.as_deref() == Some("_start")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{only, whole};
    use crate::findings::{repeated_search, sleep};
    use crate::synthetic::{Story, micros, millis};
    use tapstone_events::CalledFrom;

    fn frame(module: &str, function: &str, source: Option<&str>) -> StackFrame {
        StackFrame {
            module: module.into(),
            function: Some(function.into()),
            offset: 7,
            source: source.map(Into::into),
        }
    }

    fn stack(function: &str) -> Arc<[StackFrame]> {
        Arc::new([
            frame("signer", function, Some("src/signer.c:42")),
            frame("signer", "main", None),
            frame("libc.so.6", "__libc_start_call_main", None),
            frame("libc.so.6", "__libc_start_main", None),
            frame("signer", "_start", None),
        ])
    }

    /// Four calls of 10 ms that sleep for 5 of these, and the stacks of some of their sleeps.
    fn sleeper(stacks: &[(u64, &str)]) -> Timeline {
        let mut timeline = Story::new()
            .thread(|told| {
                for _ in 0..4 {
                    told.enter("C_Sign").leaf("usleep", millis(5)).advance(millis(5)).exit();
                }
            })
            .timeline();
        let callers = stacks
            .iter()
            .map(|(at, function)| CalledFrom { at: millis(*at), frames: stack(function) });
        timeline.threads[0].callers = callers.collect();
        timeline
    }

    fn paths(stacks: &[(u64, &str)]) -> Vec<(String, u64, usize)> {
        let timeline = sleeper(stacks);
        let finding = only(whole(&timeline, sleep::find));
        let paths = paths_to(&timeline, &finding).into_iter();
        let first = |path: record::CallPath| {
            (path.sites[0].function.clone().unwrap(), path.calls, path.sites.len())
        };
        paths.map(first).collect()
    }

    #[test]
    fn ways_to_the_calls_are_counted_without_what_starts_programs() {
        assert_eq!(paths(&[]), []);
        let way = |function: &str, calls| (function.to_owned(), calls, 2);
        assert_eq!(paths(&[(0, "one"), (10, "two"), (30, "two")]), [way("two", 2), way("one", 1)]);
        // Nothing that is removed begins there.
        assert_eq!(paths(&[(5, "other")]), []);
    }

    #[test]
    fn who_made_the_call_around_stands_for_who_asked_inside() {
        let mut timeline = Story::new()
            .thread(|told| {
                for _ in 0..4 {
                    told.enter("C_Sign").advance(millis(1)).leaf("usleep", millis(4));
                    told.advance(millis(1)).leaf("usleep", millis(4)).exit();
                }
            })
            .timeline();
        let of = |at, function| CalledFrom { at: millis(at), frames: stack(function) };
        let mut ways = |callers| {
            timeline.threads[0].callers = callers;
            let finding = only(whole(&timeline, sleep::find));
            assert_eq!(finding.count, 8);
            let paths = paths_to(&timeline, &finding).into_iter();
            paths
                .map(|path| (path.sites[0].function.clone().unwrap(), path.calls))
                .collect::<Vec<_>>()
        };
        assert_eq!(ways(vec![of(0, "sign"), of(10, "sign")]), [("sign".to_owned(), 2)]);
        let own = ways(vec![of(0, "sign"), of(10, "sign"), of(16, "own")]);
        assert_eq!(own, [("own".to_owned(), 1)], "which says more");
    }

    #[test]
    fn a_way_is_told_as_functions_and_lines() {
        let timeline = sleeper(&[(0, "sign_all")]);
        let finding = only(whole(&timeline, sleep::find));
        let paths = paths_to(&timeline, &finding);
        let shown: Vec<String> = paths[0].sites.iter().map(|site| site.to_string()).collect();
        assert_eq!(shown, ["sign_all (src/signer.c:42)", "main [signer]"]);
    }

    #[test]
    fn a_search_is_asked_for_where_it_begins() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.makes("C_OpenSession", 7, 1, micros(10));
                for _ in 0..9 {
                    told.enter("C_FindObjectsInit").given(1, 77).advance(millis(1)).exit();
                    told.enter("C_FindObjects").given(1, 0).advance(micros(200));
                    told.finds(1, 5);
                    told.exit().call("C_FindObjectsFinal", 1, micros(100)).advance(micros(10));
                }
            })
            .timeline();
        let starts: Vec<Nanos> = timeline.threads[0]
            .spans
            .iter()
            .filter(|span| timeline.call(span.call).function == "C_FindObjectsInit")
            .map(|span| span.start)
            .collect();
        let call = |at: &Nanos| CalledFrom { at: *at, frames: stack("find_key") };
        timeline.threads[0].callers = starts.iter().take(3).map(call).collect();
        let find = |scene: &super::super::Scene<'_>| repeated_search::with_searches(scene, vec![]);
        let finding = only(whole(&timeline, find));
        let paths = paths_to(&timeline, &finding);
        // The first search was needed.
        assert_eq!((paths.len(), paths[0].calls), (1, 2));
    }
}
