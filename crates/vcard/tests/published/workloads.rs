//! The workloads of the JCOP study as commands to the benchmark applet, with programs and keys of
//! their own: the APDUs that `reference/jcop-cards.toml` describes, in that order.

use cbc::cipher::block_padding::Iso7816;
use cbc::cipher::{BlockEncryptMut, KeyIvInit};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rsa::traits::PrivateKeyParts;
use rsa::{Pkcs1v15Encrypt, RsaPrivateKey};
use sha1::{Digest, Sha1};
use tapstone_apdu::{CommandApdu, Expected};
use tapstone_measure::units::Nanos;
use tapstone_vcard::{BENCH_AID, VirtualCard};

const CHUNK: usize = 247;
const TDES: u8 = 1;
const RSA: u8 = 2;

/// The keys, on the card and here.
pub(crate) struct Keys {
    tdes: [u8; 16],
    rsa: RsaPrivateKey,
}

/// A workload under the name that the reference file gives it.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) commands: Vec<CommandApdu>,
}

/// What a walk through commands came to.
#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) total: Nanos,
    pub(crate) commands: u32,
    pub(crate) writes: u32,
    pub(crate) bytes_to_card: usize,
    pub(crate) bytes_from_card: usize,
    /// How much of the work of each name.
    pub(crate) work: std::collections::BTreeMap<&'static str, u32>,
    /// The data of all responses.
    pub(crate) data: Vec<u8>,
}

impl Keys {
    pub(crate) fn new() -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(2009);
        let rsa = RsaPrivateKey::new(&mut random, 2048).expect("2048 bits are enough");
        Self { tdes: *b"sixteen byte key", rsa }
    }

    /// Selects the applet and loads the keys.
    pub(crate) fn load(&self, card: &mut VirtualCard) {
        let select = CommandApdu::new(0, 0xA4, 4, 0).with_data(&BENCH_AID);
        let part =
            |key, part, bytes: &[u8]| CommandApdu::new(0x80, 0x30, key, part).with_data(bytes);
        let inverse = self.rsa.crt_coefficient().expect("a key of two primes has one");
        let [p, q] = self.rsa.primes() else { unreachable!("a key of two primes") };
        let [dp, dq] = [self.rsa.dp(), self.rsa.dq()].map(|d| d.expect("computed by new"));
        let mut commands = vec![select, part(TDES, 0, &self.tdes)];
        for (number, value) in [p, q, &inverse, dp, dq].into_iter().enumerate() {
            let bytes = value.to_bytes_be();
            let mut padded = vec![0; 128 - bytes.len()];
            padded.extend(bytes);
            commands.push(part(RSA, number as u8, &padded));
        }
        walk(card, &commands);
    }

    fn seal(&self, key: u8, plain: &[u8]) -> Vec<u8> {
        if key == TDES {
            let cipher = cbc::Encryptor::<des::TdesEde2>::new(&self.tdes.into(), &[0; 8].into());
            return cipher.encrypt_padded_vec_mut::<Iso7816>(plain);
        }
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let public = self.rsa.to_public_key();
        public.encrypt(&mut random, Pkcs1v15Encrypt, plain).expect("it fits the modulus")
    }
}

/// Sends the commands; each must succeed.
pub(crate) fn walk(card: &mut VirtualCard, commands: &[CommandApdu]) -> Walk {
    let mut walk = Walk::default();
    for command in commands {
        let bytes = command.encode();
        let answer = card.transmit(&bytes).expect("no fault was asked for");
        let (data, status) = answer.response.split_at(answer.response.len() - 2);
        assert_eq!(status, [0x90, 0x00], "{command:?}");
        walk.total += answer.modelled;
        walk.commands += 1;
        walk.writes += u32::from(command.ins == 0x24);
        walk.bytes_to_card += bytes.len();
        walk.bytes_from_card += answer.response.len();
        walk.data.extend(data);
        for work in answer.work {
            *walk.work.entry(work.name).or_default() += work.count;
        }
    }
    walk
}

