//! JSON in which no object has a field twice. A value of serde_json keeps the last of two, and says
//! nothing.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Any JSON, of which nothing is kept.
pub(crate) struct UniqueFields;

impl<'de> Deserialize<'de> for UniqueFields {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = UniqueFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_unit<E>(self) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<UniqueFields, A::Error> {
        while list.next_element::<UniqueFields>()?.is_some() {}
        Ok(UniqueFields)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<UniqueFields, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = object.next_key::<String>()? {
            object.next_value::<UniqueFields>()?;
            if let Some(name) = names.replace(name) {
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
        }
        Ok(UniqueFields)
    }
}
