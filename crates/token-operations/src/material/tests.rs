//! Every operation of the catalogue, against a token in software: right results are right, and
//! one flipped bit makes them wrong.

mod soft_token;

use std::num::NonZeroUsize;
use std::time::Duration;

use self::soft_token::{SoftToken, WORKER};
use super::*;
use crate::catalogue::{Catalogue, KeySpec, Shape, Variant};

const SEED: u64 = 20_260_101;

/// More operations than inputs, so that the ring comes round.
const RING: usize = 2;
const OPERATIONS: u64 = 3;

/// One where each is some million hashes: the parameter sets for short signatures.
fn operations(variant: &Variant) -> u64 {
    let slow = variant.name.starts_with("slh-dsa-") && variant.name.contains("s.");
    if slow { 1 } else { OPERATIONS }
}

fn variant(name: &str) -> Variant {
    Catalogue::builtin().select(name).unwrap().remove(0)
}

/// A verifier, and results that are right.
fn run(variant: &Variant) -> (Verifier, Vec<Output>) {
    let token = SoftToken::for_variant(variant);
    let key = token.key_material(variant.key);
    let inputs = Inputs::prepare(variant, &key, SEED, RING).unwrap();
    let output = |operation| {
        let bytes = token.run(variant, operation, inputs.for_token.input(operation));
        Output { worker: WORKER, operation, iv: None, bytes }
    };
    let outputs = (0..operations(variant)).map(output).collect();
    (Verifier::new(variant, &key, inputs.for_verifier).unwrap(), outputs)
}

/// Checks all operations whose names begin so.
fn check_family(stems: &[&str]) {
    let variants = Catalogue::builtin().variants();
    let family: Vec<_> =
        variants.iter().filter(|v| stems.iter().any(|stem| v.name.starts_with(stem))).collect();
    assert!(!family.is_empty(), "{stems:?}");
    for variant in family {
        check_variant(variant);
    }
}

fn check_variant(variant: &Variant) {
    let name = &variant.name;
    let (verifier, outputs) = run(variant);
    for output in &outputs {
        match variant.shape {
            Shape::OpenSession | Shape::Login => {
                assert_eq!(verifier.check(output), Verdict::NotPossible, "{name}");
                continue;
            }
            Shape::Encapsulate => {}
            _ if variant.output_capacity_bytes() > 0 => {
                assert!(output.bytes.len() <= variant.output_capacity_bytes(), "{name}");
            }
            _ => {}
        }
        assert_eq!(verifier.check(output), Verdict::Right, "{name}");
        for broken in broken(variant, output) {
            assert_eq!(verifier.check(&broken), Verdict::Wrong, "{name}");
        }
    }
}

/// The result with one bit flipped at either end and in the middle, and one byte short.
fn broken(variant: &Variant, output: &Output) -> Vec<Output> {
    let length = output.bytes.len();
    let flipped = |place: usize| {
        let mut output = output.clone();
        output.bytes[place] ^= 0x01;
        output
    };
    let mut short = output.clone();
    short.bytes.pop();
    // A flipped bit of a random number, or of most public keys, is as good as the bit was.
    let any_form = match variant.shape {
        Shape::Random | Shape::GenerateKey => true,
        Shape::GenerateKeyPair => !matches!(variant.key, KeySpec::Rsa { .. } | KeySpec::Ec { .. }),
        _ => false,
    };
    match (any_form, variant.shape) {
        (true, _) => vec![short],
        // Only the last byte of a modulus shows; a point is off its curve.
        (_, Shape::GenerateKeyPair) => vec![short, flipped(length - 1)],
        _ => vec![short, flipped(0), flipped(length / 2), flipped(length - 1)],
    }
}

#[test]
fn rsa_1024() {
    check_family(&["rsa1024."]);
}

#[test]
fn rsa_2048() {
    check_family(&["rsa2048."]);
}

#[test]
fn rsa_3072_and_4096() {
    check_family(&["rsa3072.sign", "rsa4096.decrypt.oaep", "rsa4096.generate"]);
}

#[test]
fn elliptic_curves() {
    check_family(&["ecdsa-", "ecdh-", "ec-", "ed25519."]);
}

#[test]
fn symmetric_ciphers() {
    check_family(&["aes", "3des"]);
}

#[test]
fn authentication_and_digests() {
    check_family(&["hmac-", "sha"]);
}

#[test]
fn post_quantum() {
    check_family(&["ml-dsa-", "ml-kem-"]);
}

#[test]
fn slh_dsa_over_sha2() {
    check_family(&["slh-dsa-sha2-"]);
}

#[test]
fn slh_dsa_over_shake() {
    check_family(&["slh-dsa-shake-"]);
}