/// All eleven.
pub(crate) fn workloads(keys: &Keys) -> Vec<Workload> {
    let version = CommandApdu::new(0x80, 0x12, 0, 0).expecting(Expected::SHORT);
    let mut post = post(&[0x5A; 490], 490);
    post.push(release(0));
    let blank = padded(&[1, 0, 4, 0], 270);
    let counting = padded(&counting(), 296);
    let program = |name, program: &[u8], sealed: usize, key: Option<u8>, output: usize| Workload {
        name,
        commands: execute(&image(keys, program, sealed, key), key, output),
    };
    let decrypt = |name, key, length| Workload {
        name,
        commands: decrypt(&keys.seal(key, &plain(length)), key, length),
    };
    vec![
        Workload { name: "simple_apdu", commands: vec![version] },
        Workload { name: "post_buffer", commands: post },
        decrypt("devchip_decrypt_3des", TDES, 22),
        decrypt("devchip_decrypt_3des_long", TDES, 119),
        decrypt("devchip_decrypt_rsa_long", RSA, 119),
        program("blank_sec", &blank, 0, None, 0),
        program("blank_bound_secpack_3des", &blank, 50, Some(TDES), 0),
        program("blank_bound_secpack_rsa", &blank, 50, Some(RSA), 0),
        program("vm_perf", &counting, 0, None, 480),
        program("vm_perf_bound_3des", &counting, 39, Some(TDES), 480),
        program("vm_perf_bound_rsa", &counting, 39, Some(RSA), 480),
    ]
}

/// What the decryptions bring to light.
pub(crate) fn plain(length: usize) -> Vec<u8> {
    (0..length).map(|place| place as u8).collect()
}

/// Runs 984 instructions and puts out 480 bytes: eleven pairs that do nothing, then 120 turns of
/// eight instructions that put the counter out twice, from 120 down to 1.
fn counting() -> Vec<u8> {
    let mut code = [1, 0, 4].repeat(11);
    code.extend([1, 120]);
    let top = code.len() as u8;
    code.extend([3, 0x31, 3, 0x31, 1, 1, 0x11, 3, 0x21, 0, top, 0]);
    code
}

fn padded(code: &[u8], length: usize) -> Vec<u8> {
    let mut program = code.to_vec();
    program.resize(length, 0);
    program
}

/// Header, sealed part, clear part.
fn image(keys: &Keys, program: &[u8], sealed: usize, key: Option<u8>) -> Vec<u8> {
    let body = [&Sha1::digest(program)[..], program].concat();
    let (secret, clear) = body.split_at(sealed);
    let sealed =
        key.map_or_else(Vec::new, |key| keys.seal(key, &[secret, &Sha1::digest(secret)].concat()));
    let lengths = [sealed.len(), clear.len()].map(|length| (length as u16).to_be_bytes());
    [b"TP", &lengths.concat()[..], &sealed, clear].concat()
}

fn decrypt(sealed: &[u8], key: u8, length: usize) -> Vec<CommandApdu> {
    let mut commands = post(sealed, sealed.len());
    commands.push(CommandApdu::new(0x80, 0x40, 0, key).expecting(Expected::SHORT));
    commands.push(release(0));
    commands.extend(reads(1, length));
    commands.push(release(1));
    commands
}

fn execute(image: &[u8], key: Option<u8>, output: usize) -> Vec<CommandApdu> {
    let mut commands = post(image, image.len().max(output));
    for (ins, p1, p2) in [(0x50, 0, key.unwrap_or(0)), (0x51, 0, 0), (0x52, 0, 0)] {
        commands.push(CommandApdu::new(0x80, ins, p1, p2).expecting(Expected::SHORT));
    }
    commands.extend(reads(0, output));
    commands.push(release(0));
    commands
}

fn post(bytes: &[u8], length: usize) -> Vec<CommandApdu> {
    let [high, low] = (length as u16).to_be_bytes();
    let mut commands = vec![CommandApdu::new(0x80, 0x20, high, low).expecting(Expected::SHORT)];
    for (chunk, bytes) in bytes.chunks(CHUNK).enumerate() {
        commands.push(CommandApdu::new(0x80, 0x24, 0, chunk as u8).with_data(bytes));
    }
    commands
}

/// One READ at least.
fn reads(id: u8, length: usize) -> impl Iterator<Item = CommandApdu> {
    let chunks = length.div_ceil(CHUNK).max(1) as u8;
    (0..chunks).map(move |chunk| CommandApdu::new(0x80, 0x23, id, chunk).expecting(Expected::SHORT))
}

fn release(id: u8) -> CommandApdu {
    CommandApdu::new(0x80, 0x21, id, 0)
}
