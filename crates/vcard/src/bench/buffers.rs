//! The buffers: four at most, in one memory of 1,280 bytes.

use tapstone_apdu::StatusWord;

/// The bytes that one READ or WRITE carries: a T=1 block of 254 bytes less 7.
pub(super) const CHUNK: usize = 247;

const MEMORY: usize = 1280;
const COUNT: usize = 4;

/// The memory and who has which part of it. A released buffer's bytes stay as they are, as in a
/// card's memory.
pub(super) struct Buffers {
    memory: Vec<u8>,
    places: [Option<BufferRange>; COUNT],
}

/// A buffer that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferId(usize);

#[derive(Clone, Copy)]
struct BufferRange {
    start: usize,
    length: usize,
}

impl BufferId {
    /// As commands and responses write it.
    pub(super) const fn number(self) -> u8 {
        self.0 as u8
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self { memory: vec![0; MEMORY], places: [None; COUNT] }
    }
}

impl Buffers {
    pub(super) fn find(&self, number: u8) -> Result<BufferId, StatusWord> {
        let place = usize::from(number);
        match self.places.get(place) {
            Some(Some(_)) => Ok(BufferId(place)),
            _ => Err(StatusWord::NOT_FOUND),
        }
    }

    /// Takes the lowest free id and the first gap that is long enough.
    pub(super) fn allocate(&mut self, length: usize) -> Result<BufferId, StatusWord> {
        let free = self.places.iter().position(Option::is_none).ok_or(StatusWord::NO_ROOM)?;
        let start = self.first_gap(length).ok_or(StatusWord::NO_ROOM)?;
        self.places[free] = Some(BufferRange { start, length });
        Ok(BufferId(free))
    }

    pub(super) fn release(&mut self, id: BufferId) {
        self.places[id.0] = None;
    }

    pub(super) fn release_all(&mut self) {
        self.places = [None; COUNT];
    }

    pub(super) fn bytes(&self, id: BufferId) -> &[u8] {
        let Some(BufferRange { start, length }) = self.places[id.0] else { return &[] };
        &self.memory[start..start + length]
    }

    pub(super) fn bytes_mut(&mut self, id: BufferId) -> &mut [u8] {
        let Some(BufferRange { start, length }) = self.places[id.0] else { return &mut [] };
        &mut self.memory[start..start + length]
    }

    /// Puts these bytes into the buffer and cuts it to their length; what it had beyond is free.
    pub(super) fn replace(&mut self, id: BufferId, bytes: &[u8]) -> Result<(), StatusWord> {
        let place = self.bytes_mut(id).get_mut(..bytes.len()).ok_or(StatusWord::WRONG_DATA)?;
        place.copy_from_slice(bytes);
        if let Some(place) = &mut self.places[id.0] {
            place.length = bytes.len();
        }
        Ok(())
    }

    fn first_gap(&self, length: usize) -> Option<usize> {
        // Empty buffers take no room.
        let mut taken: Vec<_> = self.places.iter().flatten().filter(|p| p.length > 0).collect();
        taken.sort_by_key(|place| place.start);
        let mut start = 0;
        for place in taken {
            if place.start - start >= length {
                return Some(start);
            }
            start = place.start + place.length;
        }
        (MEMORY - start >= length).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gap_that_is_long_enough_is_taken() {
        let mut buffers = Buffers::default();
        let [first, second, third] = [500, 400, 380].map(|n| buffers.allocate(n).unwrap());
        assert_eq!(buffers.allocate(1), Err(StatusWord::NO_ROOM));
        buffers.replace(second, &[7; 100]).unwrap();
        // Between the second, now short, and the third; the fourth id.
        let fourth = buffers.allocate(300).unwrap();
        assert_eq!((fourth.number(), buffers.places[3].unwrap().start), (3, 600));
        assert_eq!(buffers.allocate(0), Err(StatusWord::NO_ROOM));
        buffers.release(first);
        assert_eq!(buffers.allocate(501), Err(StatusWord::NO_ROOM));
        assert_eq!(buffers.allocate(500), Ok(first));
        assert_eq!(buffers.bytes(third).len(), 380);
    }
}
