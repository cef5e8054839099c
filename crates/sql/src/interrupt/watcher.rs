//! Alarms: work that is done at a moment unless it is called off before, by one thread of the process.
//!
//! The thread is started with the first alarm. It sleeps until the earliest alarm that it knows of, and alarms that
//! come later than that, which is nearly all, are only entered in the list: setting and calling off an alarm wakes
//! no thread.
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Result, SqlError};

type Work = Box<dyn FnOnce() + Send>;

/// When, and a number that no other alarm has.
type Place = (Instant, u64);

struct List {
    alarms: BTreeMap<Place, Work>,
    next_number: u64,
    /// Until when the thread sleeps, if not until it is woken.
    wakes_at: Option<Instant>,
    has_thread: bool,
}

static LIST: Mutex<List> =
    Mutex::new(List { alarms: BTreeMap::new(), next_number: 0, wakes_at: None, has_thread: false });
static EARLIER: Condvar = Condvar::new();

fn list() -> MutexGuard<'static, List> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An alarm that is set; dropping it calls it off.
#[derive(Debug)]
pub(crate) struct Alarm(Place);

/// Has `work` done after a length of time.
pub(crate) fn set(after: Duration, work: impl FnOnce() + Send + 'static) -> Result<Alarm> {
    let at = Instant::now() + after;
    let mut list = list();
    if !list.has_thread {
        let started = thread::Builder::new().name("watcher".to_owned()).spawn(watch);
        started
            .map_err(|error| SqlError::new("53000", format!("could not start the thread for time limits: {error}")))?;
        list.has_thread = true;
    }
    list.next_number += 1;
    let place = (at, list.next_number);
    list.alarms.insert(place, Box::new(work));
    if list.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
        EARLIER.notify_one();
    }
    Ok(Alarm(place))
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // The work may own what takes other latches when it goes.
        let called_off = list().alarms.remove(&self.0);
        drop(called_off);
    }
}

fn watch() {
    let mut list = list();
    loop {
        let now = Instant::now();
        list = match list.alarms.first_key_value().map(|(place, _)| place.0) {
            Some(at) if at <= now => {
                let due = list.alarms.pop_first();
                drop(list);
                if let Some((_, work)) = due {
                    work();
                }
                self::list()
            }
            Some(at) => {
                list.wakes_at = Some(at);
                EARLIER.wait_timeout(list, at - now).unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                list.wakes_at = None;
                EARLIER.wait(list).unwrap_or_else(PoisonError::into_inner)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn alarms_ring_in_their_order_unless_called_off() {
        let (sender, rung) = channel();
        let alarm = |millis: u64| {
            let sender = sender.clone();
            set(Duration::from_millis(millis), move || sender.send(millis).unwrap()).unwrap()
        };
        let _held = [alarm(60), alarm(20)];
        drop(alarm(40));
        drop(alarm(1_000_000));
        assert_eq!((rung.recv(), rung.recv()), (Ok(20), Ok(60)));
        assert!(rung.try_recv().is_err());
    }
}
