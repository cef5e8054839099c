//! `LISTEN` and `NOTIFY`: words that sessions send each other through channels, which have names.
//!
//! ```text
//! NOTIFY, LISTEN, UNLISTEN   are noted in the session, and done when its transaction commits; what a savepoint takes back is forgotten
//! commit                     first the channels that the session listens to change, then its words go to all that listen
//!                            a word that the transaction has sent already is not sent again
//! listener                   has a mailbox, and is woken; it takes the words between two transactions of its own
//! ```
//!
//! All words of one transaction are put into the mailboxes together and in their order, those of another one before or behind them. A
//! mailbox holds [`BYTES_MAX`] bytes: while one is full, nothing more can be sent.
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use engine::Database;
use parking_lot::Mutex;

use crate::error::{Result, SqlError};

/// The most bytes of a payload, less one, and of a channel's name, as in PostgreSQL.
const PAYLOAD_BYTES: usize = 8000;
const NAME_BYTES: usize = 64;

/// How many bytes wait for a listener at most.
const BYTES_MAX: usize = 64 << 20;

/// What a listener is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notification {
    /// the channel
    pub channel: String,
    /// what was said, or nothing
    pub payload: String,
    /// the number of the session that said it
    pub process: i32,
}

impl Notification {
    fn bytes(&self) -> usize {
        size_of::<Notification>() + self.channel.len() + self.payload.len()
    }
}

/// What has come for a session, until it takes it.
#[derive(Default)]
pub struct Mailbox {
    waiting: Mutex<Waiting>,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct Waiting {
    words: VecDeque<Notification>,
    bytes: usize,
}

impl Mailbox {
    /// Has `wake` called whenever something has come. The first call counts.
    pub fn wake_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.waker.set(Box::new(wake));
    }

    /// Takes what has come, the oldest first.
    pub fn take(&self) -> Vec<Notification> {
        let mut waiting = self.waiting.lock();
        waiting.bytes = 0;
        waiting.words.drain(..).collect()
    }

    fn put(&self, word: Notification) {
        let mut waiting = self.waiting.lock();
        waiting.bytes += word.bytes();
        waiting.words.push_back(word);
    }

    fn is_full(&self) -> bool {
        self.waiting.lock().bytes >= BYTES_MAX
    }
}

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox").field("waiting", &self.waiting.lock().words.len()).finish_non_exhaustive()
    }
}

/// What a transaction does when it commits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Pending {
    Listen(String),
    Unlisten(String),
    UnlistenAll,
    Notify { channel: String, payload: String },
}

/// The channels and what a session has to do with them.
#[derive(Default)]
pub(crate) struct Notifications {
    /// which database it is on
    address: usize,
    mailbox: Arc<Mailbox>,
    /// whether something is pending: most transactions have nothing
    has_pending: AtomicBool,
    /// whether the session has listened at any time
    has_listened: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pending: Vec<Pending>,
    channels: HashSet<String>,
}

/// The mailboxes of the sessions that listen to the channels of the databases of the process.
type Listeners = HashMap<(usize, String), Vec<Arc<Mailbox>>>;

static LISTENERS: LazyLock<Mutex<Listeners>> = LazyLock::new(Mutex::default);

fn check_name(channel: &str) -> Result<()> {
    match channel.len() {
        0 => Err(SqlError::new("22023", "channel name cannot be empty")),
        NAME_BYTES.. => Err(SqlError::new("22023", "channel name too long")),
        _ => Ok(()),
    }
}

impl Notifications {
    pub(crate) fn on(db: &Database) -> Notifications {
        Notifications { address: db.address(), ..Notifications::default() }
    }

