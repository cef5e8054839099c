//! The chunk that the optimizer works on: which lane has which place, and which lanes are in a bank.

use super::{BANKS, NONE, bank_of};

/// Places given to the lanes of one chunk.
pub(super) struct Chunk {
    places: [u32; BANKS],
    /// The lane that has a bank, if it is one.
    lanes: [u8; BANKS],
    /// How many lanes have a bank.
    loads: [u8; BANKS],
    free: u32,
}

impl Chunk {
    pub(super) fn new(lane_count: usize) -> Self {
        assert!(lane_count <= BANKS, "a chunk has {BANKS} codes at most");
        Self { places: [NONE; BANKS], lanes: [0; BANKS], loads: [0; BANKS], free: u32::MAX }
    }

    pub(super) fn is_free(&self, bank: usize) -> bool {
        self.free >> bank & 1 == 1
    }

    /// A bit a bank.
    pub(super) fn free_banks(&self) -> u32 {
        self.free
    }

    pub(super) fn load(&self, bank: usize) -> u8 {
        self.loads[bank]
    }

    pub(super) fn place(&self, lane: usize) -> u32 {
        self.places[lane]
    }

    /// The lane in a bank, if there is exactly one.
    pub(super) fn sole_occupant(&self, bank: usize) -> Option<usize> {
        (self.loads[bank] == 1).then(|| usize::from(self.lanes[bank]))
    }

    /// Gives a lane a place in a free bank.
    pub(super) fn put(&mut self, lane: usize, place: u32) {
        debug_assert!(self.is_free(bank_of(place)), "the bank is free");
        self.put_beside(lane, place);
    }

    /// Gives a lane a place, even if another lane has its bank.
    pub(super) fn put_beside(&mut self, lane: usize, place: u32) {
        let bank = bank_of(place);
        self.places[lane] = place;
        self.lanes[bank] = lane as u8;
        self.loads[bank] += 1;
        self.free &= !(1 << bank);
    }

    /// Carries out the sequence of moves that ends at the free bank `to` and makes room for `lane`; returns
    /// how many lanes moved.
    pub(super) fn shift(&mut self, to: usize, lane: usize, place_in: &[u32; BANKS], lane_for: &[u8; BANKS]) -> u64 {
        let mut bank = to;
        let mut moves = 0;
        loop {
            let mover = usize::from(lane_for[bank]);
            let left = self.places[mover];
            self.places[mover] = place_in[bank];
            self.lanes[bank] = mover as u8;
            self.loads[bank] = 1;
            self.free &= !(1 << bank);
            if mover == lane {
                return moves;
            }
            moves += 1;
            bank = bank_of(left);
        }
    }
}
