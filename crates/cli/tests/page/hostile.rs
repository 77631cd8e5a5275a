//! Records in which all text that a device, a program or a user can choose tries something.

use serde_json::Value;
use tapstone_record::Record;

/// Markup, a sequence that clears a terminal, marks of direction, and a word without end.
pub(crate) const TEXT: &str = "</script><img src=x onerror=alert(1)>\"'&lt;\u{1b}[2J\u{9b}31m\
     \u{202e}kcart\u{2066}\u{200b}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// Maps whose keys are codes and words from a device.
const MAPS: [&str; 2] = ["failed", "status"];

/// The record with [`TEXT`] wherever any text would be as good.
pub(crate) fn of(text: &str) -> Record {
    let mut value: Value = serde_json::from_str(text).unwrap();
    let places = strings(&value, String::new());
    let replaced = places.iter().filter(|place| replace(&mut value, place)).count();
    assert!(replaced > 10, "{replaced} of {} places", places.len());
    parse(&value).unwrap()
}

fn parse(value: &Value) -> Option<Record> {
    Record::from_json(&value.to_string(), "hostile.json").ok()
}

/// Whether it is still a record then. Words of the format's own are left as they are.
fn replace(value: &mut Value, place: &str) -> bool {
    let before = value.pointer(place).unwrap().clone();
    *value.pointer_mut(place).unwrap() = match &before {
        Value::Object(map) => map.values().map(|it| (TEXT.to_owned(), it.clone())).collect(),
        _ => TEXT.into(),
    };
    let still = parse(value).is_some();
    if !still {
        *value.pointer_mut(place).unwrap() = before;
    }
    still
}

/// Where text is, as JSON pointers; and maps whose keys are text.
fn strings(value: &Value, place: String) -> Vec<String> {
    let below = |name: &str, value| strings(value, format!("{place}/{}", name.replace('/', "~1")));
    match value {
        Value::String(_) => vec![place],
        Value::Array(all) => {
            all.iter().enumerate().flat_map(|(at, it)| below(&at.to_string(), it)).collect()
        }
        Value::Object(map) => {
            let mut all: Vec<_> = map.iter().flat_map(|(name, it)| below(name, it)).collect();
            let is_map = MAPS.iter().any(|name| place.ends_with(&format!("/{name}")));
            if is_map && !map.is_empty() {
                all.push(place);
            }
            all
        }
        _ => Vec::new(),
    }
}
