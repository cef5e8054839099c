//! Recovery: the partitions merged into one row of commits, up to the first gap, and partition commits beyond.
//!
//! ```text
//!   read the headers of all files; sort them into chains, one for each partition; the rest is spare (`chain.rs`, `begun.rs`)
//!   pass over what a caller with a checkpoint need not be told (`rest.rs`)
//!   next = the trim point, or 1
//!   repeat
//!     next stands in a known hole -> read all chains past the hole; hand over its partition commits; next = its end
//!     a commit with LSN next was read -> hand it over, its data frames first; next + 1     (a void: next + 1)
//!     otherwise read on in the chain that is furthest behind
//!   until every chain is at its end: next is missing, the first gap
//!   a chain ends in damage, as its witnesses tell (`witness.rs`)  -> refuse
//!   a frame testifies that next was stable once                   -> damage, refuse
//!   hand over the partition commits beyond the gap that depend on none of the missing LSNs (`dependency.rs`), in LSN
//!   order; drop the other commits there
//!   mend the last flush of every chain (`chain.rs`)
//! ```
//!
//! This is Hathi's recovery (section 4), with two differences. Frames of one partition need not stand in LSN order,
//! as several threads may share a partition; what is read ahead is remembered by its place. And LSNs beyond the gap are
//! never used again: the next one is higher than all that were read, and what is missing between is a **hole**, which
//! every partition notes in its next opening frame. Thus a commit that was dropped once stays dropped, without a
//! byte of it being touched, and partition commits are handed over at the same place each time.
//!
//! A transaction depends only on commits with lower LSNs, so LSN order is right for partition commits too; within a
//! partition it keeps their order wherever one depends on the other.
//!
//! Nothing is written but the last flushes with their witnesses, the trim point and the notes of what was begun, with the bytes
//! that they have, and zeros over torn tails. So recovery can be interrupted at any point, any number of times.
//!
//! **Damage** is found wherever one run of bytes of one file was hit, in whatever state the log was left, or one file is gone.
//! Reading goes on in the other partitions up to the first LSN that is missing, so that the error can say up to where all is
//! whole: a copy that ends there is a way to accept the loss (`read_log_to_gap`).
//!
//! Some damage cannot be told apart from an interrupted write, or from something that never was:
//! - Damage to the last flush of a partition that was not closed, if its witness was hit as well and what stands between them
//!   was not. A later flush of another partition, or a mark, may testify that its commits were stable; then it is refused.
//! - A last segment that is gone together with the note that it was begun, unless it was there when the log was closed last
//!   (`trim.rs`), or the whole directory.
//! - Files that were replaced by older copies of themselves, all that belong together.
//! - In segments of older versions, which have no witnesses: damage to the last flush, and a last segment that is gone. That ends
//!   with the first append of this version.
//! - The testimony of an interrupted flush is passed over if its first frame is lost: that may have been an opening
//!   frame, with the hole that makes it true.
//! - Damage to the mark itself, or to what follows the last frame, looks like a torn tail; nothing is lost.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::Lsn;
use crate::device::{Access, Device};
use crate::error::{LogError, OpenError, Result, device_error};
use crate::format::begun::{self, Begun, SegmentNote};
use crate::format::frame::{Frame, FrameKind, Hole, Tag};
use crate::format::segment::{self, file_name};
use crate::format::trim::{self, TrimPoint};
use crate::recovery::chain::{Chain, NumberedFrame, PayloadRef, Reader, SegmentFile, Stop, corrupt};
use crate::recovery::rest;

const PROGRESS_STEPS: u64 = 256;

/// The findings of opening a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveredLog {
    /// The last LSN that counts as taken: the next commit has the LSN after it.
    pub last_lsn: Lsn,
    /// The LSN below which the log had been given up; 0 if it never was.
    pub trimmed_below: Lsn,
    /// Frames handed over.
    pub frames: u64,
    /// Commits among them.
    pub commits: u64,
    /// Partition commits among those that stood beyond the first gap.
    pub commits_beyond_gap: u64,
    /// Commits that were dropped because a lower LSN is missing. None was acknowledged.
    pub dropped_commits: u64,
    /// Segments, those included that were passed over.
    pub segments: u64,
    /// Bytes of interrupted writes that were dropped at the ends of the partitions, as far as they are recognised.
    pub torn_bytes: u64,
    /// The log had been closed, not left by a crash; true of a new log as well.
    pub was_closed: bool,
}

