//! CRLs as indexes in a folder of the user's own: a million entries are parsed and their signature
//! verified once and not at every start, and no older list takes the place of a newer one.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Cursor, Read, Seek};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tapstone_files::{Access, FileLimit, read_bytes, write_whole};
use tapstone_piv::{IndexedList, KeptCrl, RevocationList, Trust, crl_digest};

/// The largest CRL that is read: some 15 million entries.
const LARGEST: FileLimit = FileLimit::mebibytes(512);

/// Smaller ones are held.
pub(crate) const WORTH_AN_INDEX_BYTES: u64 = 1 << 20;

/// So many indexes are kept. A PKI has some hundred CAs; whoever tries many of them would fill the
/// folder.
const MOST_INDEXES: usize = 1000;

/// How an index begins, in each version of its format.
const INDEX_START: &[u8] = b"TSCRLIX";

/// The folder of the indexes: the user's, and nobody else's.
#[derive(Debug)]
pub(crate) struct IndexFolder(PathBuf);

/// The list of a file, or the one that is kept of its series, or both, the newer one last; and what
/// there is to say about it.
#[derive(Debug)]
pub(crate) struct FoundLists {
    pub(crate) lists: Vec<RevocationList>,
    pub(crate) note: Option<String>,
}

impl FoundLists {
    fn only(list: RevocationList, note: Option<String>) -> Self {
        Self { lists: vec![list], note }
    }
}

