use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

fn token() -> TokenName {
    TokenName { serial: "17".into(), label: "hsm".into() }
}

fn key(id: &str) -> OwnKey {
    OwnKey { label: "tapstone-0011".into(), id: id.into() }
}

struct Place {
    _home: TempDir,
    folder: PathBuf,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("state");
        Self { _home: home, folder }
    }

    fn journal(&self) -> KeyJournal {
        KeyJournal::new(Some(self.folder.clone()), token())
    }

    /// The only file.
    fn file(&self) -> PathBuf {
        let mut files = fs::read_dir(&self.folder).unwrap();
        let path = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none());
        path
    }

    /// What a process noted that is dead: this one, started at another moment.
    fn dead(&self, ids: &[&str]) -> PathBuf {
        let mut journal = self.journal();
        ids.iter().for_each(|id| journal.note(key(id)).unwrap());
        let path = self.file();
        let start = Owner::this_process().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let changed = text.replace(&serde_json::to_string(&start).unwrap(), &dead_owner(start));
        assert_ne!(text, changed);
        fs::write(&path, changed).unwrap();
        path
    }

    fn known(&self) -> KnownKeys {
        known_keys(&self.folder, &token())
    }
}

fn dead_owner(owner: Owner) -> String {
    let mut owner = serde_json::to_value(owner).unwrap();
    owner["start"] = 1.into();
    // In the order in which it is written.
    let text = |name: &str| format!("\"{name}\":{}", owner[name]);
    let fields = ["machine", "boot", "namespace", "process", "start"].map(text);
    format!("{{{}}}", fields.join(","))
}

#[test]
fn a_key_is_on_the_disk_before_it_is_made_and_only_its_user_can_read_it() {
    let place = Place::new();
    let mut journal = place.journal();
    assert!(!place.folder.exists(), "no key, no file");
    journal.note(key("01")).unwrap();
    journal.note(key("01")).unwrap();
    journal.note(key("02")).unwrap();
    let path = place.file();
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&place.folder).unwrap().mode() & 0o777, 0o700);
    let known = place.known();
    assert_eq!(known.alive, [key("01"), key("02")]);
    assert!(known.dead.is_empty() && known.warnings.is_empty());
    journal.forget_all();
    assert!(!path.exists());
    journal.note(key("03")).unwrap();
    assert_eq!(place.known().alive, [key("03")]);
}

#[test]
fn keys_of_the_dead_are_cleared_once_and_by_one() {
    let place = Place::new();
    let path = place.dead(&["01", "02"]);
    let mut first = place.known();
    assert_eq!(first.dead.len(), 1);
    assert_eq!(first.dead[0].keys, [key("01"), key("02")]);
    let second = place.known();
    assert!(second.dead.is_empty(), "two runs at once");
    drop(second);
    first.dead.pop().unwrap().clear();
    assert!(!path.exists());
}

#[test]
fn another_token_is_not_this_one_and_a_reset_one_is() {
    let place = Place::new();
    let _path = place.dead(&["01"]);
    let named = |serial: &str, label: &str| {
        let token = TokenName { serial: serial.into(), label: label.into() };
        known_keys(&place.folder, &token).dead.len()
    };
    assert_eq!((named("17", "new label"), named("18", "hsm"), named("", "hsm")), (1, 0, 0));
}

#[test]
fn a_line_that_was_cut_off_is_no_key_and_a_damaged_one_is_told() {
    let place = Place::new();
    let path = place.dead(&["01"]);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{}", &text[..text.len() / 2])).unwrap();
    let known = place.known();
    assert_eq!((known.dead.len(), known.dead[0].keys.len(), known.warnings.len()), (1, 1, 0));
    drop(known);
    fs::write(&path, format!("{{}}\n\0\n{text}")).unwrap();
    let known = place.known();
    assert_eq!((known.dead.len(), known.dead[0].keys.len()), (1, 1));
    assert!(known.warnings[0].ends_with("2 lines are damaged"), "{:?}", known.warnings);
}

#[test]
fn what_others_could_have_written_is_not_read() {
    let place = Place::new();
    let path = place.dead(&["01"]);
    let refused = |why: &str| {
        let known = place.known();
        assert!(known.dead.is_empty() && known.warnings.len() == 1, "{why}");
    };
    fs::set_permissions(&path, Permissions::from_mode(0o622)).unwrap();
    refused("its mode");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&place.folder, Permissions::from_mode(0o777)).unwrap();
    refused("the folder's mode");
    assert!(place.journal().note(key("02")).is_err());
    fs::set_permissions(&place.folder, Permissions::from_mode(0o700)).unwrap();
    let elsewhere = place.folder.with_extension("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    refused("a link");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refused("a folder");
}

#[test]
fn without_a_folder_nothing_is_noted() {
    let mut journal = KeyJournal::new(None, token());
    assert!(journal.note(key("01")).unwrap_err().contains("XDG_STATE_HOME"));
    let place = Place::new();
    fs::write(&place.folder, "a file").unwrap();
    assert!(place.journal().note(key("01")).is_err());
    assert_eq!(place.known().warnings.len(), 1);
}
