//! The JSON Schema of the record: made from the types, published as a file.
//!
//! The published file is what others hold records to, so it changes only on purpose: after a
//! change of a type, `UPDATE_SCHEMA=1 cargo test -p tapstone-record schema` writes it anew.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::record::Record;

/// `docs/tapstone.record.2.schema.json`, JSON Schema draft 2020-12.
pub const SCHEMA_JSON: &str = include_str!("../../../docs/tapstone.record.2.schema.json");

/// The schema of what this version writes, from the types.
#[must_use]
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Record>();
    schema.insert("$id".into(), json!("urn:tapstone:record:2"));
    schema.insert("title".into(), json!("Tapstone record"));
    schema.into()
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    #[test]
    fn the_published_schema_is_current() {
        if env::var_os("UPDATE_SCHEMA").is_some() {
            let path =
                concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tapstone.record.2.schema.json");
            let text = serde_json::to_string_pretty(&schema()).unwrap();
            fs::write(path, text + "\n").unwrap();
            return;
        }
        let published: Value = serde_json::from_str(SCHEMA_JSON).unwrap();
        assert!(
            published == schema(),
            "the types and the published schema differ\n\
             hint: UPDATE_SCHEMA=1 cargo test -p tapstone-record schema, and read the diff: a \
             part that goes or changes its meaning needs a new version of the format"
        );
    }

    /// Every property carries a description, or it means nothing to whoever reads the schema.
    #[test]
    fn every_field_is_described() {
        let schema = schema();
        let types = schema["$defs"].as_object().unwrap().iter();
        let mut fields = 0;
        for (name, definition) in types.chain([(&"Record".to_owned(), &schema)]) {
            let Some(properties) = definition["properties"].as_object() else { continue };
            for (field, property) in properties {
                assert!(property["description"].is_string(), "{name}.{field}");
                fields += 1;
            }
        }
        assert!(fields > 200, "{fields} fields looked at");
    }
}
