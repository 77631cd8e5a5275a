//! How the program was called, for records.

use std::env;

/// Its words. A file name need not be UTF-8: what is not is shown as a replacement character.
pub(crate) fn words() -> Vec<String> {
    env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}
