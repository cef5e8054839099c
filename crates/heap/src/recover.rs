//! Opening a heap: the newest checkpoint that is whole, then the log.
//!
//! ```text
//!   look at the headers of both files, the higher number first
//!       read its chunks; if one is damaged, forget them and take the other file
//!   hand every commit of the log to the words, in LSN order up to the first gap, partition commits beyond it
//!       a word takes what is newer than its chunk; older writes are in the chunk
//!   the clock goes on after the last LSN; the blocks are found by a walk over the headers
//! ```
//!
//! Refused are: a log that was given up beyond what the checkpoint needs, or without any checkpoint, and a checkpoint
//! that is newer than the log. Both testify that a file was lost or damaged.

use std::sync::Arc;

use durability::{Device, Log, LogError, Lsn, OpenError, RecoveredLog};

use crate::HeapOptions;
use crate::checkpoint::Checkpoints;
use crate::error::{HeapError, HeapResult};
use crate::image::{self, FILES, Found, Header};
use crate::memory::Memory;
use crate::redo;

/// The findings of opening a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapRecovered {
    /// The findings in the log. Its commits include those that the checkpoint had already.
    pub log: RecoveredLog,
    /// The number of the checkpoint that recovery began with; 0 if there was none.
    pub checkpoint: u64,
    /// The LSN of its oldest chunk, and of its newest.
    pub checkpoint_lsns: (Lsn, Lsn),
    /// Checkpoints that were damaged, with what is wrong with them. Nothing is lost: the log reaches back further.
    pub damaged: Vec<String>,
}

/// The start of recovery: the words are in the memory, these are their LSNs.
#[derive(Default)]
struct Base {
    header: Option<(usize, Header)>,
    /// Of each chunk.
    lsns: Vec<Lsn>,
    number_max: u64,
    damaged: Vec<String>,
}

impl Base {
    /// The LSN up to which a word is in the memory already.
    fn lsn_of(&self, at: u64) -> Lsn {
        match &self.header {
            None => 0,
            // Zero at the checkpoint's beginning. The last chunk may end before its length, and is younger.
            Some((_, header)) if at >= header.words => header.first,
            Some((_, header)) => self.lsns[(at / header.chunk_words) as usize],
        }
    }

    /// Reads the newest checkpoint that is whole into the memory.
    fn load(device: &dyn Device, memory: &Memory) -> HeapResult<Base> {
        let (mut base, mut found) = (Base::default(), Vec::new());
        for (at, name) in FILES.iter().enumerate() {
            match image::look(device, name)? {
                Found::Checkpoint(header) => found.push((at, header)),
                Found::Nothing => {}
                Found::Damage(what) => base.damaged.push(what),
            }
        }
        found.sort_by_key(|(_, header)| std::cmp::Reverse(header.number));
        base.number_max = found.first().map_or(0, |(_, header)| header.number);
        for (at, header) in found {
            let Some(what) = base.load_file(device, memory, at, &header)? else {
                base.header = Some((at, header));
                return Ok(base);
            };
            base.damaged.push(what);
            memory.set_all((0..header.words.min(memory.size_words())).map(|at| (at, 0)));
            base.lsns.clear();
        }
        Ok(base)
    }

    fn load_file(
        &mut self,
        device: &dyn Device,
        memory: &Memory,
        file: usize,
        header: &Header,
    ) -> HeapResult<Option<String>> {
        let size_words = memory.size_words();
        if header.words > size_words {
            return Err(HeapError::TooSmall { at: header.words - 1, size_words });
        }
        let lsns = &mut self.lsns;
        let damage = image::read_chunks(device, FILES[file], header, |chunk, lsn, words| {
            memory.set_all(header.run(chunk).zip(words));
            lsns.push(lsn);
        })?;
        Ok(damage)
    }

