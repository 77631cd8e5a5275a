//! Large CRLs as indexes in a folder of the user's own, so that a million entries are parsed and
//! their signature verified once and not at every start.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tapstone_files::{Access, Limit, read_bytes, write_whole};
use tapstone_piv::{IndexedList, RevocationList, Trust, crl_digest};

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
            let digest = scope.spawn(|| crl_digest(der));
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

/// A newer list of the same signer takes the place of the one that is kept; an older one does not,
/// and neither does one of a stranger, who may put into it whatever he likes.
fn replaced(kept: IndexedList, new: &NewFile<'_>, trust: &Trust) -> Result<FoundList, String> {
    let list = trust.parse_list(new.der).map_err(|error| error.to_string())?;
    let why_not = match trust.knows_signer(&list) {
        false => Some("is not signed by any key that is known here"),
        true if list.is_older_than(&kept.list) => Some("is older"),
        true => None,
    };
    if let Some(why_not) = why_not.filter(|_| trust.knows_signer(&kept.list)) {
        let note = format!(
            "{} {why_not}, and is left out: the CRL of \"{}\" that was here before is used",
            new.file.display(),
            list.issuer(),
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
    // One that others could write to would keep its mode.
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file() || !is_private(&found)) {
        let _ = fs::remove_file(path);
    }
    let written = write_whole(path, Access::Owner, |to| list.write_index(digest, to));
    written.err().map(|error| format!("{}: {error}: the CRL is parsed each time", path.display()))
}

fn is_private(found: &fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::str::FromStr;
    use std::time::Duration;

    use der::Encode;
    use der::asn1::{BitString, OctetString, Uint};
    use p256::ecdsa::signature::Signer;
    use p256::ecdsa::{DerSignature, SigningKey};
    use rsa::rand_core::OsRng;
    use tapstone_piv::Certificate;
    use x509_cert::builder::{Builder, CertificateBuilder, Profile};
    use x509_cert::crl::{CertificateList, RevokedCert, TbsCertList};
    use x509_cert::ext::Extension;
    use x509_cert::name::Name;
    use x509_cert::serial_number::SerialNumber;
    use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
    use x509_cert::time::Validity;

    use super::*;

    struct Issuer {
        key: SigningKey,
        validity: Validity,
        trust: Trust,
    }

    impl Issuer {
        fn new() -> Self {
            let key = SigningKey::random(&mut OsRng);
            let public = SubjectPublicKeyInfoOwned::from_key(*key.verifying_key()).unwrap();
            let validity = Validity::from_now(Duration::from_secs(3600)).unwrap();
            let serial = SerialNumber::from(1_u8);
            let name = Name::from_str("CN=CA").unwrap();
            let builder =
                CertificateBuilder::new(Profile::Root, serial, validity, name, public, &key);
            let ca = builder.unwrap().build::<DerSignature>().unwrap().to_der().unwrap();
            let trust = Trust::new(vec![Certificate::parse(&ca).unwrap()], Vec::new()).unwrap();
            Self { key, validity, trust }
        }

        fn list(&self, number: u8, entries: u8) -> Vec<u8> {
            let oid = der::asn1::ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
            let algorithm = AlgorithmIdentifierOwned { oid, parameters: None };
            let Validity { not_before, not_after } = self.validity;
            let revoked = |serial: u8| RevokedCert {
                serial_number: SerialNumber::from(serial),
                revocation_date: not_before,
                crl_entry_extensions: None,
            };
            let number = Uint::new(&[number]).unwrap().to_der().unwrap();
            let list = TbsCertList {
                version: x509_cert::Version::V2,
                signature: algorithm.clone(),
                issuer: Name::from_str("CN=CA").unwrap(),
                this_update: not_before,
                next_update: Some(not_after),
                revoked_certificates: Some((1..=entries).map(revoked).collect()),
                crl_extensions: Some(vec![Extension {
                    extn_id: der::asn1::ObjectIdentifier::new_unwrap("2.5.29.20"),
                    critical: false,
                    extn_value: OctetString::new(number).unwrap(),
                }]),
            };
            let signature: DerSignature = self.key.sign(&list.to_der().unwrap());
            let signature = BitString::from_bytes(&signature.to_bytes()).unwrap();
            let list =
                CertificateList { tbs_cert_list: list, signature_algorithm: algorithm, signature };
            list.to_der().unwrap()
        }
    }

    /// What is found for a list: its entries, and what was said.
    fn found(issuer: &Issuer, folder: &Path, der: &[u8]) -> (usize, Option<String>) {
        let file = folder.join("list.crl");
        fs::write(&file, der).unwrap();
        let indexes = IndexFolder::open(&folder.join("indexes")).unwrap();
        let found = list(Some(&indexes), &file, &issuer.trust).unwrap();
        (found.list.entries(), found.note)
    }

    fn only_index(folder: &Path) -> PathBuf {
        let mut inside = fs::read_dir(folder.join("indexes")).unwrap();
        let path = inside.next().unwrap().unwrap().path();
        assert!(inside.next().is_none(), "one index a series");
        path
    }

    #[test]
    fn a_newer_list_takes_the_place_of_an_older_one_and_not_the_reverse() {
        let issuer = Issuer::new();
        let folder = tempfile::tempdir().unwrap();
        let lists = [issuer.list(5, 5), issuer.list(6, 6)];
        assert_eq!(found(&issuer, folder.path(), &lists[0]), (5, None));
        let index = only_index(folder.path());
        assert_eq!(fs::metadata(&index).unwrap().mode() & 0o777, 0o600);
        assert_eq!(found(&issuer, folder.path(), &lists[0]), (5, None));
        assert_eq!(found(&issuer, folder.path(), &lists[1]), (6, None));
        let (entries, note) = found(&issuer, folder.path(), &lists[0]);
        assert_eq!(entries, 6, "the newer one is used");
        assert!(note.unwrap().contains("is older, and is left out: the CRL of \"CN=CA\""));
        only_index(folder.path());
    }

    #[test]
    fn a_damaged_index_or_one_of_others_is_made_again() {
        let issuer = Issuer::new();
        let folder = tempfile::tempdir().unwrap();
        let der = issuer.list(5, 5);
        found(&issuer, folder.path(), &der);
        let index = only_index(folder.path());
        let whole = fs::read(&index).unwrap();
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 1;
        for damaged in [&changed[..], &whole[..40], b""] {
            fs::write(&index, damaged).unwrap();
            assert_eq!(found(&issuer, folder.path(), &der), (5, None));
            assert_eq!(fs::read(&index).unwrap(), whole);
        }
        // Somebody else could have written it.
        fs::set_permissions(&index, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(read_index(&index).is_none());
        assert_eq!(found(&issuer, folder.path(), &der), (5, None));
        assert_eq!(fs::metadata(&index).unwrap().mode() & 0o777, 0o600);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&index, &link).unwrap();
        assert!(read_index(&link).is_none());
    }

    #[test]
    fn a_list_of_a_stranger_gets_no_index() {
        let issuer = Issuer::new();
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(found(&issuer, folder.path(), &Issuer::new().list(9, 9)), (9, None));
        assert!(fs::read_dir(folder.path().join("indexes")).unwrap().next().is_none());
        // Nor does it take the place of the issuer's.
        found(&issuer, folder.path(), &issuer.list(5, 5));
        let (entries, note) = found(&issuer, folder.path(), &Issuer::new().list(9, 9));
        assert_eq!(entries, 5, "what the issuer signed is used");
        assert!(note.unwrap().contains("is not signed by any key that is known here"));
        assert_eq!(read_index(&only_index(folder.path())).unwrap().list.entries(), 5);
    }

    #[test]
    fn a_folder_that_others_look_into_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("indexes");
        IndexFolder::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        for mode in [0o755, 0o770, 0o701] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(IndexFolder::open(&path).is_err(), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        IndexFolder::open(&path).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(IndexFolder::open(&link).is_err());
    }
}
