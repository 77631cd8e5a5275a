//! Two traces, call by call: what was called more often, and where more time went. One run each is
//! too little for a verdict.

use std::collections::BTreeMap;

use tapstone_record::{Call, CallChange, CallFigures, Record};

/// Calls of either side, those whose self time changed most first. Empty unless both are traces.
pub(crate) fn compare_calls(baseline: &Record, candidate: &Record) -> Vec<CallChange> {
    changes_by_call(&baseline.calls, &candidate.calls)
}

fn changes_by_call(baseline: &[Call], candidate: &[Call]) -> Vec<CallChange> {
    if baseline.is_empty() || candidate.is_empty() {
        return Vec::new();
    }
    let mut changes: BTreeMap<(&str, &str), CallChange> = BTreeMap::new();
    for call in baseline {
        change(&mut changes, call).baseline = Some(figures(call));
    }
    for call in candidate {
        change(&mut changes, call).candidate = Some(figures(call));
    }
    let mut changes: Vec<CallChange> = changes.into_values().collect();
    let self_time = |figures: Option<CallFigures>| figures.map_or(0, |figures| figures.self_ns.0);
    changes.sort_by_key(|change| {
        std::cmp::Reverse(self_time(change.baseline).abs_diff(self_time(change.candidate)))
    });
    changes
}

fn change<'a, 'b>(
    changes: &'b mut BTreeMap<(&'a str, &'a str), CallChange>,
    call: &'a Call,
) -> &'b mut CallChange {
    changes.entry((&call.module, &call.function)).or_insert_with(|| CallChange {
        function: call.function.clone(),
        module: call.module.clone(),
        baseline: None,
        candidate: None,
    })
}

fn figures(call: &Call) -> CallFigures {
    CallFigures { count: call.count, total_ns: call.total_ns, self_ns: call.self_ns }
}

#[cfg(test)]
mod tests {
    use tapstone_measure::units::Nanos;

    use super::*;

    fn call(function: &str, count: u64, own: u64) -> Call {
        Call {
            module: "module.so".into(),
            layer: "pkcs11 module.so".into(),
            function: function.into(),
            count,
            per_operation: None,
            failed: BTreeMap::new(),
            total_ns: Nanos(own * 2),
            timed: None,
            self_ns: Nanos(own),
            p50_ns: None,
            p99_ns: None,
            asked_again: None,
            asked_again_ns: None,
        }
    }

    #[test]
    fn what_changed_most_comes_first_and_nothing_is_lost() {
        let before = [call("C_Sign", 20, 900), call("C_Login", 1, 50), call("C_Digest", 3, 10)];
        let after = [call("C_Sign", 10, 450), call("C_Digest", 3, 10), call("C_Verify", 1, 60)];
        let changes = changes_by_call(&before, &after);
        let own = |of: Option<CallFigures>| of.map(|of| (of.count, of.self_ns.0));
        let all: Vec<_> = changes
            .iter()
            .map(|change| (change.function.as_str(), own(change.baseline), own(change.candidate)))
            .collect();
        let expected = [
            ("C_Sign", Some((20, 900)), Some((10, 450))),
            ("C_Verify", None, Some((1, 60))),
            ("C_Login", Some((1, 50)), None),
            ("C_Digest", Some((3, 10)), Some((3, 10))),
        ];
        assert_eq!(all, expected);
        assert_eq!(changes_by_call(&before, &[]), []);
    }
}
