//! `--size`: one case for each length that the operation can take.

use crate::support::{Hsm, assert_all_verified};

#[test]
fn each_size_is_a_row() {
    let Some(hsm) = Hsm::new() else { return };
    for operation in ["aes256-gcm.encrypt", "sha256.digest", "rsa2048.sign.pkcs1-sha256"] {
        let run = hsm.tapstone().args("--size 16,64,1k --count 20 --op").arg(operation);
        let rows = run.run().exits(0).record().results;
        let sizes: Vec<u64> = rows.iter().map(|row| row.message_bytes.unwrap()).collect();
        assert_eq!(sizes, [16, 64, 1024]);
        rows.iter().for_each(assert_all_verified);
    }
}

#[test]
fn large_messages_arrive_whole() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.tapstone().args("--op aes128-cbc.decrypt --op aes256-gcm.decrypt");
    let rows = run.args("--size 1m --count 4").run().exits(0).record().results;
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row.message_bytes, Some(1 << 20));
        assert_all_verified(&row);
    }
}

#[test]
fn impossible_sizes_are_refused_before_anything_is_measured() {
    let Some(hsm) = Hsm::new() else { return };
    let impossible = [
        (
            "--op aes128-cbc.encrypt --size 16,17",
            "error: aes128-cbc.encrypt: 17 bytes are not a multiple of its 16-byte block\n\
             hint: choose 32, or the padded variant aes128-cbc.encrypt.pad",
        ),
        (
            "--op sha256.digest --op rsa2048.sign --size 64",
            "error: rsa2048.sign: its message is always 32 bytes\n\
             hint: leave the size out; sizes are for symmetric ciphers, digests, random numbers, \
             and signatures that the token hashes",
        ),
        (
            "--op aes128-cbc.encrypt --size 0",
            "error: aes128-cbc.encrypt: a message of 0 bytes is impossible\n\
             hint: choose 1 to 67108864 bytes",
        ),
    ];
    for (arguments, words) in impossible {
        hsm.tapstone().args(arguments).args("--count 4").run().refuses(words);
    }
    let unreadable = hsm.tapstone().args("--op sha256.digest --size many --count 4").run().exits(2);
    assert!(unreadable.stderr.contains("write 16, 1k or 64k"), "{}", unreadable.stderr);
}
