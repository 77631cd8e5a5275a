//! `tapstone manual`: the manual pages of all verbs, made from their definitions when a package is
//! built. Not for people, who have `tapstone help`.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Command};

use crate::exit::Exit;

/// Write the manual pages (section 1 of the manual) into a folder.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A folder that is there
    folder: PathBuf,
}

pub(crate) fn write_manual(arguments: &Arguments, definitions: Command) -> anyhow::Result<Exit> {
    let folder = &arguments.folder;
    clap_mangen::generate_to(definitions, folder).map_err(|error| {
        let folder = folder.display();
        anyhow!("{folder}: {error}\nhint: name a folder that is there and can be written")
    })?;
    Ok(Exit::Done)
}
