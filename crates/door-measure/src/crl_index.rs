//! Large CRLs as indexes in a folder of the user's own, so that a million entries are parsed and
//! their signature verified once and not at every start.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tapstone_files::{Access, Limit, read_bytes, write_whole};
use tapstone_piv::{IndexedList, RevocationList, Trust};

/// The largest CRL that is read: some 15 million entries.
const LARGEST: Limit = Limit::mebibytes(512);

/// Smaller ones are parsed in less time than an index takes to be opened.
pub(crate) const WORTH_AN_INDEX_BYTES: u64 = 1 << 20;

/// The folder of the indexes: the user's, and nobody else's.
#[derive(Debug)]
pub(crate) struct IndexFolder(PathBuf);

/// A list, and what there is to say about how it was got.
#[derive(Debug)]
pub(crate) struct FoundList {
    pub(crate) list: RevocationList,
    pub(crate) note: Option<String>,
}

/// The list of a file; without a folder it is parsed and nothing is kept.
///
/// # Errors
/// When the file cannot be read, or is no CRL that can be used.
pub(crate) fn list(
    folder: Option<&IndexFolder>,
    file: &Path,
    trust: &Trust,
) -> Result<FoundList, String> {
    let der = read_bytes(file, LARGEST).map_err(|error| error.to_string())?;
    match folder {
        Some(folder) => folder.list(&der, file, trust),
        None => {
            let list = trust.parse_list(&der).map_err(|error| error.to_string())?;
            Ok(FoundList { list, note: None })
        }
    }
}

impl IndexFolder {
    /// Makes it where it is not.
    ///
    /// # Errors
    /// When it cannot be made, is somebody else's, or somebody else may look into it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(path)?;
        match found.is_dir() && is_private(&found) {
            true => Ok(Self(path.to_owned())),
            false => Err(io::Error::other("it is not a folder of yours alone (mode 0700)")),
        }
    }

    /// From its index, or parsed, and then an index is made.
    fn list(&self, der: &[u8], file: &Path, trust: &Trust) -> Result<FoundList, String> {
        let series = trust.list_series(der).map_err(|error| error.to_string())?;
        let index = self.0.join(format!("{}.crl-index", hex::encode(series)));
        // Two processors: one reads the index while the other one makes sure that it is of this CRL.
        let (digest, kept) = std::thread::scope(|scope| {
            let digest = scope.spawn(|| <[u8; 32]>::from(Sha256::digest(der)));
            let kept = read_index(&index);
            (digest.join().expect("hashing does not panic"), kept)
        });
        if let Some(kept) = kept {
            if kept.crl_sha256 == digest && trust.knows_signer(&kept.list) {
                return Ok(FoundList { list: kept.list, note: None });
            }
            return replaced(kept, &NewFile { der, digest, index: &index, file }, trust);
        }
        let list = trust.parse_list(der).map_err(|error| error.to_string())?;
        let note = write_index(&list, digest, &index);
        Ok(FoundList { list, note })
    }
}

/// A CRL that is another one than its index was made of.
struct NewFile<'a> {
    der: &'a [u8],
    digest: [u8; 32],
    index: &'a Path,
    file: &'a Path,
}

/// A newer list takes the place of the one that is kept; an older one does not.
fn replaced(kept: IndexedList, new: &NewFile<'_>, trust: &Trust) -> Result<FoundList, String> {
    let list = trust.parse_list(new.der).map_err(|error| error.to_string())?;
    if list.is_older_than(&kept.list) && trust.knows_signer(&kept.list) {
        let note = format!(
            "{} is older than a CRL of \"{}\" that was here before, and is left out: the newer one \
             is used",
            new.file.display(),
            list.issuer()
        );
        return Ok(FoundList { list: kept.list, note: Some(note) });
    }
    let note = write_index(&list, new.digest, new.index);
    Ok(FoundList { list, note })
}

/// An index that is the user's own and not damaged.
fn read_index(path: &Path) -> Option<IndexedList> {
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let mut file = File::options().read(true).custom_flags(no_follow).open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || !is_private(&found) {
        return None;
    }
    RevocationList::read_index(&mut file).ok()
}

/// Only of a list that is signed by somebody who is believed. Without an index it works too.
fn write_index(list: &RevocationList, digest: [u8; 32], path: &Path) -> Option<String> {
    if !list.is_signed() {
        return None;
    }
    let written = write_whole(path, Access::Owner, |to| list.write_index(digest, to));
    written.err().map(|error| format!("{}: {error}: the CRL is parsed each time", path.display()))
}

fn is_private(found: &fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0
}
