//! Records of version 1, read as records of this version: in their JSON, what has another name now
//! is renamed. Nothing else changed, and version 1 has no types of its own.

use serde_json::{Map, Value};

/// What `schema` says in a record of version 1.
pub(crate) const SCHEMA: &str = "tapstone.record/1";

/// Objects of version 1, a field in each, and the field's name now. `[]` is every element of a list.
/// What is deeper comes first: the way to it has the old names.
const RENAMED: [(&str, &str, &str); 40] = [
    ("results[].latency_ns", "p999", "p99_9"),
    ("results[].schedule_lateness_ns", "p999", "p99_9"),
    ("results[]", "offered", "offered_rate"),
    ("results[]", "achieved", "achieved_rate"),
    ("results[]", "schedule_lateness_ns", "scheduling_delay_ns"),
    ("results[]", "values_ns", "latencies_ns"),
    ("knee", "smallest_at_95_percent", "concurrency"),
    ("rate_within.levels[]", "offered", "offered_rate"),
    ("budget", "extras", "self_check"),
    ("budget", "with_extras_ns", "total_with_self_check_ns"),
    ("budget", "chance", "probability"),
    ("what_if.sets[]", "chance", "probability"),
    ("what_if.fastest", "chance", "probability"),
    ("what_if.projections[]", "says", "statement"),
    ("model_predictions[]", "executed_ns", "measured_ns"),
    ("model_predictions[]", "off", "relative_error"),
    ("queue.wait_ns", "p999", "p99_9"),
    ("queue.whole_ns", "p999", "p99_9"),
    ("queue.controller.wait_ns", "p999", "p99_9"),
    ("queue.cards[].whole_ns", "p999", "p99_9"),
    ("queue.cards[]", "whole_ns", "time_in_system_ns"),
    ("queue.cards[]", "people", "share"),
    ("queue.formula", "mean_whole_ns", "mean_time_in_system_ns"),
    ("queue", "whole_ns", "time_in_system_ns"),
    ("queue", "people", "arrivals"),
    ("queue", "people_needed", "arrivals_needed"),
    ("queue", "settling", "warm_up_arrivals"),
    ("queue", "passed_per_minute", "throughput_per_minute"),
    ("queue", "readings_per_person", "attempts_per_person"),
    ("queue", "readings_interval", "attempts_interval"),
    ("comparison.calls[].baseline", "own_ns", "self_ns"),
    ("comparison.calls[].candidate", "own_ns", "self_ns"),
    ("comparison", "rows", "cases"),
    ("side_by_side", "rows", "cases"),
    ("hosts[]", "lost", "reason"),
    ("calls[]", "own_ns", "self_ns"),
    ("trials[]", "bare_ns", "unobserved_ns"),
    ("trials[]", "masked", "unstable_places"),
    ("samples", "rows", "count"),
    ("events", "rows", "count"),
];

/// The same record with the names of this version. Its `schema` stays for the caller to set.
pub(crate) fn rename_fields(record: &mut Value) {
    for (way, old, new) in RENAMED {
        for_each_object(record, way, &mut |object| {
            if let Some(value) = object.remove(old) {
                object.insert(new.to_owned(), value);
            }
        });
    }
}

/// Calls `change` for each object that is where `way` leads to from `value`, if there is any.
fn for_each_object(value: &mut Value, way: &str, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Value::Object(object) = value else { return };
    if way.is_empty() {
        return change(object);
    }
    let (step, rest) = way.split_once('.').unwrap_or((way, ""));
    let Some(list) = step.strip_suffix("[]") else {
        let Some(next) = object.get_mut(step) else { return };
        return for_each_object(next, rest, change);
    };
    for element in object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
        for_each_object(element, rest, change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in docs/FORMAT.md, which people convert their own programs by, is this one.
    #[test]
    fn the_format_s_page_has_these_names() {
        let page = include_str!("../../../docs/FORMAT.md");
        let (_, table) = page.split_once("| version 1 | version 2 |").unwrap();
        let rows: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
        let expected = RENAMED.map(|(way, old, new)| format!("| `{way}.{old}` | `{new}` |"));
        assert_eq!(rows, expected);
    }
}
