//! docs/FORMAT.md tells the truth.

use tapstone_record::{Record, SCHEMA_JSON};

use crate::{PAGE, complaints};

#[test]
fn the_example_on_the_page_is_a_record() {
    let (_, rest) = PAGE.split_once("```json\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    assert_eq!(complaints(&serde_json::from_str(example).unwrap()), [""; 0]);
    let record = Record::from_json(example, "docs/FORMAT.md").unwrap();
    let histogram = record.results[0].histogram.as_ref().unwrap().decode().unwrap();
    assert_eq!(histogram.len(), record.results[0].completed);
}

#[test]
fn every_part_of_a_record_is_on_the_page() {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA_JSON).unwrap();
    let row = &schema["$defs"]["CaseResult"]["properties"];
    let parts = [&schema["properties"], row].map(|properties| properties.as_object().unwrap());
    for name in parts.iter().flat_map(|properties| properties.keys()) {
        assert!(PAGE.contains(&format!("`{name}")), "`{name}` is not explained");
    }
}
