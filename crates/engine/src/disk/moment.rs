//! Recovery to a moment: a backup, and what was archived of the log since, up to a commit or a time and not further.
//!
//! ```text
//!   backup:   checkpoint | its log ....... until
//!   archive:                       ...........until+1 ................. extent
//!                                                        ^ the moment
//!   target:   checkpoint | new log ......................|   and from here on a life of its own
//! ```
//!
//! 1. The commits and their times are read once, so that a moment which can't be reached is refused before anything is
//!    written, with what can be; likewise one behind a commit that names a file of a load which is not there.
//! 2. A new log gets the commits after the checkpoint up to the moment, with their numbers, then the files of the checkpoint
//!    are copied. Until all of it is on disk a sign stands in the target that it is no database.
//!
//! The new log has a number of its own. So nothing that was archived beyond the moment can be taken for a part of the new
//! life (*timeline*), and both can be archived to one place.
//!
//! A directory that is not a backup serves as well, as long as it is not open: the database itself, say, when a
//! mistake of some minutes ago is to be undone, or its log is damaged and what stands before the damage is to be
//! kept. It reaches back to the older of its two checkpoints.
use std::sync::Arc;

use durability::{
    Access, Checkpoints, Device, Extent, Frame, FrameKind, GatheredLog, LogError, Lsn, Manifest, OpenError,
    archived_logs, lock_to_read, read_log_to_gap,
};
use types::{Timestamp, Value};

use crate::disk::backup::BackupMark;
use crate::disk::checkpoint::Contents;
use crate::disk::copy::{self, LogCopy};
use crate::disk::redo::{self, Operation};
use crate::error::{Error, Result};
use crate::terms::wall_clock::{Micros, WallClock};

/// The moment to which a database is brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryTarget {
    /// The commit with this number, and all before it.
    Lsn(u64),
    /// The commits up to this time, in microseconds since 1970. Times are known as exactly as those of
    /// [`Database::newest_commit_at`](crate::Database::newest_commit_at).
    Time(i64),
    /// The last commit that is there.
    Latest,
}

/// The result of a restore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestoreReport {
    /// every commit up to this one, and none after it
    pub until: Timestamp,
    /// when it happened, in microseconds since 1970, if that is known
    pub micros: Option<i64>,
    /// files of the checkpoint
    pub files: u64,
    /// their bytes
    pub bytes: u64,
    /// commits after the checkpoint
    pub commits: u64,
}

type Progress<'p> = dyn FnMut(u64, u64) + 'p;

/// See [`Database::restore_to`](crate::Database::restore_to).
pub(crate) fn restore(
    from: &Arc<dyn Device>,
    archive: Option<&Arc<dyn Device>>,
    target: &Arc<dyn Device>,
    to: RecoveryTarget,
    progress: &mut Progress<'_>,
) -> Result<RestoreReport> {
    let _lock = lock_to_read(&**from)?;
    let origin = Origin::find(from, archive)?;
    let plan = origin.plan(to, progress)?;
    copy::begin(&**target)?;
    debug_assert!(plan.low <= plan.until, "invariant 8: the checkpoint has {}, and {} is wanted", plan.low, plan.until);
    let mut log = LogCopy::begin(target, plan.low, plan.until)?;
    plan.history.read(plan.until, &mut |frame| log.take(frame), progress)?;
    let commits = log.finish()?;
    debug_assert!(commits <= plan.until - plan.low, "{commits} commits between {} and {}", plan.low, plan.until);
    let (files, bytes) = copy::checkpoint(&origin.checkpoints, (&**from, &**target), plan.checkpoint, plan.low)?;
    copy::finish(&**target)?;
    let until = Timestamp(plan.until);
    Ok(RestoreReport { until, micros: plan.clock.time_of(until), files, bytes, commits })
}

/// Where a database is restored from.
struct Origin {
    device: Arc<dyn Device>,
    archive: Option<Arc<dyn Device>>,
    checkpoints: Checkpoints,
    /// that serve, newest first
    manifests: Vec<Manifest>,
    /// of a backup
    mark: Option<BackupMark>,
    /// the extent of the log that the archive claims to have
    extent: Option<Extent>,
    /// the number of the log, if there is any
    log: Option<u64>,
}