/// Where the log goes on.
pub(crate) struct Resume {
    pub(crate) chains: Vec<Chain>,
    pub(crate) stock: Stock,
    /// For the opening frames: what is missing behind the first gap.
    pub(crate) hole: Hole,
    /// All holes at or after the trim point, and what was passed over as if it were one.
    pub(crate) holes: Vec<Hole>,
}

/// The files beside the chains, and what all files have in common.
pub(crate) struct Stock {
    pub(crate) log: u64,
    pub(crate) next_number: u64,
    pub(crate) spare: Vec<u64>,
    pub(crate) trim: TrimPoint,
    /// By partition, the last segment that is known to have been begun.
    begun: BTreeMap<u64, SegmentNote>,
}

type Apply<'a, E> = dyn FnMut(Frame<'_>) -> std::result::Result<(), E> + 'a;

/// Reads, replays and, unless the access is for reading only, mends the log on `device`. The caller has the commits up to `held`
/// already: of these some may be handed over, or none.
pub(crate) fn recover<E>(
    device: &dyn Device,
    access: Access,
    held: Lsn,
    apply: &mut Apply<'_, E>,
    progress: &mut dyn FnMut(u64, u64),
) -> std::result::Result<(Resume, RecoveredLog), OpenError<E>> {
    let is_rest_enough = held > 0 && rest::is_enough(find_chains(device, Access::Read, false)?, held)?;
    let Found { mut chains, stock, damage } = find_chains(device, access, false)?;
    let mut trimmed = stock.trim.below;
    if is_rest_enough {
        rest::pass_over(&mut chains, held, stock.trim.proven);
        trimmed = trimmed.max(held + 1);
    }
    let recovered = RecoveredLog { trimmed_below: stock.trim.below, was_closed: true, ..RecoveredLog::default() };
    let mut merge = Merge {
        chains,
        trimmed,
        next: trimmed.max(1),
        until: Lsn::MAX,
        pending: BTreeMap::new(),
        holes: Vec::new(),
        proven: stock.trim.proven,
        damage,
        apply,
        recovered,
        progress,
        reported: 0,
    };
    merge.up_to_gap()?;
    let hole = merge.beyond_gap()?;
    let Merge { mut chains, mut recovered, mut holes, .. } = merge;
    debug_assert!(hole.from <= hole.to && hole.to > 0, "{hole:?}");
    debug_assert!(hole.to >= stock.trim.below, "invariant 8: the log ends with {hole:?}, and was trimmed after it");
    recovered.last_lsn = hole.to - 1;
    for chain in &chains {
        recovered.segments += chain.segment_count();
        recovered.torn_bytes += chain.torn_bytes();
        recovered.was_closed &= chain.is_settled && chain.torn_bytes() == 0;
    }
    if access == Access::Write && !chains.is_empty() {
        chains.iter_mut().try_for_each(Chain::mend)?;
        if stock.trim.log.is_some() && (stock.trim.is_uneven || !recovered.was_closed) {
            // It may have been read from the page cache only, like the last flushes.
            trim::write(device, stock.log, stock.trim.below, stock.trim.proven)?;
        }
        note_begun(device, &chains, &stock, recovered.was_closed)?;
        // The crash may have come between the creation of a file and the sync of its name.
        let synced = device.sync_dir();
        synced.map_err(|source| device_error("sync the directory".to_string(), device.location(), source))?;
    }
    if !hole.is_empty() {
        holes.push(hole);
    }
    if is_rest_enough {
        // There may be holes in what was passed over.
        holes.push(Hole { from: stock.trim.below, to: trimmed });
    }
    Ok((Resume { chains, stock, hole, holes }, recovered))
}

