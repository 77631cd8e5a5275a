//! `tapstone vcard piv` in a real pcscd, used by programs that know nothing of it: OpenSC,
//! yubico-piv-tool and OpenSSH. What the card signs, OpenSSL verifies.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

#[path = "../fixtures/mod.rs"]
#[allow(dead_code, reason = "each of these programs needs a part of it")]
mod fixtures;
#[path = "../pcscd/mod.rs"]
#[allow(dead_code, reason = "each of these programs needs a part of it")]
mod pcscd;
mod session;
mod timing;

use self::session::Session;

/// What OpenSSL and the card are given.
const MESSAGE: &[u8] = b"signed on a virtual card\n";

#[test]
fn opensc_takes_it_for_a_piv_card() {
    let Some(session) = Session::new() else { return };
    let Some(name) = session.opensc("opensc-tool", "--name") else { return };
    assert_eq!(name, "Personal Identity Verification Card\n");
    // The historical bytes name the PIV application: then OpenSC works around nothing.
    let atr = session.opensc("opensc-tool", "--atr").unwrap();
    assert!(atr.contains(":80:f9:a0:00:00:03:08:00:00:10:00:"), "{atr}");
    let serial = session.opensc("piv-tool", "--serial").unwrap();
    let chuid = std::fs::read(session.file("card/chuid.bin")).unwrap();
    let guid: String = chuid[29..45].iter().map(|byte| format!("{byte:02X} ")).collect();
    assert!(serial.contains(guid.trim_end()), "{serial}");
}

#[test]
fn pkcs11_tool_sees_all_keys_and_certificates() {
    let Some(session) = Session::new() else { return };
    let Some(objects) = session.pkcs11("--list-objects --login") else { return };
    for (kind, count) in [
        ("Private Key Object; RSA", 2),
        ("Private Key Object; EC", 2),
        ("Certificate Object; type = X.509 cert", 4),
        ("'Printed Information'", 2),
    ] {
        assert_eq!(objects.matches(kind).count(), count, "{kind}: {objects}");
    }
}

#[test]
fn pkcs11_tool_finds_no_error() {
    let Some(session) = Session::new() else { return };
    let Some(report) = session.pkcs11("--test --login") else { return };
    assert!(report.ends_with("No errors\n"), "{report}");
    assert!(report.contains("testing key 0 (PIV AUTH key)"), "{report}");
    assert!(report.contains("SHA256-RSA-PKCS: OK"), "{report}");
}

#[test]
fn what_pkcs11_tool_signs_openssl_verifies() {
    let Some(session) = Session::new() else { return };
    let message = session.put("message", MESSAGE);
    // PIV authentication, and digital signature, for which the PIN is asked each time.
    for id in ["01", "02"] {
        let sign = format!("--login --sign --id {id} --mechanism SHA256-RSA-PKCS");
        let signature = session.file("signature");
        let public = session.file("public.pem");
        let files = format!("--input-file {message} --output-file {}", signature.display());
        let Some(_) = session.pkcs11(&format!("{sign} {files}")) else { return };
        session.public_key(id, &public);
        let signature = signature.display();
        let public = public.display();
        let verify = format!("openssl dgst -sha256 -verify {public} -signature {signature}");
        assert_eq!(session.run(&format!("{verify} {message}")).unwrap(), "Verified OK\n");
        let other = session.put("other", b"something else");
        assert!(session.is_refused(&format!("{verify} {other}")));
    }
    // Card authentication with its curve key.
    let hash = session.file("hash").display().to_string();
    session.run(&format!("openssl dgst -sha256 -binary -out {hash} {message}")).unwrap();
    let signature = session.file("signature");
    let public = session.file("public.pem");
    let files = format!("--input-file {hash} --output-file {}", signature.display());
    let sign = "--login --sign --id 04 --mechanism ECDSA --signature-format openssl";
    session.pkcs11(&format!("{sign} {files}")).unwrap();
    session.public_key("04", &public);
    let signature = signature.display();
    let public = public.display();
    let verify = format!("openssl dgst -sha256 -verify {public} -signature {signature} {message}");
    assert_eq!(session.run(&verify).unwrap(), "Verified OK\n");
}

