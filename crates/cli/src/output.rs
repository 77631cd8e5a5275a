//! Where results go.

use std::fs::OpenOptions;
use std::path::Path;

/// Fails now rather than after an hour of measuring, if the record cannot be written there.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let existed = path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| {
        anyhow::anyhow!("{}: {error}\nhint: the record cannot be written there", path.display())
    })?;
    if !existed {
        std::fs::remove_file(path).ok();
    }
    Ok(())
}

/// How many columns standard output has; 100 in a pipe.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0))
}