/// The steps of a restore.
struct Plan {
    /// the checkpoint, if there is one, and the commit after which the log is needed
    checkpoint: Option<u64>,
    low: Lsn,
    /// the last commit that is wanted
    until: Lsn,
    history: History,
    clock: WallClock,
}

/// The moments that can be reached: commits, and times.
struct Reach {
    commits: (Lsn, Lsn),
    times: (Option<Micros>, Option<Micros>),
}

impl Reach {
    fn error(&self, target: RecoveryTarget) -> Error {
        let time = |micros: Micros| Value::TimestampTz(micros).to_string();
        let end = |commit: Lsn, at: Option<Micros>| match at {
            Some(at) => format!("commit {commit} ({})", time(at)),
            None => format!("commit {commit}"),
        };
        let target = match target {
            RecoveryTarget::Lsn(lsn) => format!("commit {lsn}"),
            RecoveryTarget::Time(at) => time(at),
            RecoveryTarget::Latest => "the last commit".to_owned(),
        };
        let (from, until) = (end(self.commits.0, self.times.0), end(self.commits.1, self.times.1));
        Error::OutOfReach { target, from, until }
    }
}

impl Origin {
    fn find(from: &Arc<dyn Device>, archive: Option<&Arc<dyn Device>>) -> Result<Origin> {
        copy::check_finished(&**from)?;
        let mark = BackupMark::read(&**from)?;
        let (checkpoints, found) = Checkpoints::open(from.clone(), Access::Read)?;
        let mut manifests = found.manifests;
        if let Some(mark) = mark {
            manifests.retain(|manifest| manifest.number == mark.checkpoint);
            if manifests.is_empty() {
                let damaged: Vec<String> = found.damaged.iter().map(ToString::to_string).collect();
                let gone = "it was opened and has new checkpoints since; its own one is gone".to_owned();
                let why = if damaged.is_empty() { gone } else { damaged.join("; ") };
                return Err(Error::BadBackup { backup: from.location(), why });
            }
        } else if manifests.is_empty() && !found.damaged.is_empty() {
            let damaged: Vec<String> = found.damaged.iter().map(ToString::to_string).collect();
            return Err(Error::BadBackup { backup: from.location(), why: damaged.join("; ") });
        }
        let own = || Ok::<_, Error>(GatheredLog::new(std::slice::from_ref(from), None, 0, false)?.log());
        let log = mark.map_or_else(own, |mark| Ok(Some(mark.log)))?;
        let extent = match (archive, log) {
            (Some(archive), Some(log)) => {
                let known = archived_logs(&**archive)?;
                let mine = known.iter().find(|known| known.log == log);
                mine.ok_or_else(|| foreign(&**archive, log, known.len()))?.extent
            }
            _ => None,
        };
        let (device, archive) = (from.clone(), archive.cloned());
        Ok(Origin { device, archive, checkpoints, manifests, mark, extent, log })
    }

