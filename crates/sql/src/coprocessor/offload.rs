//! A device with what its sessions share: whether it still answers, how much of its memory is in use, what it costs, what was decided.
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use engine::{BasePage, SearchDevice};

use super::cost::CostModel;
use super::decisions::{Decision, Decisions, Noted};
use super::images::{Images, OnDevice, Owner};
use super::residents::{Asked, Found, PageNumbers, RangeRows, Resident, Residents, TableColumns};
use super::searches::Searches;
use super::{
    BoxesImage, Coprocessor, DeviceBoxes, DeviceError, DeviceFacts, DevicePoints, GroupTotals, GroupedRows, HashTable,
    JoinKeys, PointsImage, Probed, ResidentRows, Spent,
};

/// A device for the sessions of a database, as [`SessionOptions`](crate::SessionOptions) take it. Clones share all that is learned of it.
#[derive(Clone)]
pub struct Offload(Arc<Shared>);

/// What is told of devices that fail.
type Log = Box<dyn Fn(&str) + Send + Sync>;

struct Shared {
    device: Arc<dyn Coprocessor>,
    /// Why it is of no more use.
    lost: Mutex<Option<String>>,
    /// Memory of the calls that run.
    used_bytes: AtomicU64,
    residents: Residents,
    images: Images,
    /// Where it is told that a statement goes on without the device.
    log: OnceLock<Log>,
    answered: AtomicU64,
    refused: AtomicU64,
    model: Mutex<CostModel>,
    decisions: Decisions,
}

/// Memory of the device that a call or a hash table may use, until it is dropped.
struct Reserved {
    offload: Offload,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.offload.0.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A hash table on the device, with its memory.
pub(crate) struct Built {
    table: Box<dyn HashTable>,
    reserved: Reserved,
}

/// What a call may take of the device's memory, and the limit of all calls together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) limit_bytes: u64,
}

impl Offload {
    /// Has sessions use a device where it is cheaper than the CPU.
    pub fn new(device: Arc<dyn Coprocessor>) -> Offload {
        Offload(Arc::new(Shared {
            device,
            lost: Mutex::default(),
            used_bytes: AtomicU64::new(0),
            residents: Residents::default(),
            images: Images::default(),
            log: OnceLock::new(),
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            model: Mutex::default(),
            decisions: Decisions::default(),
        }))
    }

    /// Has a line given to `log` where a statement goes on without the device, as that is full or lost. The first one is told.
    pub fn log_to(&self, log: impl Fn(&str) + Send + Sync + 'static) {
        let _earlier = self.0.log.set(Box::new(log));
    }

    /// What searches an index for the engine's batches: wherever it can, if `is_forced`, or else where it is the fastest way. Views tell
    /// the names.
    pub fn searches(&self, table: &str, index: &str, is_forced: bool) -> Arc<dyn SearchDevice> {
        let owner = Owner { table: table.to_owned(), index: index.to_owned() };
        Arc::new(Searches::new(self, owner, (None, is_forced), None, Box::new(|_| ())))
    }

    /// What the device says of itself.
    pub fn facts(&self) -> &DeviceFacts {
        self.0.device.facts()
    }

    /// Why the device is of no more use, if so.
    pub(crate) fn lost(&self) -> Option<String> {
        lock(&self.0.lost).clone()
    }

    /// How many calls it has answered, and how many not.
    pub(crate) fn calls(&self) -> (u64, u64) {
        (self.0.answered.load(Ordering::Relaxed), self.0.refused.load(Ordering::Relaxed))
    }

