//! Text in the program's memory, which ends with a zero, as C has it.

/// The length of a text in bytes, without its zero, up to a limit.
///
/// # Safety
/// `text` is null, or ends with a zero, or is readable so far.
pub unsafe fn text_length(text: *const u8, most: usize) -> usize {
    let mut length = 0;
    // SAFETY: not past the zero.
    while !text.is_null() && length < most && unsafe { *text.add(length) } != 0 {
        length += 1;
    }
    length
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
    fn null_is_an_empty_text() {
        // SAFETY: null is allowed.
        unsafe {
            assert_eq!(text_length(ptr::null(), 10), 0);
            assert_eq!(text_up_to(ptr::null(), 10), b"");
        }
    }
}