    /// The checkpoint and the commits that make up the moment.
    fn plan(&self, to: RecoveryTarget, progress: &mut Progress<'_>) -> Result<Plan> {
        let mut reached: Option<Reach> = None;
        let none = if self.manifests.is_empty() { &[None][..] } else { &[] };
        for manifest in self.manifests.iter().map(Some).chain(none.iter().copied()) {
            let contents = manifest.map(|manifest| Contents::from_bytes(&manifest.payload)).transpose()?;
            let low = manifest.map_or(0, |manifest| manifest.low);
            let first = contents.as_ref().map_or(0, Contents::newest).max(low);
            let clock = WallClock::default();
            let marks = contents.map(|contents| contents.clock).unwrap_or_default();
            clock.restore(marks.into_iter().map(|(time, at)| (time, Timestamp(at))).collect());
            let Surveyed { history, last, loads } = self.survey(low, to, &clock, progress)?;
            clock.finish_recovery(Timestamp(last));
            let until = match to {
                RecoveryTarget::Lsn(lsn) => lsn,
                RecoveryTarget::Time(time) => clock.newest_at(time).map_or(0, |at| at.0),
                RecoveryTarget::Latest => last,
            };
            let times = (clock.time_of(Timestamp(first)), self.known_until(&clock, last));
            let is_after = until > last || matches!((to, times.1), (RecoveryTarget::Time(at), Some(end)) if at > end);
            let reach = Reach { commits: (first, reached.map_or(last, |reach| reach.commits.1)), times };
            if is_after {
                return Err(reach.error(to));
            }
            if until >= first {
                self.find_loads(loads.into_iter().filter(|load| load.at <= until))?;
                let checkpoint = manifest.map(|manifest| manifest.number);
                return Ok(Plan { checkpoint, low, until, history, clock });
            }
            reached = Some(reach);
        }
        Err(reached.expect("there is one at least").error(to))
    }

    /// Refuses a history of which a file of a load is missing.
    fn find_loads(&self, loads: impl Iterator<Item = NamedLoad>) -> Result<()> {
        for NamedLoad { file, salt, at } in loads {
            let adopted = self.checkpoints.adopt(file, salt, at);
            let why = |error| {
                format!("{error}. An archive has no files of loads; a backup from after commit {at} has all it needs")
            };
            adopted.map_err(|error| Error::BadBackup { backup: self.device.location(), why: why(error) })?;
        }
        Ok(())
    }

    /// Up to when it is known what was committed.
    fn known_until(&self, clock: &WallClock, last: Lsn) -> Option<Micros> {
        let known = [self.extent.map(|extent| extent.micros), self.mark.map(|mark| mark.micros)];
        let of_last = clock.time_of(Timestamp(last));
        known.into_iter().flatten().chain(of_last).max()
    }

    /// Reads the times of all commits after `low`.
    fn survey(&self, low: Lsn, to: RecoveryTarget, clock: &WallClock, progress: &mut Progress<'_>) -> Result<Surveyed> {
        let is_damaged = |outcome: &Result<_>| matches!(outcome, Err(Error::Log(LogError::Corrupt { .. })));
        let mut survey = |is_short, until| self.survey_up_to(low, until, clock, is_short, progress);
        let mut outcome = survey(true, Lsn::MAX);
        if is_damaged(&outcome) {
            // A long transaction may have begun in a segment that was left out.
            outcome = survey(false, Lsn::MAX);
        }
        match to {
            // The damage may stand behind all that is wanted.
            RecoveryTarget::Lsn(until) if is_damaged(&outcome) => survey(false, until).or(outcome),
            _ => outcome,
        }
    }

    fn survey_up_to(
        &self,
        low: Lsn,
        until: Lsn,
        clock: &WallClock,
        is_short: bool,
        progress: &mut Progress<'_>,
    ) -> Result<Surveyed> {
        let history = self.history(low, is_short)?;
        let mut times = Times { clock, loads: Vec::new(), earlier: Vec::new() };
        let last = history.read(until, &mut |frame| times.take(frame), progress)?;
        Ok(Surveyed { history, last, loads: times.loads })
    }

