//! Attribute templates: typed in, `CK_ATTRIBUTE` out.

use std::ptr;

use cryptoki_sys::*;

/// A list of attributes that owns its values.
#[derive(Clone, Debug, Default)]
pub struct Template {
    attributes: Vec<(CK_ATTRIBUTE_TYPE, Vec<u8>)>,
}

impl Template {
    /// A template without attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an attribute whose value is a CK_BBOOL.
    pub fn flag(self, attribute: CK_ATTRIBUTE_TYPE, value: bool) -> Self {
        self.bytes(attribute, &[u8::from(value)])
    }

    /// Adds an attribute whose value is a CK_ULONG.
    pub fn number(self, attribute: CK_ATTRIBUTE_TYPE, value: CK_ULONG) -> Self {
        self.bytes(attribute, &value.to_ne_bytes())
    }

    /// Adds an attribute whose value is a byte array.
    pub fn bytes(mut self, attribute: CK_ATTRIBUTE_TYPE, value: &[u8]) -> Self {
        self.attributes.push((attribute, value.to_vec()));
        self
    }

    /// The attributes as the calls take them, ready to be used many times.
    pub fn into_raw(self) -> RawTemplate {
        let mut values: Vec<Vec<u8>> = Vec::with_capacity(self.attributes.len());
        let mut raw = Vec::with_capacity(self.attributes.len());
        for (attribute, mut value) in self.attributes {
            raw.push(CK_ATTRIBUTE {
                type_: attribute,
                pValue: if value.is_empty() { ptr::null_mut() } else { value.as_mut_ptr().cast() },
                ulValueLen: value.len() as CK_ULONG,
            });
            values.push(value);
        }
        RawTemplate { raw, _values: values }
    }
}

/// `CK_ATTRIBUTE`s with the values that they point to: heap memory, which stays where it is when
/// this moves, and which nothing else reaches.
pub struct RawTemplate {
    raw: Vec<CK_ATTRIBUTE>,
    _values: Vec<Vec<u8>>,
}

// SAFETY: the pointers lead only to memory that this owns.
unsafe impl Send for RawTemplate {}

impl RawTemplate {
    /// Where they begin, as the calls take it.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut CK_ATTRIBUTE {
        self.raw.as_mut_ptr()
    }

    /// How many there are, as the calls take it.
    #[inline]
    pub fn count(&self) -> CK_ULONG {
        self.raw.len() as CK_ULONG
    }
}
