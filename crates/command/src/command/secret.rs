//! Command lines without what looks like a secret, for records and errors.
//!
//! Programs that take a PIN as an argument are why this exists: `pkcs11-tool --pin 1234` must not
//! leave a PIN in a record. What follows an option with such a name is replaced, and so are PINs
//! in PKCS#11 URIs (RFC 7512, `pin-value`), passwords as OpenSSL takes them (`pass:…`), what
//! follows `-p`, keys in hexadecimal after an option, and what commands to a card carry. It cannot
//! know every program: rather a harmless value too many is hidden.

use super::apdu;
use super::text::scan;

/// What stands where a secret stood.
pub(super) const HIDDEN: &str = "***";

/// Parts of names that hold where a secret is, or what it is like.
const ABOUT: &[&str] =
    &["file", "env", "fd", "path", "source", "prompt", "stdin", "policy", "retries", "length"];

/// Short options of a PIN or a password: of pkcs11-tool, yubico-piv-tool, ssh-keygen.
const SHORT: &[char] = &['p', 'P', 'N'];

/// No PIN is shorter; numbers that are count something, or are a port.
const PIN_LENGTH: usize = 4;

/// Options with one dash that begin as if a password followed `-p` at once: of openssl, find and
/// compilers.
const WORDS: &[&str] = &[
    "-param_enc",
    "-param_out",
    "-paramfile",
    "-partial_chain",
    "-pass",
    "-passcert",
    "-passin",
    "-passout",
    "-passphrase",
    "-password",
    "-path",
    "-pedantic",
    "-peerform",
    "-peerkey",
    "-perm",
    "-pipe",
    "-pkeyopt",
    "-policy",
    "-port",
    "-prexit",
    "-prime",
    "-print",
    "-print0",
    "-print_certs",
    "-printf",
    "-propquery",
    "-provider",
    "-provider-path",
    "-proxy",
    "-prune",
    "-pthread",
    "-pubin",
    "-pubkey",
    "-pubout",
    "-purpose",
];

/// Beginnings of `--pin`, `--puk` and `--password` that getopt_long(3) takes for the whole, also as
/// the last part of `--so-pin`; and of `--so-pin` and `--new-pin` before that part.
const BEGINNINGS: &[&str] = &["p", "pa", "pas", "pi", "pu"];
const SHORTENED: &[&str] = &["--so", "--so-", "--new", "--new-"];

/// From so many digits of hexadecimal on, a value may be a key: 128 bits.
const KEY_DIGITS: usize = 32;

/// The words of a command line, secrets replaced by `***`.
#[must_use]
pub fn without_secrets(words: &[String]) -> Vec<String> {
    let mut last = "";
    let in_apdu = apdu::data_in_bytes(words);
    let hidden = words.iter().zip(in_apdu).map(|(word, in_apdu)| {
        let option = std::mem::replace(&mut last, word);
        if in_apdu {
            return HIDDEN.to_owned();
        }
        // A word with blanks is a command line itself: `sh -c '…'`.
        let inner = word.contains(char::is_whitespace) && is_shown(option, word);
        if inner { text_without_secrets(word) } else { hide(option, word) }
    });
    hidden.collect()
}

/// A command line as one text, secrets replaced by `***` and the rest as it was.
pub(super) fn text_without_secrets(text: &str) -> String {
    let (mut out, mut copied) = (String::new(), 0);
    let mut last = String::new();
    let words = scan(text).words;
    let raw: Vec<&str> = words.iter().map(|range| &text[range.clone()]).collect();
    let in_apdu = apdu::data_in_bytes(&raw);
    for ((range, raw), in_apdu) in words.iter().zip(raw).zip(in_apdu) {
        let word: String = raw.chars().filter(|c| !matches!(c, '\'' | '"')).collect();
        let quoted = raw.strip_prefix(['\'', '"']).and_then(|raw| raw.strip_suffix(['\'', '"']));
        let inner = quoted.filter(|raw| raw.contains(char::is_whitespace) && is_shown(&last, raw));
        let new = match inner {
            _ if in_apdu => HIDDEN.to_owned(),
            Some(inner) => raw.replace(inner, &text_without_secrets(inner)),
            None => match hide(&last, &word) {
                same if same == word => raw.to_owned(),
                hidden => hidden,
            },
        };
        out.push_str(&text[copied..range.start]);
        out.push_str(&new);
        copied = range.end;
        last = word;
    }
    out.push_str(&text[copied..]);
    out
}

