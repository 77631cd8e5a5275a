//! How much a benchmark does.

/// How many of something: all of it under `cargo bench`, a few where only the workings are tried.
pub(crate) fn rounds(all: usize, few: usize) -> usize {
    if std::env::args().any(|argument| argument == "--bench") { all } else { few }
}
