//! The two ways in which PIV writes tag, length and value, over one library.
//!
//! Templates (61, 7C, 7E) are BER-TLV with tags of one to three bytes. Inside data objects a tag is
//! one byte of any value (30, 34, 3E, F0, FE), which is not a BER tag, with a BER length.

pub use flexiber::Tag;
use flexiber::{Decodable, Decoder, Encodable, SimpleTag, TagLike, TaggedSlice};

/// The longest value that can be written: lengths have two bytes after `82`.
pub const LONGEST: usize = 0xFFF0;

const WRITTEN: &str = "tags are constants and values are at most LONGEST bytes";

/// One element with a tag of one byte.
///
/// # Panics
/// With tag 0, or a value longer than [`LONGEST`].
#[must_use]
pub fn element(tag: u8, value: &[u8]) -> Vec<u8> {
    encoded(SimpleTag::try_from(tag).expect(WRITTEN), value)
}

/// One element with a BER tag of two bytes: `5F2F`.
///
/// # Panics
/// With a value longer than [`LONGEST`].
#[must_use]
pub fn long_element(tag: Tag, value: &[u8]) -> Vec<u8> {
    encoded(tag, value)
}

fn encoded<T: TagLike + Encodable>(tag: T, value: &[u8]) -> Vec<u8> {
    let tagged = TaggedSlice::from(tag, value).expect(WRITTEN);
    tagged.to_vec().expect(WRITTEN)
}

/// The elements that stand side by side, by their tags of one byte; `None` when the bytes are
/// something else.
#[must_use]
pub fn elements(bytes: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut decoder = Decoder::new(bytes);
    let mut found = Vec::new();
    while !decoder.is_finished() {
        let element: TaggedSlice<'_, SimpleTag> = decoder.decode().ok()?;
        found.push((element.tag().embedding().number as u8, element.as_bytes()));
    }
    Some(found)
}

/// The value of the one element with this tag of one byte that the bytes are.
#[must_use]
pub fn only(tag: u8, bytes: &[u8]) -> Option<&[u8]> {
    let expected = SimpleTag::try_from(tag).ok()?;
    let element = TaggedSlice::<'_, SimpleTag>::from_bytes(bytes).ok()?;
    (element.tag() == expected).then(|| element.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            tag in 1u8..0xFF,
            value in prop::collection::vec(any::<u8>(), 0..700),
        ) {
            let bytes = element(tag, &value);
            prop_assert_eq!(only(tag, &bytes), Some(&value[..]));
            let twice = [&bytes[..], &bytes[..]].concat();
            prop_assert_eq!(elements(&twice), Some(vec![(tag, &value[..]), (tag, &value[..])]));
            prop_assert_eq!(elements(&twice[..twice.len() - 1]), None);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = elements(&bytes);
            let _ = only(0x7C, &bytes);
        }
    }

    #[test]
    fn tags_and_lengths_are_written_as_in_ber() {
        assert_eq!(element(0x7C, &[1, 2]), [0x7C, 2, 1, 2]);
        assert_eq!(element(0x70, &[5; 128])[..4], [0x70, 0x81, 128, 5]);
        assert_eq!(element(0x70, &[5; 256])[..5], [0x70, 0x82, 1, 0, 5]);
        let tag = Tag::try_from(&[0x5F, 0x2F][..]).unwrap();
        assert_eq!(long_element(tag, &[9]), [0x5F, 0x2F, 1, 9]);
        assert_eq!(element(0x53, &[0; LONGEST]).len(), 1 + 3 + LONGEST);
    }

    #[test]
    fn another_tag_is_not_the_one_that_was_asked_for() {
        assert_eq!(only(0x7C, &[0x7C, 1, 9]), Some(&[9][..]));
        assert_eq!(only(0x7D, &[0x7C, 1, 9]), None);
        assert_eq!(only(0x7C, &[]), None);
        assert_eq!(elements(&[]), Some(Vec::new()));
    }
}