    /// Where the commits after `low` stand.
    fn history(&self, low: Lsn, is_short: bool) -> Result<History> {
        let own = std::slice::from_ref(&self.device);
        let archived = self.extent.map(|extent| extent.until);
        let mut stretches = Vec::new();
        match (self.mark, &self.archive) {
            (Some(mark), archive) => {
                let log = GatheredLog::new(own, None, low + 1, false)?;
                stretches.push(Stretch { log, from: low + 1, until: mark.until, proven: Some(mark.until) });
                // Where the archive begins later it is of no use.
                let from = mark.until + 1;
                if let Some(archive) = archive.as_ref().filter(|_| self.extent.is_none_or(|it| it.from <= from)) {
                    let log = GatheredLog::new(std::slice::from_ref(archive), self.log, from, is_short)?;
                    stretches.push(Stretch { log, from, until: Lsn::MAX, proven: Some(archived.unwrap_or(0)) });
                }
            }
            (None, archive) => {
                let log = GatheredLog::new(own, self.log, low + 1, false)?;
                let mut stretch = Stretch { log, from: low + 1, until: Lsn::MAX, proven: None };
                if let Some(archive) = archive {
                    // An archive is read while it grows: frames that other frames report to have been on disk may
                    // not be in it yet.
                    let alone = History { low, stretches: vec![stretch] };
                    let last = alone.read(Lsn::MAX, &mut |_| Ok(()), &mut |_, _| ())?;
                    let log = GatheredLog::new(&[archive.clone(), self.device.clone()], self.log, low + 1, is_short)?;
                    let proven = Some(last.max(archived.unwrap_or(0)));
                    stretch = Stretch { log, from: low + 1, until: Lsn::MAX, proven };
                }
                stretches.push(stretch);
            }
        }
        debug_assert!(
            stretches.windows(2).all(|pair| pair[1].from <= pair[0].until.saturating_add(1)),
            "invariant 8: commits are missing between two logs"
        );
        Ok(History { low, stretches })
    }
}

fn foreign(archive: &dyn Device, log: u64, others: usize) -> Error {
    let others = if others == 0 { "no log at all" } else { "other logs only" };
    let why = format!("the database's log is {log:016x}, and {} holds {others}", archive.location());
    Error::BadBackup { backup: "this archive".into(), why }
}

/// Commits, one stretch after the other.
struct History {
    /// none up to this one
    low: Lsn,
    stretches: Vec<Stretch>,
}

/// A part of the commits, in one log.
struct Stretch {
    log: GatheredLog,
    from: Lsn,
    until: Lsn,
    /// up to where they are known to have been there; else the log says so itself
    proven: Option<Lsn>,
}

impl History {
    /// Hands over the commits up to `until`, or the last one; returns which that was.
    fn read(
        &self,
        until: Lsn,
        apply: &mut dyn FnMut(Frame<'_>) -> Result<()>,
        progress: &mut Progress<'_>,
    ) -> Result<Lsn> {
        let mut last = self.low;
        for Stretch { log, from, until: end, proven } in &self.stretches {
            if *from > until || last + 1 < *from {
                break;
            }
            let read = read_log_to_gap(log, *from..=until.min(*end), *proven, apply, progress);
            last = read.map_err(|error| match error {
                OpenError::Log(error) => Error::Log(log.explain(error)),
                other => other.into(),
            })?;
        }
        debug_assert!(last >= self.low && last <= until.max(self.low), "invariant 8: {last} was read, up to {until}");
        Ok(last)
    }
}

/// What commits say that are to be read again: where they stand, the last one, and the files of loads that they name.
struct Surveyed {
    history: History,
    last: Lsn,
    loads: Vec<NamedLoad>,
}

/// A file of a load, and the commit that names it.
#[derive(PartialEq, Eq)]
struct NamedLoad {
    file: u64,
    salt: u64,
    at: Lsn,
}

/// Takes the times, and the names of files, out of the redo of commits.
struct Times<'c> {
    clock: &'c WallClock,
    loads: Vec<NamedLoad>,
    /// the redo of a transaction that has its commit read next
    earlier: Vec<u8>,
}

impl Times<'_> {
    fn take(&mut self, frame: Frame<'_>) -> Result<()> {
        self.earlier.extend(frame.payload);
        if frame.kind == FrameKind::Data {
            return Ok(());
        }
        let whole = std::mem::take(&mut self.earlier);
        for part in redo::held(&whole)? {
            redo::read(part, |operation| {
                match operation {
                    Operation::Clock { time } => self.clock.recover(time, Timestamp(frame.lsn)),
                    Operation::InsertBlobs { file, salt, .. } => {
                        let load = NamedLoad { file, salt, at: frame.lsn };
                        if self.loads.last() != Some(&load) {
                            self.loads.push(load);
                        }
                    }
                    _ => {}
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
