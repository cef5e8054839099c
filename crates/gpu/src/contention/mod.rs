//! Codes rewritten so that the threads of a warp do not meet in shared memory (gpu-contention, section 3).
//!
//! A column of codes is read a *chunk* of 32 at a time, one code a lane. A code is a place in an array in
//! shared memory, whose place `p` lies in *bank* `p mod 32`. Lanes that meet in a bank take turns; lanes
//! that write to one place do, too. Both are avoided by *clones*: further places of a value. The optimizer
//! goes through the chunks once and gives each code one of its value's places:
//!
//! 1. Each code takes a place whose bank is still free in the chunk, if it has one.
//! 2. One that has none may displace another, which moves to another of its places, and so on. The shortest
//!    such sequence to a free bank is found breadth first.
//! 3. If there is none, the value gets a clone in a free bank. So a value gets as many places as it is in
//!    demand, and no more than the budget of space allows; beyond it, conflicts are accepted.
//!
//! Within `window` earlier chunks a place is not used twice, since an atomic operation of another warp may
//! still be under way there. Reads of one place cost nothing extra, so for reads the same values of a chunk
//! share a place (section 3.2).
//!
//! Places are filled bank by bank evenly, so that the array has few holes; a value's places are taken in
//! turn, the least recently used first.

mod chunk;
mod count;

pub use count::{Conflicts, conflicts};

use chunk::Chunk;

/// Banks of shared memory, lanes of a warp, codes of a chunk.
pub const BANKS: usize = 32;

/// No place.
const NONE: u32 = u32::MAX;

/// The use of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Grouping: every code is a write.
    Writes,
    /// Looking up: equal codes of a chunk are one read.
    Reads,
    /// Grouping, where only equal places are avoided and banks may meet (Figure 7).
    ValuesOnly,
}

/// The limits of the optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The use of the column.
    pub purpose: Use,
    /// Earlier chunks whose places are avoided.
    pub window: usize,
    /// Places at most, as a multiple of the values, in hundredths: 400 is four places a value on average.
    pub budget_percent: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { purpose: Use::Writes, window: 0, budget_percent: 400 }
    }
}

/// Counts of the optimizer's work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Chunks.
    pub chunks: u64,
    /// Codes that took a free place at once.
    pub placed: u64,
    /// Codes that were placed by moving others.
    pub relocations: u64,
    /// Codes that were moved.
    pub moves: u64,
    /// Clones made.
    pub clones: u64,
    /// Codes that share a bank or a place, as the budget was spent.
    pub conflicts: u64,
}

/// The optimizer of one column; it keeps its clones from page to page.
#[derive(Debug)]
pub struct Optimizer {
    settings: Settings,
    value_count: usize,
    places_max: usize,
    /// The places of each value, least recently used first.
    places: Vec<Vec<u32>>,
    /// The value of each place; `NONE` in holes.
    value_of_place: Vec<u32>,
    /// For each place the chunk after the one that used it last.
    used: Vec<u64>,
    /// How many rows of 32 places each bank has.
    heights: [u32; BANKS],
    turn: u64,
    counters: Counters,
}

impl Optimizer {
    /// For codes below `value_count`.
    pub fn new(value_count: usize, settings: Settings) -> Self {
        let mut heights = [0u32; BANKS];
        for value in 0..value_count {
            heights[value % BANKS] += 1;
        }
        Self {
            settings,
            value_count,
            places_max: (value_count * settings.budget_percent / 100).max(value_count),
            places: (0..value_count as u32).map(|value| vec![value]).collect(),
            value_of_place: (0..value_count as u32).collect(),
            used: vec![0; value_count],
            heights,
            turn: 0,
            counters: Counters::default(),
        }
    }