/// The list of a large file; without a folder it is parsed and nothing is kept.
///
/// # Errors
/// When the file cannot be read, or is no CRL that can be used.
pub(crate) fn large(
    folder: Option<&IndexFolder>,
    file: &Path,
    trust: &Trust,
) -> Result<FoundLists, String> {
    match folder {
        Some(folder) => folder.large(file, trust),
        None => {
            let der = read_bytes(file, LARGEST).map_err(|error| error.to_string())?;
            let list = trust.parse_list(&der).map_err(|error| error.to_string())?;
            Ok(FoundLists::only(list, None))
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

    fn large(&self, file: &Path, trust: &Trust) -> Result<FoundLists, String> {
        let mut crl = File::open(file).map_err(|error| error.to_string())?;
        let reread = || read_bytes(file, LARGEST).map_err(|error| error.to_string());
        self.lists(&mut crl, reread, &file.display().to_string(), trust)
    }

    /// The lists of a CRL's bytes; `None` when it is none that can be used, or nobody who is known
    /// has signed it.
    pub(crate) fn small(&self, bytes: &[u8], trust: &Trust) -> Option<FoundLists> {
        let reread = || Ok(bytes.to_vec());
        let found = self.lists(&mut Cursor::new(bytes), reread, "a CRL", trust).ok()?;
        found.lists.iter().any(RevocationList::is_signed).then_some(found)
    }

    /// From its index, or parsed, and then an index is made.
    fn lists(
        &self,
        crl: &mut (impl Read + Seek + Send),
        reread: impl FnOnce() -> Result<Vec<u8>, String>,
        name: &str,
        trust: &Trust,
    ) -> Result<FoundLists, String> {
        let kept = KeptCrl::open(crl, |series| use_index(&self.index(series)));
        let kept = kept.map_err(|error| error.to_string())?;
        let is_it = |index: &IndexedList| index.crl_sha256 == kept.sha256;
        match kept.index.filter(|index| trust.knows_signer(&index.list)) {
            Some(index) if is_it(&index) => Ok(FoundLists::only(index.list, None)),
            index => {
                let der = reread()?;
                if crl_digest(&der) != kept.sha256 {
                    return Err("it changed while it was read".to_owned());
                }
                let list = trust.parse_list(&der).map_err(|error| error.to_string())?;
                let new = NewList { list, digest: kept.sha256, name };
                let found = newer(index, new, &self.index(kept.series), trust);
                self.make_room(MOST_INDEXES);
                Ok(found)
            }
        }
    }

    /// Beyond so many, removes the indexes that were not used for the longest time. Other files stay,
    /// and so does what cannot be removed.
    fn make_room(&self, most: usize) {
        let Ok(entries) = fs::read_dir(&self.0) else { return };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut indexes: Vec<(SystemTime, PathBuf)> =
            paths.filter_map(|path| Some((last_use_of_index(&path)?, path))).collect();
        indexes.sort_unstable();
        let too_many = indexes.len().saturating_sub(most);
        for (_, path) in &indexes[..too_many] {
            let _ = fs::remove_file(path);
        }
    }

    fn index(&self, series: [u8; 32]) -> PathBuf {
        self.0.join(format!("{}.crl-index", hex::encode(series)))
    }
}

/// A list of which there is no index.
struct NewList<'a> {
    list: RevocationList,
    digest: [u8; 32],
    name: &'a str,
}

/// A newer list of the same signer takes the place of the one that is kept. An older one does not,
/// but is not lost: it may be a delta, or of the time that is asked about. One of a stranger, who may
/// put into it whatever he likes, is left out.
fn newer(kept: Option<IndexedList>, new: NewList<'_>, index: &Path, trust: &Trust) -> FoundLists {
    let NewList { list, digest, name } = new;
    let issuer = list.issuer().to_owned();
    match kept {
        Some(kept) if !trust.knows_signer(&list) => {
            let note = format!(
                "{name} is not signed by any key that is known here, and is left out: the CRL of \
                 \"{issuer}\" that was here before is used"
            );
            FoundLists::only(kept.list, Some(note))
        }
        Some(kept) if list.is_older_than(&kept.list) => {
            let note = format!(
                "{name} is older than the CRL of \"{issuer}\" that was here before, which counts"
            );
            FoundLists { lists: vec![list, kept.list], note: Some(note) }
        }
        _ => {
            let note = write_index(&list, digest, index);
            FoundLists::only(list, note)
        }
    }
}

/// An index, and a note in its time of modification that it was used now.
fn use_index(path: &Path) -> Option<File> {
    let file = open_index(path)?;
    let _ = file.set_modified(SystemTime::now());
    Some(file)
}

/// When an index was used or written last; `None` of a file that is none, by its name, its owner and
/// mode, and how it begins.
fn last_use_of_index(path: &Path) -> Option<SystemTime> {
    let series = path.file_name()?.to_str()?.strip_suffix(".crl-index")?;
    hex::decode(series).ok().filter(|series| series.len() == 32)?;
    let mut file = open_index(path)?;
    let mut start = [0; INDEX_START.len()];
    file.read_exact(&mut start).ok()?;
    file.metadata().ok().filter(|_| start == INDEX_START)?.modified().ok()
}

/// An index that is the user's own.
fn open_index(path: &Path) -> Option<File> {
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let file = File::options().read(true).custom_flags(no_follow).open(path).ok()?;
    let found = file.metadata().ok()?;
    (found.is_file() && is_private(&found)).then_some(file)
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

    /// What is found for a list: the entries of the newest one, and what was said. As a large file
    /// and as a small one it is the same.
    fn found(issuer: &Issuer, folder: &Path, der: &[u8]) -> (usize, Option<String>) {
        let file = folder.join("list.crl");
        fs::write(&file, der).unwrap();
        let newest = |of: FoundLists| (of.lists.last().unwrap().entries(), of.note);
        let indexes = IndexFolder::open(&folder.join("indexes")).unwrap();
        let large = newest(large(Some(&indexes), &file, &issuer.trust).unwrap());
        if let Some(small) = indexes.small(der, &issuer.trust).map(newest) {
            let name = file.display().to_string();
            assert_eq!(small.0, large.0);
            assert_eq!(small.1, large.1.clone().map(|note| note.replace(&name, "a CRL")));
        }
        large
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
        let indexes = IndexFolder::open(&folder.path().join("indexes")).unwrap();
        let both = indexes.small(&lists[0], &issuer.trust).unwrap().lists;
        assert_eq!(both.iter().map(RevocationList::entries).collect::<Vec<_>>(), [5, 6]);
        assert!(note.unwrap().contains("is older than the CRL of \"CN=CA\" that was here before"));
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
        assert!(open_index(&index).is_none());
        assert_eq!(found(&issuer, folder.path(), &der), (5, None));
        assert_eq!(fs::metadata(&index).unwrap().mode() & 0o777, 0o600);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&index, &link).unwrap();
        assert!(open_index(&link).is_none());
    }

    #[test]
    fn a_list_of_a_stranger_gets_no_index() {
        let issuer = Issuer::new();
        let folder = tempfile::tempdir().unwrap();
        let indexes = IndexFolder::open(&folder.path().join("indexes")).unwrap();
        assert!(indexes.small(&Issuer::new().list(9, 9), &issuer.trust).is_none());
        assert!(indexes.small(b"no CRL", &issuer.trust).is_none());
        assert_eq!(found(&issuer, folder.path(), &Issuer::new().list(9, 9)), (9, None));
        assert!(fs::read_dir(folder.path().join("indexes")).unwrap().next().is_none());
        // Nor does it take the place of the issuer's.
        found(&issuer, folder.path(), &issuer.list(5, 5));
        let (entries, note) = found(&issuer, folder.path(), &Issuer::new().list(9, 9));
        assert_eq!(entries, 5, "what the issuer signed is used");
        assert!(note.unwrap().contains("is not signed by any key that is known here"));
        let mut index = File::open(only_index(folder.path())).unwrap();
        assert_eq!(RevocationList::read_index(&mut index).unwrap().list.entries(), 5);
    }

    /// Those that were not used for the longest time go, and nothing else.
    #[test]
    fn so_many_indexes_are_kept() {
        let issuer = Issuer::new();
        let folder = tempfile::tempdir().unwrap();
        let der = issuer.list(5, 5);
        found(&issuer, folder.path(), &der);
        let own = only_index(folder.path());
        let place = folder.path().join("indexes");
        let indexes = IndexFolder::open(&place).unwrap();
        let whole = fs::read(&own).unwrap();
        let write = |name: String, bytes: &[u8], age: u64| {
            let path = place.join(name);
            write_whole(&path, Access::Owner, |to| to.write_all(bytes)).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
            path
        };
        let of = |letter: &str| format!("{}.crl-index", letter.repeat(64));
        let others = [
            write("notes.txt".to_owned(), &whole, 9000),
            write("abc.crl-index".to_owned(), &whole, 9000),
            write(of("d"), b"something else", 9000),
        ];
        let old = write(of("a"), &whole, 500);
        let older = write(of("b"), &whole, 600);
        File::open(&own).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        indexes.make_room(3);
        assert!(old.exists() && older.exists() && own.exists());
        // It is used, and so the newest of them.
        assert_eq!(found(&issuer, folder.path(), &der), (5, None));
        indexes.make_room(2);
        assert!(old.exists() && own.exists() && !older.exists());
        indexes.make_room(1);
        assert!(own.exists() && !old.exists());
        indexes.make_room(0);
        assert!(!own.exists() && others.iter().all(|path| path.exists()));
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