    /// Bytes of its memory that calls are using.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.0.used_bytes.load(Ordering::Relaxed)
    }

    /// The columns that stay there.
    pub(crate) fn residents(&self) -> &Residents {
        &self.0.residents
    }

    /// The images of indexes that stay there.
    pub(super) fn images(&self) -> &Images {
        &self.0.images
    }

    /// Bytes of its memory that stay in use between statements.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.0.residents.bytes() + self.0.images.bytes()
    }

    /// All that stays there, as views tell it.
    pub(crate) fn all_residents(&self) -> Vec<Resident> {
        let mut all = self.0.residents.all();
        all.extend(self.0.images.all());
        all.sort_by(|one, other| (&one.table, &one.column).cmp(&(&other.table, &other.column)));
        all
    }

    /// The coefficients, to ask or to teach them.
    pub(crate) fn model(&self) -> MutexGuard<'_, CostModel> {
        lock(&self.0.model)
    }

    pub(crate) fn note(&self, decision: Decision) -> Arc<Noted> {
        self.0.decisions.note(decision)
    }

    pub(crate) fn decisions(&self) -> Vec<Arc<Noted>> {
        self.0.decisions.all()
    }

    /// [`Coprocessor::group`] within the limit of memory.
    pub(crate) fn group(&self, rows: &GroupedRows<'_>, room: Room) -> Result<GroupTotals, DeviceError> {
        self.ask(room, |device| device.group(rows))
    }

    /// [`Coprocessor::group_residents`] within the limit of memory.
    pub(crate) fn group_residents(&self, rows: &ResidentRows<'_>, room: Room) -> Result<GroupTotals, DeviceError> {
        self.ask(room, |device| device.group_residents(rows))
    }

    /// [`Residents::bring`] within the limit of memory.
    pub(crate) fn bring(
        &self,
        table: &mut TableColumns,
        asked: (&[RangeRows], &[Asked]),
        numbers: &dyn Fn(usize, &BasePage) -> Result<PageNumbers, String>,
        limit_bytes: u64,
    ) -> Result<Found, DeviceError> {
        let room = |bytes| self.reserve(Room { bytes, limit_bytes }).map(drop);
        let device = self.0.device.as_ref();
        self.heard(match self.lost() {
            Some(why) => Err(DeviceError::Lost(why)),
            None => self.0.residents.bring(table, device, asked, numbers, &room),
        })
    }

    /// [`Coprocessor::hash_table`] within the limit of memory, which it takes as long as it is there.
    pub(crate) fn hash_table(&self, build: &JoinKeys<'_>, room: Room) -> Result<(Built, Spent), DeviceError> {
        let reserved = self.heard(self.reserve(room))?;
        let (table, spent) = self.ask(Room { bytes: 0, ..room }, |device| device.hash_table(build))?;
        Ok((Built { table, reserved }, spent))
    }

    /// [`Coprocessor::points`] within the limit of memory, which they take until they are given up.
    pub(super) fn bring_points(
        &self,
        image: &PointsImage<'_>,
        owner: &Owner,
        limit_bytes: u64,
    ) -> Result<Arc<dyn DevicePoints>, DeviceError> {
        let bytes = image.bytes();
        let points: Arc<dyn DevicePoints> =
            Arc::from(self.ask(Room { bytes, limit_bytes }, |device| device.points(image))?);
        self.0.images.keep(image.id.clone(), owner.clone(), OnDevice::Points(points.clone()), bytes);
        Ok(points)
    }

    /// [`Coprocessor::boxes`] within the limit of memory, which they take until they are given up.
    pub(super) fn bring_boxes(
        &self,
        image: &BoxesImage,
        owner: &Owner,
        limit_bytes: u64,
    ) -> Result<Arc<dyn DeviceBoxes>, DeviceError> {
        let bytes = image.bytes();
        let boxes: Arc<dyn DeviceBoxes> =
            Arc::from(self.ask(Room { bytes, limit_bytes }, |device| device.boxes(image))?);
        self.0.images.keep(image.id.clone(), owner.clone(), OnDevice::Boxes(boxes.clone()), bytes);
        Ok(boxes)
    }

    /// A search of an image within the limit of memory.
    pub(super) fn search(
        &self,
        room: Room,
        call: impl FnOnce() -> Result<Spent, DeviceError>,
    ) -> Result<Spent, DeviceError> {
        self.ask(room, |_| call())
    }

    fn ask<T>(
        &self,
        room: Room,
        call: impl FnOnce(&dyn Coprocessor) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let answer = match self.lost() {
            Some(why) => Err(DeviceError::Lost(why)),
            None => self.reserve(room).and_then(|_reserved| call(self.0.device.as_ref())),
        };
        let counter = if answer.is_ok() { &self.0.answered } else { &self.0.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        self.heard(answer)
    }

    /// Remembers that the device is lost, where it says so, and tells the log that a statement goes on without it.
    fn heard<T>(&self, answer: Result<T, DeviceError>) -> Result<T, DeviceError> {
        if let Err(DeviceError::Lost(why)) = &answer {
            lock(&self.0.lost).get_or_insert_with(|| why.clone());
        }
        if let (Err(DeviceError::Lost(why) | DeviceError::Full(why)), Some(log)) = (&answer, self.0.log.get()) {
            log(&format!("a statement goes on without the device {}: {why}", self.facts()));
        }
        answer
    }

    /// Memory for a call. Columns and indexes that nobody uses now make room for it.
    fn reserve(&self, room: Room) -> Result<Reserved, DeviceError> {
        let without_columns = |_| {
            self.0.residents.give_up(room.bytes);
            self.try_reserve(room)
        };
        let without_indexes = |_| {
            self.0.images.give_up(room.bytes);
            self.try_reserve(room)
        };
        self.try_reserve(room).or_else(without_columns).or_else(without_indexes)
    }

    fn try_reserve(&self, Room { bytes, limit_bytes }: Room) -> Result<Reserved, DeviceError> {
        let used_bytes = &self.0.used_bytes;
        let limit_bytes = limit_bytes.min(self.facts().memory_bytes);
        let resident_bytes = self.resident_bytes();
        let fits = |sum: &u64| sum.checked_add(resident_bytes).is_some_and(|all| all <= limit_bytes);
        let grown = |used: u64| used.checked_add(bytes).filter(fits);
        match used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown) {
            Ok(_) => Ok(Reserved { offload: self.clone(), bytes }),
            Err(used) => {
                let used = used + resident_bytes;
                let message =
                    format!("{bytes} bytes of the device's memory are needed, {used} of {limit_bytes} are in use");
                Err(DeviceError::Full(message))
            }
        }
    }
}

impl Built {
    /// [`HashTable::probe`] within the limit of memory.
    pub(crate) fn probe(&self, probe: &JoinKeys<'_>, pairs_max: usize, room: Room) -> Result<Probed, DeviceError> {
        self.reserved.offload.ask(room, |_| self.table.probe(probe, pairs_max))
    }
}

impl fmt::Debug for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Offload").field(&self.0.device).finish()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
