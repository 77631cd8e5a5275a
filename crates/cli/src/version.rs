//! What `tapstone --version` says: enough to build the same program again.

/// In the place of the version alone, which `-V` says.
pub(crate) const BUILD_FACTS: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit   ",
    env!("TAPSTONE_COMMIT"),
    "\ntarget   ",
    env!("TAPSTONE_TARGET"),
    "\nprofile  ",
    env!("TAPSTONE_PROFILE"),
    "\nrustc    ",
    env!("TAPSTONE_RUSTC"),
    "\nrecord   tapstone.record/2"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_the_one_that_is_written() {
        let schema = tapstone_record::SchemaName::V2.as_str();
        assert!(BUILD_FACTS.ends_with(&format!("record   {schema}")));
    }
}
