//! Searches of an index on a device, as the engine asks for them: within the limit of memory, noted with the decision, and until the
//! device gives no answer.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{
    BoxesImage, BoxesSearch, ImageId, NoAnswer, Partial, PointsImage, PointsQuery, PointsSearch, SearchDevice,
};

use super::decisions::Noted;
use super::images::{OnDevice, Owner};
use super::{DeviceBoxes, DeviceError, DevicePoints, Offload, Room, Spent};

/// Memory for the lists of one batch at most.
const LISTS_BYTES: u64 = 64 << 20;

/// The searches of one statement.
pub(crate) struct Searches(Arc<Asked>);

/// What hears of each batch that the device has answered.
type Heard = Box<dyn Fn(&Spent) + Send + Sync>;

struct Asked {
    offload: Offload,
    owner: Owner,
    limit_bytes: u64,
    is_forced: bool,
    noted: Option<Arc<Noted>>,
    heard: Heard,
    /// Whether the device was full or lost: it is asked no more.
    is_over: AtomicBool,
}

impl Searches {
    pub(crate) fn new(
        offload: &Offload,
        owner: Owner,
        (memory_limit, is_forced): (Option<u64>, bool),
        noted: Option<Arc<Noted>>,
        heard: Heard,
    ) -> Searches {
        let all = offload.facts().memory_bytes;
        let limit_bytes = memory_limit.map_or(all, |limit| limit.min(all));
        let (offload, is_over) = (offload.clone(), AtomicBool::new(false));
        Searches(Arc::new(Asked { offload, owner, limit_bytes, is_forced, noted, heard, is_over }))
    }
}

impl Asked {
    /// Asks the device, and notes what comes of it.
    fn ask<T>(&self, call: impl FnOnce(&Offload) -> Result<T, DeviceError>) -> Result<T, NoAnswer> {
        if self.is_over.load(Ordering::Relaxed) {
            return Err(NoAnswer);
        }
        call(&self.offload).map_err(|error| {
            if !matches!(error, DeviceError::Declined(_)) {
                self.is_over.store(true, Ordering::Relaxed);
            }
            self.noted.iter().for_each(|noted| noted.continued(&error.to_string()));
            NoAnswer
        })
    }

    /// Asks for a batch, with lists of so many words.
    fn search(&self, call: impl FnOnce(usize) -> Result<Spent, DeviceError>) -> Result<(), NoAnswer> {
        let bytes = (self.limit_bytes / 4).min(LISTS_BYTES);
        let words_max = usize::try_from(bytes / 16).unwrap_or(usize::MAX);
        let room = Room { bytes, limit_bytes: self.limit_bytes };
        let spent = self.ask(|offload| offload.search(room, || call(words_max)))?;
        let ns = spent.transfer_ns + spent.kernels_ns + spent.results_ns;
        self.noted.iter().for_each(|noted| noted.answered(1, ns));
        (self.heard)(&spent);
        Ok(())
    }
}

impl SearchDevice for Searches {
    fn is_forced(&self) -> bool {
        self.0.is_forced
    }

    fn room_bytes(&self) -> u64 {
        self.0.limit_bytes / 2
    }

    fn bring_points(&self, image: &PointsImage<'_>) -> Result<Arc<dyn PointsSearch>, NoAnswer> {
        let asked = &self.0;
        let points = match asked.offload.images().find(&image.id) {
            Some(OnDevice::Points(points)) => points,
            _ => asked.ask(|offload| offload.bring_points(image, &asked.owner, asked.limit_bytes))?,
        };
        Ok(Arc::new(Points { asked: asked.clone(), points }))
    }

    fn find_boxes(&self, id: &ImageId) -> Option<Arc<dyn BoxesSearch>> {
        let found = self.0.offload.images().find(id);
        let Some(OnDevice::Boxes(boxes)) = found else { return None };
        Some(Arc::new(Boxes { asked: self.0.clone(), boxes }))
    }

    fn bring_boxes(&self, image: &BoxesImage) -> Result<Arc<dyn BoxesSearch>, NoAnswer> {
        let asked = &self.0;
        let boxes = asked.ask(|offload| offload.bring_boxes(image, &asked.owner, asked.limit_bytes))?;
        Ok(Arc::new(Boxes { asked: asked.clone(), boxes }))
    }
}

struct Points {
    asked: Arc<Asked>,
    points: Arc<dyn DevicePoints>,
}

impl PointsSearch for Points {
    fn search(&self, queries: &[PointsQuery], take: &mut dyn FnMut(&[Partial])) -> Result<(), NoAnswer> {
        self.asked.search(|words_max| self.points.search(queries, words_max, take))
    }
}

struct Boxes {
    asked: Arc<Asked>,
    boxes: Arc<dyn DeviceBoxes>,
}

impl BoxesSearch for Boxes {
    fn search(&self, windows: &[u32], take: &mut dyn FnMut(&[u64])) -> Result<(), NoAnswer> {
        self.asked.search(|words_max| self.boxes.search(windows, words_max, take))
    }
}