#[test]
fn pkcs11_tool_and_openssl_agree_on_a_secret() {
    let Some(session) = Session::new() else { return };
    let path = |name: &str| session.file(name).display().to_string();
    let [mine, point, ours, theirs] = ["mine.pem", "mine.der", "ours", "theirs"].map(path);
    let new = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256";
    session.run(&format!("{new} -out {mine}")).unwrap();
    session.run(&format!("openssl pkey -in {mine} -pubout -outform DER -out {point}")).unwrap();
    let derive = "--login --derive --id 03 --mechanism ECDH1-COFACTOR-DERIVE";
    let files = format!("--input-file {point} --output-file {theirs}");
    let Some(_) = session.pkcs11(&format!("{derive} {files}")) else { return };
    let public = session.file("public.pem");
    session.public_key("03", &public);
    let public = public.display();
    let derive = format!("openssl pkeyutl -derive -inkey {mine} -peerkey {public} -out {ours}");
    session.run(&derive).unwrap();
    assert_eq!(std::fs::read(ours).unwrap(), std::fs::read(theirs).unwrap());
}

#[test]
fn yubico_piv_tool_accepts_the_card_and_its_keys() {
    let Some(session) = Session::new() else { return };
    let Some(status) = session.yubico("--action status") else { return };
    for said in ["Version:\t5.4.3", "Slot 9a:", "Slot 9c:", "Slot 9d:", "Slot 9e:"] {
        assert!(status.contains(said), "{said}: {status}");
    }
    assert_eq!(status.matches("RSA2048").count(), 2, "{status}");
    assert_eq!(status.matches("ECCP256").count(), 2, "{status}");
    let certificate = session.file("slot.pem").display().to_string();
    for (slot, test, said) in [
        ("9a", "test-signature", "Successful RSA verification."),
        ("9c", "test-signature", "Successful RSA verification."),
        ("9d", "test-decipher", "Successfully performed ECDH exchange with card."),
        ("9e", "test-signature", "Successful ECDSA verification."),
    ] {
        let read = format!("--action read-certificate --slot {slot} --output {certificate}");
        session.yubico(&read).unwrap();
        let verify = format!("--action verify-pin --pin {} --action {test}", Session::PIN);
        let told = session.yubico(&format!("{verify} --slot {slot} --input {certificate}"));
        assert!(told.as_ref().is_some_and(|told| told.contains(said)), "{slot}: {told:?}");
    }
}

#[test]
fn yubico_piv_tool_counts_tries_and_changes_the_pin() {
    let Some(session) = Session::new() else { return };
    let Some(status) = session.yubico("--action status") else { return };
    assert!(status.contains("PIN tries left:\t3"), "{status}");
    let tool = "yubico-piv-tool --reader Virtual";
    assert!(session.is_refused(&format!("{tool} --action verify-pin --pin 999999")));
    let status = session.yubico("--action status").unwrap();
    assert!(status.contains("PIN tries left:\t2"), "{status}");
    session.yubico("--action change-pin --pin 123456 --new-pin 654321").unwrap();
    session.yubico("--action verify-pin --pin 654321").unwrap();
    session.yubico("--action unblock-pin --pin 12345678 --new-pin 123456").unwrap();
    session.yubico("--action verify-pin --pin 123456").unwrap();
}

#[test]
fn ssh_keygen_reads_the_keys_of_the_certificates() {
    let Some(session) = Session::new() else { return };
    let Some(module) = session.module() else { return };
    let Some(keys) = session.run(&format!("ssh-keygen -D {module}")) else { return };
    for (key, label) in [
        ("piv_authentication_9a", "PIV AUTH pubkey"),
        ("digital_signature_9c", "SIGN pubkey"),
        ("key_management_9d", "KEY MAN pubkey"),
        ("card_authentication_9e", "CARD AUTH pubkey"),
    ] {
        let pem = session.file("public.pem").display().to_string();
        let p8 = session.file(&format!("card/{key}.p8")).display().to_string();
        session.run(&format!("openssl pkey -inform DER -in {p8} -pubout -out {pem}")).unwrap();
        let expected = session.run(&format!("ssh-keygen -i -m PKCS8 -f {pem}")).unwrap();
        let line = format!("{} {label}", expected.trim_end());
        assert!(keys.lines().any(|key| key == line), "{line}: {keys}");
    }
}
