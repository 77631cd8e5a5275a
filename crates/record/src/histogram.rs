//! A latency histogram as text: HdrHistogram's V2 encoding, in base64.
//!
//! Any HdrHistogram library can read it back, and it holds all that quantiles need, so figures
//! can be made anew from a record long after the run.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{
    DeserializeError, Deserializer, Serializer, V2SerializeError, V2Serializer,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A histogram of nanoseconds: HdrHistogram V2 (cookie 0x1c849313), not compressed, in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EncodedHistogram(String);

impl EncodedHistogram {
    /// Encodes a histogram of nanoseconds.
    ///
    /// # Errors
    /// When a count is beyond 2⁶³.
    pub fn encode(histogram: &Histogram<u64>) -> Result<Self, HistogramError> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(histogram, &mut bytes)?;
        Ok(Self(BASE64.encode(bytes)))
    }

    /// The histogram, with the bounds and the precision that it was made with.
    ///
    /// # Errors
    /// When the text is not base64, or not a histogram.
    pub fn decode(&self) -> Result<Histogram<u64>, HistogramError> {
        let bytes = BASE64.decode(&self.0)?;
        Ok(Deserializer::new().deserialize(&mut bytes.as_slice())?)
    }

    /// The base64 text of the compressed HdrHistogram, V2 with DEFLATE.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A histogram could not be encoded or decoded.
#[derive(Debug, Error)]
pub enum HistogramError {
    /// It cannot be written in the V2 encoding.
    #[error("cannot encode the histogram: {0}\nhint: please report this as a defect of Tapstone")]
    Encode(#[from] V2SerializeError),
    /// Its text is not base64.
    #[error("the histogram is not base64: {0}\nhint: the record was changed by hand")]
    Base64(#[from] base64::DecodeError),
    /// Its bytes are not a histogram.
    #[error("the histogram cannot be decoded: {0}\nhint: the record was changed by hand")]
    Decode(#[from] DeserializeError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tapstone_measure::bucket::HIGHEST;

    fn bounds() -> Histogram<u64> {
        Histogram::new_with_bounds(1, HIGHEST.0, 3).unwrap()
    }

    proptest! {
        #[test]
        fn comes_back_as_it_was(
            counts in prop::collection::vec((0..=HIGHEST.0, 1u64..1 << 40), 0..200),
        ) {
            let mut histogram = bounds();
            for (value, count) in counts {
                histogram.record_n(value, count).unwrap();
            }
            let decoded = EncodedHistogram::encode(&histogram).unwrap().decode().unwrap();
            prop_assert_eq!(&decoded, &histogram);
            prop_assert_eq!(decoded.high(), HIGHEST.0);
            prop_assert_eq!(decoded.sigfig(), 3);
        }

        #[test]
        fn never_panics_on_other_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = EncodedHistogram(BASE64.encode(bytes)).decode();
        }
    }

    #[test]
    fn is_the_uncompressed_v2_encoding() {
        let mut histogram = bounds();
        histogram.record(25_000).unwrap();
        let encoded = EncodedHistogram::encode(&histogram).unwrap();
        assert_eq!(BASE64.decode(encoded.as_str()).unwrap()[..4], [0x1c, 0x84, 0x93, 0x13]);
        assert!(encoded.as_str().len() < 80, "40 bytes of header and one count");
    }

    #[test]
    fn says_what_is_wrong() {
        let broken = |text: &str| EncodedHistogram(text.into()).decode().unwrap_err().to_string();
        assert!(broken("***").starts_with("the histogram is not base64"));
        assert!(broken("AAAA").starts_with("the histogram cannot be decoded"));
    }
}