    /// Rewrites codes in place. All must be below `value_count`.
    ///
    /// Pieces of a column come in order, and all but the last are whole chunks.
    pub fn rewrite(&mut self, codes: &mut [u32]) {
        for codes in codes.chunks_mut(BANKS) {
            self.turn += 1;
            self.counters.chunks += 1;
            match self.settings.purpose {
                Use::Writes => self.rewrite_writes(codes),
                Use::Reads => self.rewrite_reads(codes),
                Use::ValuesOnly => self.rewrite_values(codes),
            }
        }
    }

    /// The value of each place: what the kernels need to add clones up. Holes have the value 0, and no code
    /// names them.
    pub fn value_of_place(&self) -> Vec<u32> {
        self.value_of_place.iter().map(|value| if *value == NONE { 0 } else { *value }).collect()
    }

    /// Places of the array, holes counted in.
    pub fn place_count(&self) -> usize {
        self.value_of_place.len()
    }

    /// Places in use, divided by the values.
    pub fn copies_per_value(&self) -> f64 {
        let places: usize = self.places.iter().map(Vec::len).sum();
        places as f64 / self.value_count.max(1) as f64
    }

    /// Values that have clones.
    pub fn replicated_count(&self) -> usize {
        self.places.iter().filter(|places| places.len() > 1).count()
    }