/// Whether this word as a whole is no secret.
fn is_shown(option: &str, word: &str) -> bool {
    !asks_for_secret(option)
        && !follows_short(option, word)
        && apdu::without_data(option, word).is_none()
}

/// A word after another one, which may be an option that asks for a secret.
fn hide(option: &str, word: &str) -> String {
    let value = |value: &str| !value.is_empty() && !points_elsewhere(value);
    if asks_for_secret(option) && !word.starts_with('-') && value(word) {
        return HIDDEN.to_owned();
    }
    if let Some(hidden) = apdu::without_data(option, word) {
        return hidden;
    }
    if option.starts_with('-') && !option.contains('=') && looks_like_key(word) {
        return HIDDEN.to_owned();
    }
    if follows_short(option, word) {
        return HIDDEN.to_owned();
    }
    if let Some(hidden) = without_attached(word) {
        return hidden;
    }
    if let Some((place, _)) = word.match_indices("pin-value=").next() {
        let (before, secret) = word.split_at(place + "pin-value=".len());
        let end = secret.find(['&', ';', '?']).unwrap_or(secret.len());
        return format!("{before}{HIDDEN}{}", &secret[end..]);
    }
    match word.split_once(['=', ':']) {
        Some((name, secret)) if value(secret) && (is_secret(name) || looks_like_key(secret)) => {
            format!("{}{HIDDEN}", &word[..=name.len()])
        }
        _ => word.to_owned(),
    }
}

/// Whether the word after this one is a secret: `--pin`, but not `--pin=1234`.
fn asks_for_secret(option: &str) -> bool {
    option.starts_with('-') && !option.contains('=') && is_secret(option)
}

/// `-p hunter2`, and `-lp 1234` among other letters, where only a number is taken for a PIN:
/// `java -cp` names a folder.
fn follows_short(option: &str, word: &str) -> bool {
    let Some(letters) = option.strip_prefix('-').filter(|it| it.ends_with(SHORT)) else {
        return false;
    };
    let is_count = word.len() < PIN_LENGTH && word.bytes().all(|c| c.is_ascii_digit());
    match letters.len() {
        1 => !word.starts_with('-') && !is_count && !points_elsewhere(word),
        _ => !option.starts_with("--") && is_number(word),
    }
}

/// `-phunter2`, and `-lp1234` among other letters.
fn without_attached(word: &str) -> Option<String> {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let place = letters.find(SHORT)? + 1;
    let secret = &letters[place..];
    let alone = place == 1 && secret.len() >= PIN_LENGTH && !WORDS.contains(&word);
    (alone || is_number(secret)).then(|| format!("{}{HIDDEN}", &word[..=place]))
}

/// `--so-pin`, `--so-pi`, `PIN`, `userpin`; not `--pin-file`.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts = || name.split(|c: char| !c.is_ascii_alphanumeric());
    (parts().any(holds_secret) || is_shortened(&name)) && !parts().any(|part| ABOUT.contains(&part))
}

/// `--so-pi`, which getopt_long(3) completes.
fn is_shortened(name: &str) -> bool {
    let last = name.rsplit('-').next().unwrap_or_default();
    name.starts_with("--") && (BEGINNINGS.contains(&last) || SHORTENED.contains(&name))
}

/// Whether this part of a name tells of a secret: `pin`, `userpin`, `passphrase`.
fn holds_secret(part: &str) -> bool {
    let ends = ["pin", "password", "secret", "credential"].iter().any(|end| part.ends_with(end));
    ends || part.starts_with("pass") || ["puk", "pw", "pwd", "otp", "apikey"].contains(&part)
}

/// As OpenSSL and others name where a password is.
fn points_elsewhere(value: &str) -> bool {
    ["env:", "file:", "fd:", "stdin"].iter().any(|place| value.starts_with(place))
}

fn is_number(word: &str) -> bool {
    word.len() >= PIN_LENGTH && word.bytes().all(|c| c.is_ascii_digit())
}