    /// Whether the log has what the checkpoint lacks, and all that the checkpoint testifies to.
    fn check(&self, recovered: &RecoveredLog) -> HeapResult<()> {
        let (name, first, last) = match &self.header {
            Some((at, header)) => (FILES[*at], header.first, header.last),
            None => (FILES[0], 0, 0),
        };
        let what = if recovered.trimmed_below > first + 1 {
            let hints = if self.damaged.is_empty() { String::new() } else { format!(" ({})", self.damaged.join("; ")) };
            format!(
                "the log was given up below LSN {}, and the newest checkpoint that is whole begins at {first}{hints}",
                recovered.trimmed_below
            )
        } else if last > recovered.last_lsn {
            format!("the checkpoint holds LSN {last}, and the log ends with {}", recovered.last_lsn)
        } else {
            return Ok(());
        };
        Err(LogError::Corrupt { file: name.to_string(), offset: 0, detail: what }.into())
    }
}

/// A heap as it was found.
pub(crate) struct OpenedHeap {
    pub(crate) memory: Memory,
    pub(crate) log: Log,
    pub(crate) checkpoints: Checkpoints,
    /// All words from here on are zero.
    pub(crate) end: u64,
    pub(crate) recovered: HeapRecovered,
}

/// Opens the heap on `device`.
pub(crate) fn open(device: &Arc<dyn Device>, options: &HeapOptions) -> HeapResult<OpenedHeap> {
    let memory = Memory::new(options.words, options.checkpoint_copy)?;
    // The files are read under the lock, which the log takes first.
    let mut loaded: Option<Base> = None;
    let mut end = 0;
    let mut apply = |frame: durability::Frame<'_>| -> HeapResult<()> {
        let base = match &mut loaded {
            Some(base) => base,
            None => loaded.insert(Base::load(&**device, &memory)?),
        };
        let mut outside = None;
        let decoded = redo::decode(frame.payload, |write| {
            if write.at >= memory.size_words() {
                outside = Some(write.at);
            } else if frame.lsn > base.lsn_of(write.at) {
                memory.set(write.at, write.value);
                end = end.max(write.at + 1);
            }
        });
        match (decoded, outside) {
            (Some(()), None) => Ok(()),
            (Some(()), Some(at)) => Err(HeapError::TooSmall { at, size_words: memory.size_words() }),
            (None, _) => {
                let detail = format!("LSN {} is no redo of a heap", frame.lsn);
                Err(LogError::Corrupt { file: "the redo log".to_string(), offset: 0, detail }.into())
            }
        }
    };
    let (log, recovered) = match Log::open(device.clone(), options.log, &mut apply, &mut |_, _| ()) {
        Ok(opened) => opened,
        Err(OpenError::Log(error)) => return Err(error.into()),
        Err(OpenError::Apply { error, .. }) => return Err(error),
    };
    let base = match loaded {
        Some(base) => base,
        None => Base::load(&**device, &memory)?,
    };
    base.check(&recovered)?;
    memory.set_clock(recovered.last_lsn);
    let header = base.header.as_ref().map(|(_, header)| *header);
    let recovered = HeapRecovered {
        log: recovered,
        checkpoint: header.map_or(0, |header| header.number),
        checkpoint_lsns: header.map_or((0, 0), |header| (header.first, header.last)),
        damaged: base.damaged,
    };
    let checkpoints = Checkpoints { newest: base.header, is_unconfirmed: true, number: base.number_max };
    let end = end.max(header.map_or(0, |header| header.words));
    Ok(OpenedHeap { memory, log, checkpoints, end, recovered })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words behind the checkpoint were zero when it began, also those that would be in its last chunk.
    #[test]
    fn a_word_behind_the_checkpoint_takes_all_since_it_began() {
        let header = Header { number: 1, chunk_words: 16, words: 40, first: 90, last: 120 };
        let base = Base { header: Some((0, header)), lsns: vec![95, 90, 120], ..Base::default() };
        let lsns = [0, 15, 16, 39, 40, 47, 48, 5000].map(|at| base.lsn_of(at));
        assert_eq!(lsns, [95, 95, 90, 120, 90, 90, 90, 90]);
        assert_eq!(Base::default().lsn_of(7), 0);
    }
}