    /// The counts of the work done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn rewrite_writes(&mut self, codes: &mut [u32]) {
        let mut chunk = Chunk::new(codes.len());
        let mut waiting = [0u8; BANKS];
        let mut waiting_count = 0;
        for (lane, code) in codes.iter().enumerate() {
            if !self.take_free(&mut chunk, lane, *code) {
                waiting[waiting_count] = lane as u8;
                waiting_count += 1;
            }
        }
        for lane in waiting[..waiting_count].iter().map(|lane| usize::from(*lane)) {
            self.place(&mut chunk, lane, codes);
        }
        self.finish(&chunk, codes);
    }

    fn rewrite_reads(&mut self, codes: &mut [u32]) {
        let mut firsts = [0u32; BANKS];
        let mut lanes = [0u8; BANKS];
        let mut count = 0;
        for (lane, code) in codes.iter().enumerate() {
            let known = firsts[..count].iter().position(|first| first == code);
            lanes[lane] = known.unwrap_or(count) as u8;
            if known.is_none() {
                firsts[count] = *code;
                count += 1;
            }
        }
        self.rewrite_writes(&mut firsts[..count]);
        for (lane, code) in codes.iter_mut().enumerate() {
            *code = firsts[usize::from(lanes[lane])];
        }
    }

    /// Without regard to banks: a code takes a place that no other of the chunk has, nor one of the window.
    fn rewrite_values(&mut self, codes: &mut [u32]) {
        for lane in 0..codes.len() {
            let value = codes[lane] as usize;
            let is_taken = |place: u32| codes[..lane].contains(&place);
            let mut free = self.places[value].iter().copied().filter(|place| !is_taken(*place));
            let fresh = free.clone().find(|place| !self.is_recent(*place));
            let stale = free.next();
            let place = match fresh {
                Some(place) => {
                    self.counters.placed += 1;
                    place
                }
                None => match self.clone_of(value as u32, u32::MAX) {
                    Some(place) => place,
                    None => {
                        self.counters.conflicts += 1;
                        stale.unwrap_or(self.places[value][0])
                    }
                },
            };
            self.note_use(value, place);
            codes[lane] = place;
        }
    }

    /// Step 1: a place in a free bank.
    fn take_free(&mut self, chunk: &mut Chunk, lane: usize, value: u32) -> bool {
        let places = &self.places[value as usize];
        let found = places.iter().find(|place| chunk.is_free(bank_of(**place)) && !self.is_recent(**place));
        let Some(place) = found.copied() else { return false };
        chunk.put(lane, place);
        self.counters.placed += 1;
        true
    }

    /// Steps 2 and 3.
    fn place(&mut self, chunk: &mut Chunk, lane: usize, codes: &[u32]) {
        if let Some(moves) = self.relocate(chunk, lane, codes, true) {
            self.counters.relocations += 1;
            self.counters.moves += moves;
            return;
        }
        let value = codes[lane];
        if let Some(place) = self.clone_of(value, chunk.free_banks()) {
            chunk.put(lane, place);
            return;
        }
        // The budget is spent: once more without the window, then with a conflict.
        if self.settings.window > 0 && self.relocate(chunk, lane, codes, false).is_some() {
            self.counters.relocations += 1;
            return;
        }
        let places = &self.places[value as usize];
        let least = places.iter().copied().min_by_key(|place| chunk.load(bank_of(*place)));
        chunk.put_beside(lane, least.unwrap_or(value));
        self.counters.conflicts += 1;
    }

    /// The shortest sequence of moves that makes room for `lane`, breadth first over banks.
    fn relocate(&self, chunk: &mut Chunk, lane: usize, codes: &[u32], heeds_window: bool) -> Option<u64> {
        // How a bank was reached: the place in it, and the lane that would take it.
        let mut place_in = [NONE; BANKS];
        let mut lane_for = [0u8; BANKS];
        let mut queue = [0u8; BANKS];
        let (mut head, mut tail) = (0, 0);
        let mut asking = lane;
        loop {
            for place in &self.places[codes[asking] as usize] {
                let bank = bank_of(*place);
                if place_in[bank] != NONE || heeds_window && self.is_recent(*place) {
                    continue;
                }
                place_in[bank] = *place;
                lane_for[bank] = asking as u8;
                if chunk.is_free(bank) {
                    return Some(chunk.shift(bank, lane, &place_in, &lane_for));
                }
                queue[tail] = bank as u8;
                tail += 1;
            }
            // A bank that several lanes share is left alone: moving one of them frees nothing.
            loop {
                if head == tail {
                    return None;
                }
                let bank = usize::from(queue[head]);
                head += 1;
                if let Some(occupant) = chunk.sole_occupant(bank) {
                    asking = occupant;
                    break;
                }
            }
        }
    }

    /// A new place of a value, in the lowest of the banks of a mask; none if the budget is spent.
    fn clone_of(&mut self, value: u32, banks: u32) -> Option<u32> {
        let lowest = (0..BANKS).filter(|bank| banks >> bank & 1 == 1).min_by_key(|bank| {
            // Among banks of one height each turn begins at another, so that none is favoured.
            (self.heights[*bank], (*bank + BANKS - self.turn as usize % BANKS) % BANKS)
        })?;
        let place = self.heights[lowest] as usize * BANKS + lowest;
        if place >= self.places_max.next_multiple_of(BANKS)
            || self.counters.clones as usize + self.value_count >= self.places_max
        {
            return None;
        }
        self.heights[lowest] += 1;
        if place >= self.value_of_place.len() {
            self.value_of_place.resize(place + 1, NONE);
            self.used.resize(place + 1, 0);
        }
        self.value_of_place[place] = value;
        self.places[value as usize].push(place as u32);
        self.counters.clones += 1;
        Some(place as u32)
    }

    fn is_recent(&self, place: u32) -> bool {
        let used = self.used[place as usize];
        self.settings.window > 0 && used > 0 && self.turn + 1 - used <= self.settings.window as u64
    }

    fn finish(&mut self, chunk: &Chunk, codes: &mut [u32]) {
        for (lane, code) in codes.iter_mut().enumerate() {
            let value = *code as usize;
            *code = chunk.place(lane);
            self.note_use(value, *code);
        }
    }

    fn note_use(&mut self, value: usize, place: u32) {
        // The turn after this one, so that the same chunk does not count as an earlier one.
        self.used[place as usize] = self.turn + 1;
        let places = &mut self.places[value];
        if places.len() > 1
            && let Some(at) = places.iter().position(|other| *other == place)
        {
            places[at..].rotate_left(1);
        }
    }
}

fn bank_of(place: u32) -> usize {
    place as usize % BANKS
}

#[cfg(test)]
mod tests;
