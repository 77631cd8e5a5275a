//! What is kept of a template (an array of CK_ATTRIBUTE): its shape, a digest of it, and whether it
//! speaks of objects that stay on the token. No value.

use core::hash::Hasher;

use crate::program_memory::ProgramMemory;

/// Attributes of a template that are looked at, at most.
pub(super) const LONGEST_TEMPLATE: u64 = 256;

/// Attributes whose presence in a template is kept, by their bit in [`template_shape`].
pub const SHAPED_ATTRIBUTES: [u64; 15] = [
    0x000, // CKA_CLASS
    0x001, // CKA_TOKEN
    0x002, // CKA_PRIVATE
    0x003, // CKA_LABEL
    0x102, // CKA_ID
    0x100, // CKA_KEY_TYPE
    0x011, // CKA_VALUE
    0x080, // CKA_CERTIFICATE_TYPE
    0x101, // CKA_SUBJECT
    0x120, // CKA_MODULUS
    0x122, // CKA_PUBLIC_EXPONENT
    0x180, // CKA_EC_PARAMS
    0x181, // CKA_EC_POINT
    0x108, // CKA_SIGN
    0x202, // CKA_ALWAYS_AUTHENTICATE
];
/// How many bits [`template_shape`] has.
pub const SHAPE_BITS: u32 = 41;
/// The bit of [`template_shape`] for attributes that are not in [`SHAPED_ATTRIBUTES`].
pub const OTHER_ATTRIBUTES: u64 = 1 << 15;

/// Whose values a template points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateValues {
    /// The caller's: what is looked for.
    Given,
    /// Room for those that are asked for. What is in it is anything.
    AskedFor,
}

/// A handle that fits behind a shape; 0: another one.
pub(super) fn small_handle(handle: u64) -> u64 {
    if handle >> (64 - SHAPE_BITS) == 0 { handle } else { 0 }
}

/// The shape of a template, without its values: from bit 0 which [`SHAPED_ATTRIBUTES`] it has, from
/// bit 16 how many attributes it has (at most 255), from bit 24 its CKA_CLASS plus one where that is
/// a small number and one that the caller gives, and bit 40 when no attribute has room for a value.
///
/// # Safety
/// The call to which the template belongs has not returned.
pub unsafe fn template_shape(
    template: u64,
    count: u64,
    values: TemplateValues,
    memory: &ProgramMemory,
) -> u64 {
    const CKA_CLASS: u64 = 0;
    if count > LONGEST_TEMPLATE {
        return 0;
    }
    let mut shape = count.min(255) << 16;
    let mut without_room = count > 0;
    for at in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            let Some([kind, value, length]) = attribute(template, at, memory) else { return 0 };
            let known = SHAPED_ATTRIBUTES.iter().position(|other| *other == kind);
            shape |= known.map_or(OTHER_ATTRIBUTES, |bit| 1 << bit);
            without_room &= value == 0;
            let is_given = values == TemplateValues::Given;
            if is_given
                && kind == CKA_CLASS
                && length == 8
                && let Some([class]) = memory.words::<1>(value)
            {
                shape |= class.saturating_add(1).min(0xFFFF) << 24;
            }
        }
    }
    shape | u64::from(without_room) << 40
}

/// A digest of a template under a key: types, lengths and values in their order, of which nothing
/// else is kept. 0 where it is no template, too long to be looked through, or not there.
///
/// # Safety
/// The call to which the template belongs has not returned.
pub unsafe fn template_digest(
    template: u64,
    count: u64,
    key: [u64; 2],
    memory: &ProgramMemory,
) -> u64 {
    const LONGEST_VALUE: u64 = 1 << 16;
    if count > LONGEST_TEMPLATE {
        return 0;
    }
    let [first, second] = key;
    #[allow(deprecated, reason = "SipHash-2-4 with a key, which has no other name in core")]
    let mut digest = core::hash::SipHasher::new_with_keys(first, second);
    digest.write_u64(count);
    for at in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            let Some([kind, value, length]) = attribute(template, at, memory) else { return 0 };
            if length > LONGEST_VALUE {
                return 0;
            }
            let Some(value) = memory.bytes(value, length as usize) else { return 0 };
            digest.write_u64(kind);
            digest.write_u64(length);
            if !value.is_empty() {
                digest.write(value);
            }
        }
    }
    digest.finish().max(1)
}

/// CKA_TOKEN in a template; `None` where it is not in it.
///
/// # Safety
/// The call to which the template belongs has not returned.
pub(super) unsafe fn token_attribute(
    template: u64,
    count: u64,
    memory: &ProgramMemory,
) -> Option<bool> {
    const CKA_TOKEN: u64 = 1;
    for at in 0..if template == 0 { 0 } else { count.min(LONGEST_TEMPLATE) } {
        // SAFETY: the caller's promise.
        unsafe {
            let [kind, value, length] = attribute(template, at, memory)?;
            if kind == CKA_TOKEN && value != 0 && length > 0 {
                return memory.bytes(value, 1).map(|value| value != [0]);
            }
        }
    }
    None
}

/// An attribute of a template (CK_ATTRIBUTE): type, value, length. `None` where it is not there.
///
/// # Safety
/// The call to which the template belongs has not returned.
unsafe fn attribute(template: u64, at: u64, memory: &ProgramMemory) -> Option<[u64; 3]> {
    const ATTRIBUTE_BYTES: u64 = 24;
    // SAFETY: the caller's promise.
    unsafe { memory.words(template.wrapping_add(at * ATTRIBUTE_BYTES)) }
}