#[test]
fn the_token_itself() {
    check_family(&["random", "find", "session", "login"]);
}

#[test]
fn a_seed_settles_the_inputs() {
    for name in ["rsa2048.sign", "sha256.digest", "ecdsa-p256.sign", "aes256-gcm.encrypt"] {
        let variant = variant(name);
        let ring =
            |seed| Inputs::prepare(&variant, &KeyMaterial::None, seed, 16).unwrap().for_token.ring;
        assert_eq!(ring(1), ring(1), "{name}");
        assert_ne!(ring(1), ring(2), "{name}");
        let mut messages: Vec<_> = ring(1).into_iter().map(|input| input.message).collect();
        messages.sort();
        messages.dedup();
        assert_eq!(messages.len(), 16, "{name}");
    }
    let token = SoftToken::for_variant(&variant("rsa2048.decrypt.oaep"));
    let key = token.key_material(KeySpec::Rsa { bits: 2048 });
    for name in ["rsa2048.decrypt", "rsa2048.decrypt.oaep"] {
        let ring = || Inputs::prepare(&variant(name), &key, 7, 3).unwrap().for_token;
        assert_eq!(ring(), ring(), "padding comes from the seed too");
    }
}

#[test]
fn a_ring_is_bounded_but_never_a_single_message() {
    let entries = |bytes, asked| {
        let variant = variant("sha256.digest").with_message_bytes(bytes).unwrap();
        Inputs::prepare(&variant, &KeyMaterial::None, 1, asked).unwrap().for_token.ring.len()
    };
    assert_eq!(entries(1024, 256), 256);
    assert_eq!(entries(1 << 20, 256), 4);
    assert_eq!(entries(8 << 20, 256), 2);
    let objects = Inputs::prepare(&variant("ml-kem-512.encapsulate"), &KeyMaterial::None, 1, 256);
    assert_eq!(objects.unwrap().for_token.ring.len(), 4);
}

#[test]
fn what_goes_to_the_worker_has_no_plain_text() {
    for name in ["rsa2048.decrypt", "aes256-gcm.decrypt", "ecdh-p256.derive", "aes128.unwrap"] {
        let variant = variant(name);
        let key = SoftToken::for_variant(&variant).key_material(variant.key);
        let inputs = Inputs::prepare(&variant, &key, SEED, RING).unwrap();
        let wire = postcard::to_stdvec(&inputs.for_token).unwrap();
        assert_eq!(postcard::from_bytes::<ForToken>(&wire).unwrap(), inputs.for_token);
        for secret in &inputs.for_verifier.expected {
            let secret = secret.expose();
            assert!(!wire.windows(secret.len()).any(|window| window == secret), "{name}");
        }
    }
}

#[test]
fn an_unknown_key_is_no_error_where_inputs_do_not_need_it() {
    for name in ["rsa2048.sign", "aes128-cbc.encrypt", "aes256-gcm.encrypt", "hmac-sha256.sign"] {
        let variant = variant(name);
        let inputs = Inputs::prepare(&variant, &KeyMaterial::None, SEED, RING).unwrap();
        let verifier = Verifier::new(&variant, &KeyMaterial::None, inputs.for_verifier).unwrap();
        let output = Output { worker: 0, operation: 0, iv: None, bytes: vec![1; 32] };
        assert_eq!(verifier.check(&output), Verdict::NotPossible, "{name}");
    }
    let error = Inputs::prepare(&variant("rsa2048.decrypt"), &KeyMaterial::None, 1, 1);
    insta::assert_snapshot!(error.unwrap_err());
}

#[test]
fn a_key_of_another_kind_is_refused() {
    let wrong = KeyMaterial::rsa(&[0x80; 128], &[1, 0, 1]);
    let variant = variant("rsa2048.decrypt");
    let error = Inputs::prepare(&variant, &wrong, 1, 1).unwrap_err();
    insta::assert_snapshot!(error);
}

#[test]
fn a_value_that_could_not_be_read_is_not_wrong() {
    for name in ["ecdh-p256.derive", "aes128.unwrap", "aes128.generate", "ec-p256.generate"] {
        let variant = variant(name);
        let (verifier, mut outputs) = run(&variant);
        outputs[0].bytes.clear();
        assert_eq!(verifier.check(&outputs[0]), Verdict::NotPossible, "{name}");
    }
    let (verifier, mut outputs) = run(&variant("ml-kem-512.encapsulate"));
    outputs[0].bytes.truncate(768);
    assert_eq!(verifier.check(&outputs[0]), Verdict::NotPossible);
}

