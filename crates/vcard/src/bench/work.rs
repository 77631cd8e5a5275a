//! What the benchmark applet computes, by the names that timing profiles price. What a profile
//! does not price is part of something else, or is refused.

/// A turn of REPEAT, whatever it repeats: once for each set-up and each operation.
pub(crate) const LOOP: &str = "loop";
/// A byte written to transient memory by UNBIND and by REPEAT 0F.
pub(crate) const RAM_BYTE: &str = "ram.byte";
/// A byte written to persistent memory by PUT KEY PART and by REPEAT 10.
pub(crate) const EEPROM_BYTE: &str = "eeprom.byte";
/// One byte of random data.
pub(crate) const RANDOM_BYTE: &str = "random.byte";
/// A byte of DECRYPT's input: taken from its buffer, with room made for as much in another.
pub(crate) const DECRYPT_BYTE: &str = "decrypt.byte";
/// Two-key Triple DES set up with its key.
pub(crate) const TDES_INIT: &str = "3des.init";
/// 8 bytes under two-key Triple DES.
pub(crate) const TDES_BLOCK: &str = "3des.block";
/// AES set up with a key of 128 bits.
pub(crate) const AES128_INIT: &str = "aes128.init";
/// 16 bytes under AES-128.
pub(crate) const AES128_BLOCK: &str = "aes128.block";
/// AES set up with a key of 256 bits.
pub(crate) const AES256_INIT: &str = "aes256.init";
/// 16 bytes under AES-256.
pub(crate) const AES256_BLOCK: &str = "aes256.block";
/// The start of a SHA-1 digest.
pub(crate) const SHA1_INIT: &str = "sha1.init";
/// 64 bytes of SHA-1, with its padding (FIPS 180-4, 5.1.1).
pub(crate) const SHA1_BLOCK: &str = "sha1.block";
/// The start of a SHA-256 digest.
pub(crate) const SHA256_INIT: &str = "sha256.init";
/// 64 bytes of SHA-256, with its padding.
pub(crate) const SHA256_BLOCK: &str = "sha256.block";
/// RSA set up with a private key of 1024 bits.
pub(crate) const RSA1024_INIT: &str = "rsa1024.init";
/// An RSA operation with a private key of 1024 bits.
pub(crate) const RSA1024_PRIVATE: &str = "rsa1024.private";
/// RSA set up with a private key of 2048 bits.
pub(crate) const RSA2048_INIT: &str = "rsa2048.init";
/// An RSA operation with a private key of 2048 bits.
pub(crate) const RSA2048_PRIVATE: &str = "rsa2048.private";
/// ECDSA or ECDH set up with a P-256 private key.
pub(crate) const P256_INIT: &str = "p256.init";
/// An ECDSA signature on P-256.
pub(crate) const P256_SIGN: &str = "p256.sign";
/// A key agreement on P-256.
pub(crate) const P256_ECDH: &str = "p256.ecdh";
/// A key pair made on P-256.
pub(crate) const P256_KEYGEN: &str = "p256.keygen";
/// A byte of a program and its digest: checked and copied by LOAD.
pub(crate) const VM_LOAD_BYTE: &str = "vm.load.byte";
/// An instruction run by the machine.
pub(crate) const VM_INSTRUCTION: &str = "vm.instruction";
/// A byte put out by the machine.
pub(crate) const VM_OUTPUT_BYTE: &str = "vm.output.byte";

/// All names of work, as timing profiles may use them.
pub(crate) const NAMES: [&str; 26] = [
    LOOP,
    RAM_BYTE,
    EEPROM_BYTE,
    RANDOM_BYTE,
    DECRYPT_BYTE,
    TDES_INIT,
    TDES_BLOCK,
    AES128_INIT,
    AES128_BLOCK,
    AES256_INIT,
    AES256_BLOCK,
    SHA1_INIT,
    SHA1_BLOCK,
    SHA256_INIT,
    SHA256_BLOCK,
    RSA1024_INIT,
    RSA1024_PRIVATE,
    RSA2048_INIT,
    RSA2048_PRIVATE,
    P256_INIT,
    P256_SIGN,
    P256_ECDH,
    P256_KEYGEN,
    VM_LOAD_BYTE,
    VM_INSTRUCTION,
    VM_OUTPUT_BYTE,
];
