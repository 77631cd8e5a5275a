//! Commands to a card as tools take them: `opensc-tool --send-apdu 00:A4:04:00:…`.
//!
//! What VERIFY and its like carry is a PIN or a key (ISO/IEC 7816-4, 11.6). Which instructions do
//! is up to the card, so only the data of those that select and read stay.

use super::secret::HIDDEN;

/// SELECT, READ BINARY, GET RESPONSE and both GET DATA (ISO/IEC 7816-4, table 5).
const READING: &[u8] = &[0xa4, 0xb0, 0xc0, 0xca, 0xcb];

/// CLA, INS, P1 and P2, in digits.
const HEADER_DIGITS: usize = 8;
/// A command without data: its header and one byte for the length of the answer.
const SHORTEST: usize = 5;

/// A word without the data of the command in it. `None`: there is no command, or no secret in it.
///
/// After an option that sends commands all that is hexadecimal is one, elsewhere only what has the
/// length that its own bytes tell.
pub(super) fn without_data(option: &str, word: &str) -> Option<String> {
    let (name, value) = attached(word).unwrap_or((option, word));
    let bytes = bytes(value)?;
    if bytes.len() <= SHORTEST || (!sends(name) && !is_whole(&bytes)) {
        return None;
    }
    // Several commands in one word are not whole: after a harmless one a secret may follow.
    if is_plain(bytes[0]) && READING.contains(&bytes[1]) && is_whole(&bytes) {
        return None;
    }
    let digits = value.char_indices().filter(|(_, c)| c.is_ascii_hexdigit());
    let (last, _) = digits.take(HEADER_DIGITS).last()?;
    Some(format!("{}{HIDDEN}", &word[..word.len() - value.len() + last + 1]))
}

/// Of each word of a command line, whether it is a byte of what such a command carries, where each
/// byte is a word: `scd apdu 00 20 00 82 06 31 …` of gpg-connect-agent.
pub(super) fn data_in_bytes(words: &[impl AsRef<str>]) -> Vec<bool> {
    let is_byte =
        |word: &str| word.len() == 2 && word.bytes().all(|digit| digit.is_ascii_hexdigit());
    let mut is_data = Vec::with_capacity(words.len());
    for run in words.chunk_by(|one, next| is_byte(one.as_ref()) == is_byte(next.as_ref())) {
        let run: Vec<&str> = run.iter().map(AsRef::as_ref).collect();
        let has_secret = is_byte(run[0]) && without_data("--send-apdu", &run.concat()).is_some();
        is_data.extend((0..run.len()).map(|at| has_secret && at >= HEADER_DIGITS / 2));
    }
    is_data
}

/// In other classes the numbers mean something else (ISO/IEC 7816-4, 5.4.1; GlobalPlatform, 11.1.4).
const fn is_plain(class: u8) -> bool {
    class & 0x7C == 0
}

/// The option and the value of `--send-apdu=00A4…` and `-s00A4…`.
fn attached(word: &str) -> Option<(&str, &str)> {
    if word.starts_with("--") {
        return word.split_once('=');
    }
    let letter = word.strip_prefix('-')?.chars().next()?;
    Some(word.split_at(1 + letter.len_utf8()))
}

/// `-s`, `--send-apdu` as far as it is written out, and what else names an APDU.
fn sends(option: &str) -> bool {
    let is_short = |name: &str| name.len() > "--s".len() && "--send-apdu".starts_with(name);
    option == "-s" || is_short(option) || (option.starts_with('-') && option.contains("apdu"))
}

/// Digits in pairs, however they are set apart.
fn bytes(word: &str) -> Option<Vec<u8>> {
    let apart = |c: char| c.is_whitespace() || ":,;.\\".contains(c);
    let digits = word.chars().filter(|c| !apart(*c)).map(|c| c.to_digit(16));
    let digits: Vec<u32> = digits.collect::<Option<_>>()?;
    Some(
        digits
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit) as u8)
            .collect(),
    )
}

/// Whether this is one command with data (ISO/IEC 7816-3, 12.1.3: cases 3 and 4, short and
/// extended).
fn is_whole(bytes: &[u8]) -> bool {
    let length = |at: usize| bytes.get(at).map_or(0, |byte| usize::from(*byte));
    let rest = |head: usize, data: usize| bytes.len().checked_sub(head + data);
    let short = length(4) > 0 && matches!(rest(5, length(4)), Some(0 | 1));
    let extended = length(5) << 8 | length(6);
    short || (length(4) == 0 && extended > 0 && matches!(rest(7, extended), Some(0 | 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_carries_is_hidden() {
        for (option, word, hidden) in [
            ("--send-apdu", "0020008008313233343536FFFF", "00200080***"),
            ("-s", "00:20:00:80:08:31:32:33:34:35:36:FF:FF", "00:20:00:80***"),
            ("-s", "00 20 00 80 08 31 32 33 34 35 36 FF FF", "00 20 00 80***"),
            ("--send", "00200080043132", "00200080***"),
            ("x", "--send-apdu=00200080083132333435", "--send-apdu=00200080***"),
            ("x", "-s00200080083132333435", "-s00200080***"),
            ("--apdu", "80D8000010AABBCCDD", "80D80000***"),
            // A harmless command, and VERIFY after it.
            ("-s", "00A40000023F00,00200080083132", "00A40000***"),
            ("-s", "0CB0000008313233", "0CB00000***"),
            // Without an option that says so: its length fits.
            ("x", "0020008008313233343536FFFF", "00200080***"),
            ("x", "00200080000004313233340000", "00200080***"),
        ] {
            assert_eq!(without_data(option, word).as_deref(), Some(hidden), "{word}");
        }
    }

    #[test]
    fn what_selects_and_reads_stays() {
        for (option, word) in [
            ("--send-apdu", "00A4040009A00000030800001000"),
            ("-s", "00:CB:3F:FF:03:5C:01:7E:00"),
            ("-s", "0084000008"),
            ("-s", "00CA006E00"),
            ("-s", "2048"),
            ("--serial", "0123456789AB"),
            ("-c", "deadbeefcafe"),
            ("x", "opensc"),
        ] {
            assert_eq!(without_data(option, word), None, "{word}");
        }
    }
}