#[test]
fn an_iv_that_the_token_chose_is_the_one_used() {
    let (verifier, mut outputs) = run(&variant("aes128-gcm.encrypt"));
    let used = gcm_iv(WORKER, outputs[1].operation);
    outputs[1].operation += RING as u64;
    assert_eq!(verifier.check(&outputs[1]), Verdict::Wrong, "another IV than the number says");
    outputs[1].iv = Some(used.to_vec());
    assert_eq!(verifier.check(&outputs[1]), Verdict::Right);
}

#[test]
fn a_key_that_the_token_made_can_be_the_one_wrapped() {
    let variant = variant("aes256.wrap");
    let token = SoftToken::for_variant(&variant);
    let key = token.key_material(variant.key);
    let made = Input { message: vec![3; 32], iv: Vec::new() };
    let bytes = token.run(&variant, 0, &made);
    let expected = ForVerifier::all_expect(made.message.into());
    let verifier = Verifier::new(&variant, &key, expected).unwrap();
    let output = Output { worker: 0, operation: 77, iv: None, bytes };
    assert_eq!(verifier.check(&output), Verdict::Right);
}

fn effort(at_most: Option<Duration>) -> Effort {
    Effort { at_most, threads: NonZeroUsize::new(2).unwrap(), seed: SEED }
}

#[test]
fn all_results_are_checked_and_the_wrong_ones_counted() {
    let (verifier, right) = run(&variant("ecdsa-p256.sign"));
    let mut outputs: Vec<Output> = Vec::new();
    for turn in 0..100 {
        let mut output = right[turn % RING].clone();
        output.operation = turn as u64;
        outputs.push(output);
    }
    outputs[40].bytes[9] ^= 4;
    outputs[70].bytes.clear();
    let found = verify_all(&verifier, &outputs, effort(None));
    assert_eq!((found.eligible, found.checked, found.wrong), (100, 100, 2));
    assert_eq!(found.by, By::Software);
    assert_eq!(found.first_wrong, Some(OperationId { worker: WORKER, operation: 40 }));
}

#[test]
fn repeated_random_numbers_are_wrong() {
    let (verifier, mut outputs) = run(&variant("random"));
    outputs.push(Output { operation: 9, ..outputs[0].clone() });
    let found = verify_all(&verifier, &outputs, effort(None));
    assert_eq!((found.checked, found.wrong), (4, 1));
    // A single byte repeats honestly.
    let byte = variant("random").with_message_bytes(1).unwrap();
    let inputs = Inputs::prepare(&byte, &KeyMaterial::None, SEED, RING).unwrap();
    let verifier = Verifier::new(&byte, &KeyMaterial::None, inputs.for_verifier).unwrap();
    let output = Output { worker: 0, operation: 0, iv: None, bytes: vec![7] };
    assert_eq!(verify_all(&verifier, &vec![output; 5], effort(None)).wrong, 0);
}

#[test]
fn a_time_ends_the_checking() {
    let (verifier, outputs) = run(&variant("sha256.digest"));
    let past = verify_all(&verifier, &outputs, effort(Some(Duration::ZERO)));
    assert_eq!((past.eligible, past.checked, past.by), (3, 0, By::None));
    let ample = Some(Duration::from_secs(60));
    assert_eq!(verify_all(&verifier, &outputs, effort(ample)).checked, 3);
}

/// RFC 6979, appendix A.2.5: P-256, SHA-256, "sample".
#[test]
fn ecdsa_as_rfc_6979_has_it() {
    let variant = variant("ecdsa-p256.sign.sha256");
    let key = KeyMaterial::public(
        variant.key,
        &bytes(
            "04 60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6
             7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299",
        ),
    );
    let signature = bytes(
        "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716
         F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
    );
    let digest = bytes("AF2BDBE1AA9B6EC1E2ADE1D694F41FC71A831D0268E9891562113D8A62ADD1BF");
    assert_known(&variant, &key.unwrap(), &digest, signature);
}

/// RFC 8032, section 7.1, test 2.
#[test]
fn ed25519_as_rfc_8032_has_it() {
    let variant = variant("ed25519.sign");
    let key = bytes("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
    let signature = bytes(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da
         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    );
    let key = KeyMaterial::public(variant.key, &key).unwrap();
    assert_known(&variant, &key, &[0x72], signature);
}

fn assert_known(variant: &Variant, key: &KeyMaterial, signed: &[u8], signature: Vec<u8>) {
    let expected = ForVerifier { expected: vec![signed.into()] };
    let verifier = Verifier::new(variant, key, expected).unwrap();
    let mut output = Output { worker: 0, operation: 0, iv: None, bytes: signature };
    assert_eq!(verifier.check(&output), Verdict::Right);
    output.bytes[20] ^= 0x80;
    assert_eq!(verifier.check(&output), Verdict::Wrong);
}

fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text.split_whitespace().collect::<String>()).unwrap()
}
