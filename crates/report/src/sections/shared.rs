//! What all cases have in common, so that it is said once, and what they do not.

/// The value that all of them are; `None` when two differ or there are none.
pub(super) fn common<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values = values.into_iter();
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// Whether two of them differ.
pub(super) fn differ<T: PartialEq>(values: impl IntoIterator<Item = T>) -> bool {
    let mut values = values.into_iter();
    values.next().is_some_and(|first| values.any(|value| value != first))
}
