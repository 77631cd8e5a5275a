//! GSA's ICAM test cards behind the real pcscd.

use std::path::{Path, PathBuf};

use crate::people::{measure, row};
use crate::support::{Card, Pcscd, Slot, skip};

/// Each card, and why it is refused where its CHUID is read.
const CARDS: [(&str, Option<&str>); 5] = [
    ("46-golden-fips-201-2-piv", None),
    ("37-golden-piv-p256", None),
    ("05-tampered-certificates", Some("refused: tampered")),
    ("10-expired-cert-signer", Some("refused: expired")),
    ("20-card-authent-uuid-mismatch", Some("refused: uuid-mismatch")),
];

#[test]
fn they_are_granted_or_refused_as_their_page_says() {
    let Some(folder) = std::env::var_os("TAPSTONE_TEST_ICAM").map(PathBuf::from) else {
        skip("the environment variable TAPSTONE_TEST_ICAM (folder with ICAM test cards)");
        return;
    };
    let Some(pcscd) = Pcscd::start() else { return };
    for (name, code) in CARDS {
        let card = folder.join(name);
        let arguments = [Path::new("piv"), Path::new("--card-data"), &card];
        let _card = Card::insert(&pcscd, Slot::First, &arguments);
        // They were issued under policies for tests.
        let run = measure(&folder.join("trust")).args("--policy any --rounds 2");
        let run = run.args("--at 2026-11-21T12:00:00Z");
        let record = run.run().exits(i32::from(code.is_some())).record();
        for strategy in ["", " [known-card]", " [overlap]", " [background-validation]"] {
            let row = row(&record, &format!("door.pki-cak{strategy}"));
            assert_eq!(row.status.code.as_deref(), code, "{name}{strategy}");
        }
        let by_chuid = code.is_some_and(|code| code.ends_with("mismatch"));
        let row = row(&record, "door.pki-cak [no-chuid]");
        let expected = code.filter(|_| !by_chuid);
        assert_eq!(row.status.code.as_deref(), expected, "{name}");
    }
}
