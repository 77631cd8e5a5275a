//! What can be wrong with the name or the size of an operation.

/// The largest message that an operation can be given, in bytes. Larger ones measure the memory
/// of the host.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// A request that the catalogue cannot meet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// The name is not in the catalogue.
    #[error("no operation is called {name:?}{}", did_you_mean(.nearest))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that are most like it, best first; empty if none is.
        nearest: Vec<String>,
    },
    /// A size was asked for where it is not a parameter.
    #[error(
        "{operation}: its message is always {bytes} bytes\n\
         hint: leave the size out; sizes are for symmetric ciphers, digests, random numbers, \
         and signatures that the token hashes"
    )]
    FixedSize {
        /// The name of the operation.
        operation: String,
        /// The length of its message.
        bytes: usize,
    },
    /// Zero, or more than anything here handles.
    #[error(
        "{operation}: a message of {bytes} bytes is impossible\n\
         hint: choose 1 to {MAX_MESSAGE_BYTES} bytes"
    )]
    SizeOutOfRange {
        /// The name of the operation.
        operation: String,
        /// What was asked for.
        bytes: usize,
    },
    /// A mode without padding takes whole blocks.
    #[error(
        "{operation}: {bytes} bytes are not a multiple of its {block}-byte block\n\
         hint: choose {}, or the padded variant {operation}.pad",
        .bytes.next_multiple_of(*.block)
    )]
    NotWholeBlocks {
        /// The name of the operation.
        operation: String,
        /// What was asked for.
        bytes: usize,
        /// Length of a block.
        block: usize,
    },
}

fn did_you_mean(nearest: &[String]) -> String {
    if nearest.is_empty() {
        "\nhint: `*` selects everything; a trailing `.*` selects a name and its variants".to_owned()
    } else {
        format!("\nhint: the nearest are {}", nearest.join(", "))
    }
}