fn looks_like_key(word: &str) -> bool {
    word.len() >= KEY_DIGITS && word.bytes().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden() {
        for (text, hidden) in [
            ("pkcs11-tool --login --pin 1234 -O", "pkcs11-tool --login --pin *** -O"),
            ("pkcs11-tool --pin=1234 --so-pin '12 34'", "pkcs11-tool --pin=*** --so-pin ***"),
            ("pkcs11-tool -p 123456 -O", "pkcs11-tool -p *** -O"),
            ("yubico-piv-tool -P123456 -a status", "yubico-piv-tool -P*** -a status"),
            ("openssl rsa -passin pass:secret -in k", "openssl rsa -passin *** -in k"),
            ("PIN=1234 ./sign --x", "PIN=*** ./sign --x"),
            (
                "p11tool --export 'pkcs11:token=a;pin-value=1234&x=y'",
                "p11tool --export pkcs11:token=a;pin-value=***&x=y",
            ),
            ("sh -c 'pkcs11-tool --pin 1234 -O'", "sh -c 'pkcs11-tool --pin *** -O'"),
            (
                "yubico-piv-tool -k 010203040506070801020304050607080102030405060708",
                "yubico-piv-tool -k ***",
            ),
            ("pkcs11-tool -p hunter2 -O", "pkcs11-tool -p *** -O"),
            ("pkcs11-tool -phunter2 -lOp1234", "pkcs11-tool -p*** -lOp***"),
            ("pkcs11-tool -lOp 123456", "pkcs11-tool -lOp ***"),
            ("yubico-piv-tool -Phunter2 -N 'a b c'", "yubico-piv-tool -P*** -N ***"),
            ("pkcs11-tool --pi 123456 --so hunter2", "pkcs11-tool --pi *** --so ***"),
            ("pkcs11-tool --pi=123456 --so-pi 'a b'", "pkcs11-tool --pi=*** --so-pi ***"),
            ("pkcs11-tool --new-p=hunter2 --pu hunter2", "pkcs11-tool --new-p=*** --pu ***"),
            (
                "opensc-tool -s 0084000008 -s 00200080083132",
                "opensc-tool -s 0084000008 -s 00200080***",
            ),
            (
                "gpg-connect-agent 'scd apdu 00 20 00 82 06 31 32 33 34 35 36' /bye",
                "gpg-connect-agent 'scd apdu 00 20 00 82 *** *** *** *** *** *** ***' /bye",
            ),
            ("scd apdu 00 A4 04 00 03 D2 76 00", "scd apdu 00 A4 04 00 03 D2 76 00"),
            (
                "sh -c 'opensc-tool --send-apdu \"00 20 00 80 04 31 32 33 34\"'",
                "sh -c 'opensc-tool --send-apdu 00 20 00 80***'",
            ),
        ] {
            assert_eq!(text_without_secrets(text), hidden);
        }
    }

    #[test]
    fn the_rest_stays_as_it_was() {
        for text in [
            "  sha256sum   'a  b' \"c\" ",
            "openssl dgst -sha256 -sign key.pem",
            "openssl rsa -passin env:PW -in k",
            "tapstone token --pin-file /run/pin --pin-env PIN",
            "ssh-keygen -D /usr/lib/opensc-pkcs11.so",
            "dd if=/dev/zero of=/dev/null bs=1M",
            "pkcs11-tool --login --pin --list-objects",
            "openssl rsa -pubin -pubout -passin env:PW -print -p",
            "java -cp classes Main --profile fast --perfetto x --operation C_Sign",
            "ssh -p 22 -P -v",
            "opensc-tool --send-apdu 00A4040009A00000030800001000 --reader 0",
        ] {
            assert_eq!(text_without_secrets(text), text);
        }
    }

    #[test]
    fn words_are_looked_at_one_by_one_and_inside() {
        let words = ["tapstone", "ab", "--", "tool --pin 1234", "tool --pin", "1234"];
        let words = without_secrets(&words.map(str::to_owned));
        assert_eq!(words[3..], ["tool --pin ***", "tool --pin", "1234"]);
        let words = without_secrets(&["x", "--new-pin", "12 34"].map(str::to_owned));
        assert_eq!(words, ["x", "--new-pin", "***"]);
        let apdu = ["opensc-tool", "-s", "00 20 00 80 04 31 32 33 34", "00:24:00:80:04:31:32"];
        let words = without_secrets(&apdu.map(str::to_owned));
        assert_eq!(words[2..], ["00 20 00 80***", "00:24:00:80:04:31:32"]);
    }
}
