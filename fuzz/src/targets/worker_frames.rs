//! Frames between a controller and its workers, either of which a module may have written into.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tapstone_card::protocol as card;
use tapstone_token::protocol as token;
use tapstone_worker::{receive, send};

use crate::FuzzTarget;
use crate::structure::Structure;

/// The first byte says whose frames they are. What is read is written again as it was, and a length
/// that lies costs no memory.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "worker-frames",
    reads: "frames of workers",
    structure: Structure::Bytes,
    longest: 4096,
    check,
};

fn check(input: &[u8]) {
    let Some((first, frames)) = input.split_first() else { return };
    match first % 4 {
        0 => are_written_again::<token::Order>(frames),
        1 => are_written_again::<token::Report>(frames),
        2 => are_written_again::<card::Order>(frames),
        _ => are_written_again::<card::Report>(frames),
    }
}

fn are_written_again<T: Serialize + DeserializeOwned>(mut frames: &[u8]) {
    while let Ok(Some(message)) = receive::<T>(&mut frames) {
        let written = frame_of(&message);
        let again = receive::<T>(&mut &written[..]).expect("what was written can be read");
        assert_eq!(again.map(|it| frame_of(&it)), Some(written));
    }
}

fn frame_of<T: Serialize>(message: &T) -> Vec<u8> {
    let mut frame = Vec::new();
    send(&mut frame, message).expect("what was read can be written");
    frame
}
