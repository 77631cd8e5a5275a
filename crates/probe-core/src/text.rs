//! Text in the program's memory, which ends with a zero, as C has it.

/// The length of a text in bytes, without its zero, up to a limit.
///
/// # Safety
/// `text` is null, or ends with a zero, or is readable so far; and so is the rest of the last aligned
/// word, as in a page of memory.
pub unsafe fn text_length(text: *const u8, most: usize) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    let mut length = 0;
    while !text.is_null() && length < most {
        // SAFETY: not past the zero.
        let at = unsafe { text.add(length) };
        if at.addr().is_multiple_of(8) {
            // SAFETY: a word lies in one page, and its first byte is there.
            let word = unsafe { at.cast::<u64>().read() };
            // The lowest bit that is set is in the first byte that is zero (Mycroft 1987).
            let zeros = word.wrapping_sub(ONES) & !word & HIGHEST;
            length += zeros.trailing_zeros() as usize / 8;
            if zeros != 0 {
                break;
            }
        // SAFETY: as above.
        } else if unsafe { *at } == 0 {
            break;
        } else {
            length += 1;
        }
    }
    length.min(most)
}

/// The text at an address, without its zero, up to a limit in bytes. Empty where `text` is null.
///
/// # Safety
/// As for [`text_length`], for as long as the answer is used.
pub unsafe fn text_up_to<'a>(text: *const u8, most: usize) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: not past the zero.
    unsafe { core::slice::from_raw_parts(text, text_length(text, most)) }
}

/// A digest by which a text is told from others of the run: of eight bytes at a time, the two halves
/// of their product with a large odd number, as in wyhash. By bytes it would take five times as long.
pub fn text_digest(text: &[u8]) -> u64 {
    /// Knuth's multiplier for 64 bits.
    const FACTOR: u128 = 6_364_136_223_846_793_005;
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let all = words.iter().chain([&last]);
    all.fold(text.len() as u64, |digest, word| {
        let product = u128::from(digest ^ u64::from_le_bytes(*word)) * FACTOR;
        (product >> 64) as u64 ^ product as u64
    })
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use super::*;

    #[test]
    fn a_text_ends_at_its_zero_or_at_the_limit() {
        let text = b"pcscd\0rest";
        // SAFETY: the text ends with a zero.
        unsafe {
            assert_eq!(text_length(text.as_ptr(), 10), 5);
            assert_eq!(text_length(text.as_ptr(), 5), 5);
            assert_eq!(text_length(text.as_ptr(), 3), 3);
            assert_eq!(text_up_to(text.as_ptr(), 10), b"pcscd");
        }
    }

    #[test]
    fn a_text_is_as_long_wherever_it_begins_and_ends() {
        #[repr(align(16))]
        struct Aligned([u8; 64]);
        for (start, length) in (0..16).flat_map(|start| (0..40).map(move |it| (start, it))) {
            let mut text = Aligned([0x80; 64]);
            text.0[start..start + length].fill(1);
            text.0[start + length] = 0;
            let text = &text.0[start..];
            // SAFETY: the text ends with a zero.
            let found = |most| unsafe { text_length(text.as_ptr(), most) };
            assert_eq!(found(48), length, "{length} bytes from {start} on");
            assert_eq!(found(length.saturating_sub(1)), length.saturating_sub(1));
        }
    }

    #[test]
    fn texts_that_differ_anywhere_have_other_digests() {
        let text = *b"/var/lib/softhsm/tokens/0/generation";
        let mut digests = std::vec![text_digest(&text), text_digest(b""), text_digest(b"\0")];
        for length in 1..text.len() {
            digests.push(text_digest(&text[..length]));
        }
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut other = text;
                other[at] ^= 1 << bit;
                digests.push(text_digest(&other));
            }
        }
        let count = digests.len();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), count);
    }

    #[test]
    fn null_is_an_empty_text() {
        // SAFETY: null is allowed.
        unsafe {
            assert_eq!(text_length(ptr::null(), 10), 0);
            assert_eq!(text_up_to(ptr::null(), 10), b"");
        }
    }
}