/// Makes sure of the notes of what was begun. They may be damaged, or read from the page cache only.
fn note_begun(device: &dyn Device, chains: &[Chain], stock: &Stock, was_closed: bool) -> Result<()> {
    for chain in chains {
        let last = chain.last_segment();
        let is_noted = stock.begun.get(&chain.partition) == Some(&SegmentNote::of(last));
        if last.has_witnesses() && !(is_noted && was_closed) {
            let notes = begun::prepare(device, chain.partition)?;
            begun::note(&*notes, device, last)?;
        }
    }
    Ok(())
}

/// Hands over the commits from `from` to `until` of a log that may be open and appended to meanwhile, but not trimmed. All of
/// them must be on disk ([`Log::stable_lsn`](crate::Log::stable_lsn)); what follows them is left alone.
///
/// # Errors
/// [`OpenError::Apply`] if `apply` refuses a frame. [`OpenError::Log`] with [`LogError::Corrupt`] if a commit of the
/// range is damaged or missing, [`LogError::UnknownVersion`] if a file has another format, or a failure of the device
/// to read.
pub fn read_log<E>(
    device: &dyn Device,
    from: Lsn,
    until: Lsn,
    apply: &mut dyn FnMut(Frame<'_>) -> std::result::Result<(), E>,
) -> std::result::Result<(), OpenError<E>> {
    let Found { chains, stock, damage } = find_chains(device, Access::Read, true)?;
    let from = from.max(stock.trim.below).max(1);
    let recovered = RecoveredLog::default();
    let (pending, holes, progress) = (BTreeMap::new(), Vec::new(), &mut |_, _| ());
    let (trimmed, next, proven, reported) = (from, from, 0, 0);
    let mut merge =
        Merge { chains, trimmed, next, until, pending, holes, proven, damage, apply, recovered, progress, reported };
    merge.up_to_gap()?;
    if merge.next <= until { Err(merge.missing(until).into()) } else { Ok(()) }
}

/// Hands over the commits of `range` up to the first that is missing, of a log that is not appended to, and returns
/// the last LSN of the range before that. All up to `proven` is known to have been there, or without it all that a
/// frame says to have been: if one of them is missing, it is damage. `progress` is told the bytes read and the
/// bytes to read.
///
/// A partition commit may come that stands a little behind the range.
///
/// # Errors
/// [`OpenError::Apply`] if `apply` refuses a frame. [`OpenError::Log`] with [`LogError::Corrupt`] if a commit is
/// damaged, or missing that is known to have been there, [`LogError::UnknownVersion`] if a file has another format,
/// or a failure of the device to read.
pub fn read_log_to_gap<E>(
    device: &dyn Device,
    range: RangeInclusive<Lsn>,
    proven: Option<Lsn>,
    apply: &mut dyn FnMut(Frame<'_>) -> std::result::Result<(), E>,
    progress: &mut dyn FnMut(u64, u64),
) -> std::result::Result<Lsn, OpenError<E>> {
    let Found { chains, stock, damage } = find_chains(device, Access::Read, false)?;
    let (from, until) = ((*range.start()).max(stock.trim.below).max(1), *range.end());
    let recovered = RecoveredLog::default();
    let (pending, holes) = (BTreeMap::new(), Vec::new());
    let (trimmed, next, proven_lsn, reported) = (from, from, proven, 0);
    let proven = stock.trim.proven;
    let mut merge =
        Merge { chains, trimmed, next, until, pending, holes, proven, damage, apply, recovered, progress, reported };
    merge.up_to_gap()?;
    let (closed, proven) = (proven, proven_lsn);
    let testimony = || merge.chains.iter().map(|chain| chain.testimony).fold(closed, Lsn::max);
    let proven = proven.unwrap_or_else(testimony).min(until);
    if merge.next <= proven { Err(merge.missing(proven).into()) } else { Ok((merge.next - 1).min(until)) }
}

/// The chains, the rest, and what is damaged so that reading may go on for a while.
pub(super) struct Found {
    pub(super) chains: Vec<Chain>,
    pub(super) stock: Stock,
    pub(super) damage: Option<LogError>,
}

/// Opens all files, checks their headers and sorts them into chains. Of a log that `is_live` nothing is asked about its end.
fn find_chains(device: &dyn Device, access: Access, is_live: bool) -> Result<Found> {
    let fail = |source| device_error("list the files".to_string(), device.location(), source);
    let names = device.list().map_err(fail)?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment::parse_name(name)).collect();
    numbers.sort_unstable();
    let next_number = numbers.last().map_or(1, |last| last + 1);
    let (mut partitions, mut spare, mut log) = (BTreeMap::<u64, Vec<SegmentFile>>::new(), Vec::new(), None);
    let mut blank = None;
    for number in numbers {
        let name = file_name(number);
        let fail = |source| device_error(format!("open {name}"), device.location(), source);
        let file = device.open(&name, access).map_err(fail)?;
        let mut reader = Reader::new(number, device.location(), file)?;
        if reader.header_bytes()?.iter().all(|&byte| byte == 0) && reader.is_blank()? {
            // Its creation was interrupted.
            spare.push(number);
            blank.get_or_insert(name);
            continue;
        }
        let header = segment::Header::decode(reader.header_bytes()?, number)?;
        if *log.get_or_insert(header.log) != header.log {
            return Err(corrupt(&name, 0, "it does not belong to the same log as the files before it"));
        }
        partitions.entry(header.link.partition).or_default().push(SegmentFile { header, reader });
    }
    let trim = trim::read(device, log)?;
    let Begun { segments: begun, log: noted } = if is_live { Begun::default() } else { begun::read(device, log)? };
    let mut chains: Vec<Chain> = Vec::new();
    for (partition, segments) in partitions {
        let noted = begun.get(&partition).copied().unwrap_or_default();
        let mut row = in_sequence(segments, noted, &mut spare)?;
        if !is_live {
            spare.extend(take_interrupted(&mut row, noted)?);
        }
        if row.is_empty() {
            continue;
        }
        let (chain, unused) = Chain::new(partition, row, trim.below, is_live)?;
        chains.push(chain);
        spare.extend(unused);
    }
    let damage = missing_segment(&chains, &begun, blank);
    let log = log.or(trim.log).or(noted).unwrap_or_else(segment::random_number);
    Ok(Found { chains, stock: Stock { log, next_number, spare, trim, begun }, damage })
}

/// A last segment that was begun and is gone.
fn missing_segment(chains: &[Chain], begun: &BTreeMap<u64, SegmentNote>, blank: Option<String>) -> Option<LogError> {
    let last = |partition: u64| {
        let chain = chains.iter().find(|chain| chain.partition == partition);
        chain.map_or(0, |chain| chain.last_segment().link.sequence)
    };
    let (partition, noted) = begun.iter().find(|(partition, noted)| last(**partition) < noted.sequence)?;
    let sequence = noted.sequence;
    let missing = format!("segment {sequence} of partition {partition} had been begun and is missing");
    Some(match blank {
        Some(file) => corrupt(&file, 0, &format!("it is empty, and {missing}")),
        None => corrupt(begun::FILE, begun::offset_of(*partition, sequence), &missing),
    })
}

/// Segments in order of their sequences. Where an attempt to begin a segment failed late and a second one took
/// another file, both have the same place; one that is neither noted nor has frames is spare.
fn in_sequence(mut segments: Vec<SegmentFile>, noted: SegmentNote, spare: &mut Vec<u64>) -> Result<Vec<SegmentFile>> {
    segments.sort_by_key(|segment| segment.header.link.sequence);
    let mut row: Vec<SegmentFile> = Vec::new();
    for mut segment in segments {
        let Some(last) = row.last_mut().filter(|last| last.header.link.sequence == segment.header.link.sequence) else {
            row.push(segment);
            continue;
        };
        let is_needed = |segment: &mut SegmentFile| {
            Ok::<_, LogError>(SegmentNote::of(&segment.header) == noted || segment.is_used()?)
        };
        if is_needed(&mut segment)? {
            if is_needed(last)? {
                let detail = format!("it has the same place in its partition as {}", last.reader.name);
                return Err(corrupt(&segment.reader.name, 0, &detail));
            }
            std::mem::swap(last, &mut segment);
        }
        spare.push(segment.header.number);
    }
    Ok(row)
}

/// Takes the last segment off if its beginning was interrupted: it was never used, and there is no note of it. Returns its number.
fn take_interrupted(row: &mut Vec<SegmentFile>, noted: SegmentNote) -> Result<Option<u64>> {
    let Some(last) = row.last_mut() else { return Ok(None) };
    let is_noted = SegmentNote::of(&last.header) == noted || !last.header.has_witnesses();
    if is_noted || last.is_used()? {
        return Ok(None);
    }
    Ok(row.pop().map(|last| last.header.number))
}

/// The row of commits as far as it was put together.
struct Merge<'a, 'b, E> {
    chains: Vec<Chain>,
    /// LSNs below are not handed over.
    trimmed: Lsn,
    /// The LSN to be handed over next.
    next: Lsn,
    /// Nothing after it is handed over.
    until: Lsn,
    /// The frames that were read ahead, with the place of their chain.
    pending: BTreeMap<Lsn, (usize, NumberedFrame)>,
    holes: Vec<Hole>,
    /// Up to here everything was there when the log was closed.
    proven: Lsn,
    /// The first that was found; its chain counts as ended there.
    damage: Option<LogError>,
    apply: &'a mut Apply<'b, E>,
    recovered: RecoveredLog,
    progress: &'a mut dyn FnMut(u64, u64),
    reported: u64,
}

impl<E> Merge<'_, '_, E> {
    fn up_to_gap(&mut self) -> std::result::Result<(), OpenError<E>> {
        while self.next <= self.until {
            if let Some(hole) = self.holes.iter().find(|hole| (hole.from..hole.to).contains(&self.next)).copied() {
                // A partition commit in the hole may still be ahead of us.
                match self.behind().filter(|&at| self.chains[at].passed < hole.to) {
                    Some(at) => self.read_on(at)?,
                    None => {
                        self.partition_commits(hole)?;
                        self.next = hole.to;
                    }
                }
            } else if let Some((at, numbered)) = self.pending.remove(&self.next) {
                debug_assert_eq!(
                    numbered.lsn, self.next,
                    "invariant 8: commits are replayed in the order of their numbers"
                );
                self.next += 1;
                self.hand_over(at, &numbered)?;
            } else if let Some(at) = self.behind() {
                self.read_on(at)?;
            } else {
                break;
            }
        }
        if let Some(damage) = self.damage.take().filter(|_| self.next <= self.until) {
            return Err(self.up_to_here(damage).into());
        }
        let total: u64 = self.chains.iter().map(Chain::size).sum();
        (self.progress)(total, total);
        Ok(())
    }

    /// The damage, with what stands before it.
    fn up_to_here(&self, damage: LogError) -> LogError {
        match damage {
            LogError::Corrupt { file, offset, detail } if self.next > self.trimmed.max(1) => {
                let last = self.next - 1;
                let way = "to lose what came later, restore up to that one into another directory";
                let detail = format!("{detail} (every commit up to LSN {last} is whole: {way})");
                LogError::Corrupt { file, offset, detail }
            }
            other => other,
        }
    }

    /// Hands over the partition commits beyond the gap. Returns the hole that the gap begins.
    fn beyond_gap(&mut self) -> std::result::Result<Hole, OpenError<E>> {
        let testimony = self.chains.iter().map(|chain| chain.testimony).fold(self.proven, Lsn::max);
        if self.next <= testimony {
            return Err(self.missing(testimony).into());
        }
        let highest = self.chains.iter().map(|chain| chain.lsn_max).max().unwrap_or(0);
        let hole = Hole { from: self.next, to: self.next.max(highest + 1) };
        debug_assert!(hole.to > highest, "invariant 8: the number of a commit that was dropped would be given again");
        let before = self.recovered.commits;
        self.partition_commits(hole)?;
        debug_assert!(self.pending.is_empty(), "invariant 8: a commit was read and not looked at");
        self.recovered.commits_beyond_gap = self.recovered.commits - before;
        Ok(hole)
    }

    /// The chain that was read least far, of those that go on.
    fn behind(&self) -> Option<usize> {
        let open = self.chains.iter().enumerate().filter(|(_, chain)| !chain.is_at_end);
        open.min_by_key(|(_, chain)| chain.passed).map(|(at, _)| at)
    }

    fn read_on(&mut self, at: usize) -> Result<()> {
        let stop = match self.chains[at].advance(self.trimmed) {
            Err(damage @ LogError::Corrupt { .. }) => {
                self.chains[at].is_at_end = true;
                self.damage.get_or_insert(damage);
                Stop::End
            }
            stop => stop?,
        };
        match stop {
            Stop::Numbered(numbered) if numbered.lsn < self.trimmed => {}
            Stop::Numbered(numbered) => {
                if numbered.lsn < self.next || self.pending.contains_key(&numbered.lsn) {
                    let (file, offset) = self.chains[at].place_of(numbered.payload);
                    let detail = format!("LSN {} stands in the log a second time", numbered.lsn);
                    return Err(corrupt(&file, offset, &detail));
                }
                self.pending.insert(numbered.lsn, (at, numbered));
            }
            Stop::Hole(hole) if hole.is_empty() || hole.to <= self.trimmed || self.holes.contains(&hole) => {}
            Stop::Hole(hole) => self.holes.push(hole),
            Stop::End => {}
        }
        let (done, total): (u64, u64) =
            (self.chains.iter().map(Chain::bytes_read).sum(), self.chains.iter().map(Chain::size).sum());
        // Of a file that was cut off less may be there than was to be read.
        let done = done.min(total).max(self.reported);
        if done - self.reported >= total / PROGRESS_STEPS {
            self.reported = done;
            (self.progress)(done, total);
        }
        Ok(())
    }

    /// Hands over the partition commits in a hole that were read ahead and depend on nothing in it; drops the others.
    fn partition_commits(&mut self, hole: Hole) -> std::result::Result<(), OpenError<E>> {
        let rest = self.pending.split_off(&hole.to);
        for (at, numbered) in std::mem::replace(&mut self.pending, rest).into_values() {
            debug_assert!((hole.from..hole.to).contains(&numbered.lsn), "{} is not within {hole:?}", numbered.lsn);
            match numbered.tag {
                Tag::PartitionCommit | Tag::DependentCommit if numbered.depends_on < hole.from => {
                    self.hand_over(at, &numbered)?;
                }
                Tag::Commit | Tag::PartitionCommit | Tag::DependentCommit => self.recovered.dropped_commits += 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// Hands over a transaction: its data frames, then its commit.
    fn hand_over(&mut self, at: usize, numbered: &NumberedFrame) -> std::result::Result<(), OpenError<E>> {
        if numbered.tag == Tag::Void {
            return Ok(());
        }
        for &data in &numbered.data {
            self.hand_over_frame(at, numbered, FrameKind::Data, data)?;
        }
        self.hand_over_frame(at, numbered, FrameKind::Commit, numbered.payload)?;
        self.recovered.commits += 1;
        debug_assert!(self.recovered.frames >= self.recovered.commits, "each commit has a frame: {:?}", self.recovered);
        Ok(())
    }

    fn hand_over_frame(
        &mut self,
        at: usize,
        numbered: &NumberedFrame,
        kind: FrameKind,
        payload: PayloadRef,
    ) -> std::result::Result<(), OpenError<E>> {
        let bytes = self.chains[at].payload(payload)?;
        let frame = Frame { kind, txn: numbered.txn, lsn: numbered.lsn, payload: bytes };
        if let Err(error) = (self.apply)(frame) {
            let (file, offset) = self.chains[at].place_of(payload);
            return Err(OpenError::Apply { file, offset, error });
        }
        self.recovered.frames += 1;
        Ok(())
    }

    /// The first gap stands where something testifies that there was none.
    fn missing(&self, testimony: Lsn) -> LogError {
        // It is missing at the end of some partition: most likely one that is visibly torn, else one that was not
        // closed, else the one that ends first.
        let suspect = |chain: &&Chain| (chain.torn_bytes() == 0, chain.is_settled, chain.passed);
        let (file, offset) = self.chains.iter().min_by_key(suspect).map(Chain::place).unwrap_or_default();
        let detail = format!(
            "LSN {} is in no partition, though everything up to LSN {testimony} had been on disk; most likely it \
             stood here",
            self.next
        );
        self.up_to_here(corrupt(&file, offset, &detail))
    }
}
