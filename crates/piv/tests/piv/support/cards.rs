//! Cards that answer out of a folder of files, as GSA's test cards are kept, and cards that do not
//! answer as they should.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use p256::ecdsa::SigningKey;
use pkcs8::EncodePrivateKey;
use rsa::rand_core::OsRng;
use tapstone_apdu::CommandApdu;
use tapstone_piv::{CardConnection, CardLost};
use tapstone_vcard::piv::{CardData, PivApplet, Recipe};
use tempfile::TempDir;

use super::{Ca, Leaf, spki};

/// What a test does to an answer before the door gets it. The commands come as they were sent.
type Edit = Box<dyn FnMut(&CommandApdu, &mut Vec<u8>) -> Option<CardLost>>;

/// A card.
pub(crate) struct Plastic {
    card: tapstone_vcard::VirtualCard,
    edit: Option<Edit>,
    pub(crate) commands: Vec<CommandApdu>,
}

impl Plastic {
    /// The card of a folder.
    pub(crate) fn of(folder: &Path) -> Self {
        let card_data = CardData::open(folder).unwrap();
        let card = tapstone_vcard::VirtualCard::new();
        let card = card.with_default("piv", Box::new(PivApplet::new(card_data)));
        Self { card, edit: None, commands: Vec::new() }
    }

    /// The same, with its answers changed.
    pub(crate) fn editing(
        mut self,
        edit: impl FnMut(&CommandApdu, &mut Vec<u8>) -> Option<CardLost> + 'static,
    ) -> Self {
        self.edit = Some(Box::new(edit));
        self
    }

    /// How many commands had this INS.
    pub(crate) fn count(&self, ins: u8) -> usize {
        self.commands.iter().filter(|command| command.ins == ins).count()
    }
}

impl CardConnection for Plastic {
    fn transmit(&mut self, command: &[u8], response: &mut Vec<u8>) -> Result<(), CardLost> {
        let parsed = CommandApdu::parse(command).expect("the door sends commands").0;
        let answer = self.card.transmit(command).expect("this card is never mute");
        response.extend(answer.response);
        let lost = self.edit.as_mut().and_then(|edit| edit(&parsed, response));
        self.commands.push(parsed);
        lost.map_or(Ok(()), Err)
    }
}

/// A generated card with its own CA; one for all tests, because RSA keys take a while. Made anew by
/// each run, in the place that Cargo has for what tests leave behind: for as long as it lasts, no
/// other run has that place.
pub(crate) fn generated() -> &'static Path {
    static CARD: OnceLock<(PathBuf, File)> = OnceLock::new();
    let (folder, _) = CARD.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("door");
        let lock = File::create(place.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        if place.exists() {
            fs::remove_dir_all(&place).unwrap();
        }
        let folder = place.join("card");
        CardData::open_or_generate(&folder, &Recipe::default()).unwrap();
        (folder, lock)
    });
    folder
}

/// A folder of files that becomes a card: objects of the generated card, with a certificate of the
/// test's own.
pub(crate) struct Files {
    folder: TempDir,
    pub(crate) key: SigningKey,
}

impl Files {
    /// Without a certificate for card authentication yet.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["chuid.bin", "discovery.bin", "ccc.bin"] {
            fs::copy(generated().join(name), folder.path().join(name)).unwrap();
        }
        let key = SigningKey::random(&mut OsRng);
        let files = Self { folder, key };
        files.put_key(&files.key);
        files
    }

    /// A card with this certificate.
    pub(crate) fn with(ca: &Ca, leaf: &Leaf) -> Self {
        let files = Self::new();
        files.issue(ca, leaf);
        files
    }

    /// A certificate for the card's key.
    pub(crate) fn issue(&self, ca: &Ca, leaf: &Leaf) {
        self.put("card_authentication_9e.der", &ca.leaf(spki(&self.key), leaf));
    }

    pub(crate) fn put_key(&self, key: &SigningKey) {
        self.put("card_authentication_9e.p8", key.to_pkcs8_der().unwrap().as_bytes());
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path().join(name), bytes).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn card(&self) -> Plastic {
        Plastic::of(self.path())
    }
}

impl Leaf {
    /// With the identifiers of the generated card's CHUID.
    pub(crate) fn of_card() -> Self {
        let chuid = fs::read(generated().join("chuid.bin")).unwrap();
        // FASC-N: 30 19 and 25 bytes; GUID: 34 10 and 16 bytes.
        let fasc_n = chuid[2..27].to_vec();
        let uuid = chuid[29..45].try_into().unwrap();
        Self { fasc_n: Some(fasc_n), uuid: Some(uuid), ..Self::default() }
    }
}