    /// Where words for the session come.
    pub(crate) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }

    /// The channels that the session listens to, by name.
    pub(crate) fn channels(&self) -> Vec<String> {
        let mut names: Vec<String> = self.state.lock().channels.iter().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Listens to a channel once the transaction commits.
    pub(crate) fn listen(&self, channel: &str) -> Result<()> {
        check_name(channel)?;
        self.note(Pending::Listen(channel.to_owned()));
        Ok(())
    }

    /// Listens to a channel, or to all, no more once the transaction commits.
    pub(crate) fn unlisten(&self, channel: Option<&str>) {
        let pending = channel.map_or(Pending::UnlistenAll, |channel| Pending::Unlisten(channel.to_owned()));
        self.note(pending);
    }

    /// Sends a word once the transaction commits.
    ///
    /// # Errors
    /// For a name or a payload that is too long, and while a listener has as much waiting as it may.
    pub(crate) fn notify(&self, channel: &str, payload: &str) -> Result<()> {
        check_name(channel)?;
        if payload.len() >= PAYLOAD_BYTES {
            return Err(SqlError::new("22023", "payload string too long"));
        }
        let key = (self.address, channel.to_owned());
        if LISTENERS.lock().get(&key).is_some_and(|all| all.iter().any(|mailbox| mailbox.is_full())) {
            let error = SqlError::new("54000", "too many notifications in the NOTIFY queue");
            return Err(error.hint("A session that listens to the channel does not take what has come."));
        }
        let (_, channel) = key;
        self.note(Pending::Notify { channel, payload: payload.to_owned() });
        Ok(())
    }

    fn note(&self, pending: Pending) {
        self.state.lock().pending.push(pending);
        self.has_pending.store(true, Ordering::Relaxed);
    }

    /// Whether the session has listened to a channel at any time.
    pub(crate) fn has_listened(&self) -> bool {
        self.has_listened.load(Ordering::Relaxed)
    }

    /// How much the transaction has noted.
    pub(crate) fn mark(&self) -> usize {
        if !self.has_pending.load(Ordering::Relaxed) {
            return 0;
        }
        self.state.lock().pending.len()
    }

    /// Forgets what the transaction has noted since then.
    pub(crate) fn back_to(&self, mark: usize) {
        if !self.has_pending.load(Ordering::Relaxed) {
            return;
        }
        self.state.lock().pending.truncate(mark);
    }

    /// The transaction has committed; `process` tells the number of its session.
    pub(crate) fn committed(&self, process: impl FnOnce() -> i32) {
        // The thread that has noted it, or one that was told of it, asks.
        if !self.has_pending.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        let (pending, process) = (std::mem::take(&mut state.pending), process());
        let mut woken: Vec<Arc<Mailbox>> = Vec::new();
        let mut listeners = LISTENERS.lock();
        for change in &pending {
            self.change(&mut listeners, &mut state.channels, change);
        }
        let mut sent = HashSet::new();
        for word in &pending {
            let Pending::Notify { channel, payload } = word else { continue };
            if !sent.insert(word) {
                continue;
            }
            let all = listeners.get(&(self.address, channel.clone()));
            for mailbox in all.into_iter().flatten() {
                mailbox.put(Notification { channel: channel.clone(), payload: payload.clone(), process });
                if !woken.iter().any(|known| Arc::ptr_eq(known, mailbox)) {
                    woken.push(mailbox.clone());
                }
            }
        }
        drop(listeners);
        drop(state);
        for mailbox in woken {
            mailbox.waker.get().into_iter().for_each(|wake| wake());
        }
    }

    fn change(&self, listeners: &mut Listeners, channels: &mut HashSet<String>, change: &Pending) {
        match change {
            Pending::Listen(channel) if channels.insert(channel.clone()) => {
                self.has_listened.store(true, Ordering::Relaxed);
                listeners.entry((self.address, channel.clone())).or_default().push(self.mailbox.clone());
            }
            Pending::Unlisten(channel) if channels.remove(channel) => self.leave(listeners, channel),
            Pending::UnlistenAll => channels.drain().for_each(|channel| self.leave(listeners, &channel)),
            Pending::Listen(_) | Pending::Unlisten(_) | Pending::Notify { .. } => {}
        }
    }

    fn leave(&self, listeners: &mut Listeners, channel: &str) {
        let key = (self.address, channel.to_owned());
        if let Some(all) = listeners.get_mut(&key) {
            all.retain(|mailbox| !Arc::ptr_eq(mailbox, &self.mailbox));
            if all.is_empty() {
                listeners.remove(&key);
            }
        }
    }

    /// The session is over, or listens to nothing any more, whatever becomes of its transaction.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.pending.clear();
        self.change(&mut LISTENERS.lock(), &mut state.channels, &Pending::UnlistenAll);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn word(channel: &str, payload: &str, process: i32) -> Notification {
        Notification { channel: channel.to_owned(), payload: payload.to_owned(), process }
    }

    #[test]
    fn words_go_with_the_commit_once_and_in_their_order() {
        let db = Database::in_memory();
        let (one, other) = (Notifications::on(&db), Notifications::on(&db));
        let woken = Arc::new(AtomicUsize::new(0));
        let count = woken.clone();
        other.mailbox().wake_by(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        other.listen("news").unwrap();
        one.notify("news", "too early").unwrap();
        one.committed(|| 1);
        other.committed(|| 2);
        for payload in ["a", "b", "a"] {
            one.notify("news", payload).unwrap();
        }
        let mark = one.mark();
        one.notify("news", "taken back").unwrap();
        one.back_to(mark);
        one.notify("elsewhere", "").unwrap();
        assert!(other.mailbox().take().is_empty(), "nothing is committed");
        one.committed(|| 1);
        assert_eq!(other.mailbox().take(), [word("news", "a", 1), word("news", "b", 1)]);
        assert_eq!(woken.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn channels_are_those_of_a_database_and_a_session() {
        let (db, elsewhere) = (Database::in_memory(), Database::in_memory());
        let (one, other) = (Notifications::on(&db), Notifications::on(&elsewhere));
        one.listen("b").unwrap();
        one.listen("a").unwrap();
        one.committed(|| 1);
        assert_eq!(one.channels(), ["a", "b"]);
        other.notify("a", "not for them").unwrap();
        other.committed(|| 2);
        one.notify("a", "for itself").unwrap();
        one.committed(|| 1);
        assert_eq!(one.mailbox().take(), [word("a", "for itself", 1)]);
        one.unlisten(Some("a"));
        one.unlisten(None);
        one.committed(|| 1);
        assert!(one.channels().is_empty());
        one.listen("a").unwrap();
        one.committed(|| 1);
        one.end();
        let key = (db.address(), "a".to_owned());
        assert!(!LISTENERS.lock().contains_key(&key));
    }

    #[test]
    fn what_is_too_long_or_finds_no_room_is_refused() {
        let db = Database::in_memory();
        let one = Notifications::on(&db);
        let code = |done: Result<()>| done.unwrap_err().sqlstate;
        assert_eq!(code(one.notify("", "")), "22023");
        assert_eq!(code(one.listen(&"x".repeat(64))), "22023");
        assert_eq!(code(one.notify("a", &"x".repeat(8000))), "22023");
        one.listen("a").unwrap();
        one.committed(|| 1);
        let long = "x".repeat(7999);
        while one.notify("a", &long).is_ok() {
            one.committed(|| 1);
        }
        assert_eq!(code(one.notify("a", "")), "54000");
        one.mailbox().take();
        one.notify("a", "").unwrap();
        one.end();
    }
}
