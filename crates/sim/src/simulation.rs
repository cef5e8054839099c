//! Running programs on a machine: the scheduler, and the memory that a program sees.
//!
//! ```text
//! heap of (clock, thread):   the thread with the smallest clock is polled; it does steps while its clock is not beyond
//!                            the next one's, and is then put back
//! ```
//!
//! A program is a future, and each access to memory one of its points of suspension. An access whose moment has come is done
//! while it is polled, so that a thread alone never goes through the heap. The order of all steps follows from the seed and the
//! machine: a run can be repeated.

use std::cell::{Cell, Ref, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::machine::{Aborted, Address, Core, Counters, Machine, MachineConfig, Step};
use crate::memory::Memory;
use latches::elision::AbortCause;

/// A machine on which programs run.
pub struct Simulation {
    shared: Rc<Shared>,
}

struct Shared {
    machine: RefCell<Machine>,
    /// Up to which moment the polled thread may go.
    horizon: Cell<u64>,
    /// Whether the polled thread may go on whatever the others' clocks are.
    runs_ahead: Cell<bool>,
}

/// One simulated thread, as its program sees it.
#[derive(Clone)]
pub struct SimulatedThread {
    shared: Rc<Shared>,
    thread: usize,
}

/// The memory of a machine before threads run: no time passes, no cache changes.
pub struct Unclocked<'a> {
    simulation: &'a Simulation,
}

/// The bits of the heap's keys that have the thread.
const THREAD_BITS: u32 = 8;

impl Simulation {
    /// A machine with empty caches.
    pub fn new(config: MachineConfig, seed: u64) -> Self {
        let machine = RefCell::new(Machine::new(config, seed));
        Simulation { shared: Rc::new(Shared { machine, horizon: Cell::new(0), runs_ahead: Cell::new(false) }) }
    }

    /// The machine.
    pub fn machine(&self) -> Ref<'_, Machine> {
        self.shared.machine.borrow()
    }

    /// New memory of so many words, all 0, which begins with a line.
    pub fn allocate(&self, words: u64) -> Address {
        self.shared.machine.borrow_mut().allocate(words)
    }

    /// Brings all memory into L3, as far as it fits: each line into that of one of these cores' sockets, by chance.
    pub fn preload(&self, cores: &[Core]) {
        self.shared.machine.borrow_mut().preload(cores);
    }

    /// What gives out new memory, also while threads run.
    pub fn allocator(&self) -> impl Fn(u64) -> Address + 'static {
        let shared = Rc::downgrade(&self.shared);
        move |words| shared.upgrade().map_or(0, |shared| shared.machine.borrow_mut().allocate(words))
    }

    /// What memory contains, for another machine to begin with.
    pub fn image(&self) -> Vec<u64> {
        self.machine().image()
    }

    /// Gives a machine without memory that of another.
    pub fn load_image(&self, image: &[u64]) {
        self.shared.machine.borrow_mut().load_image(image);
    }

    /// The memory, to prepare it.
    pub fn unclocked(&self) -> Unclocked<'_> {
        Unclocked { simulation: self }
    }

    /// The counters of all threads of the last run.
    pub fn counters(&self) -> Counters {
        let machine = self.machine();
        let mut sum = Counters::default();
        (0..machine.thread_count()).for_each(|thread| sum.add(machine.counters(thread)));
        sum
    }

    /// Runs a program on each of the cores named, one thread for each name, to their ends; the cycles that the longest took.
    ///
    /// # Panics
    /// If a program ends with an abort outside of its transaction, or all threads that are left sleep.
    pub fn run<F>(&self, cores: &[Core], mut program: impl FnMut(SimulatedThread) -> F) -> u64
    where
        F: Future<Output = Result<(), Aborted>>,
    {
        self.shared.machine.borrow_mut().place(cores);
        let handle = |thread| SimulatedThread { shared: self.shared.clone(), thread };
        let mut programs: Vec<Pin<Box<F>>> = (0..cores.len()).map(|thread| Box::pin(program(handle(thread)))).collect();
        let mut queue = Queue::new(&self.machine());
        let mut running = cores.len();
        let mut context = Context::from_waker(Waker::noop());
        let slack = self.machine().config().slack;
        while let Some((thread, horizon)) = queue.first() {
            self.shared.horizon.set(horizon.saturating_add(slack));
            let poll = programs[thread].as_mut().poll(&mut context);
            let mut machine = self.shared.machine.borrow_mut();
            match poll {
                Poll::Ready(end) => {
                    assert!(end.is_ok(), "a program retries what aborts");
                    running -= 1;
                    queue.remove_first();
                }
                Poll::Pending if machine.is_asleep(thread) => queue.remove_first(),
                Poll::Pending => queue.put_first_back(machine.clock(thread)),
            }
            while let Some(woken) = machine.take_woken() {
                queue.add(woken, machine.clock(woken));
            }
        }
        assert_eq!(running, 0, "all threads that are left sleep: nothing will wake them");
        let machine = self.machine();
        (0..cores.len()).map(|thread| machine.clock(thread)).max().unwrap_or(0)
    }
}

/// The threads that can run, the one with the smallest clock first.
struct Queue {
    heap: BinaryHeap<Reverse<u64>>,
}

impl Queue {
    fn new(machine: &Machine) -> Self {
        let mut queue = Queue { heap: BinaryHeap::new() };
        (0..machine.thread_count()).for_each(|thread| queue.add(thread, machine.clock(thread)));
        queue
    }

    /// The first thread, and the clock of the second.
    #[inline]
    fn first(&self) -> Option<(usize, u64)> {
        let entries = self.heap.as_slice();
        let first = entries.first()?.0;
        let second = entries.iter().skip(1).take(2).map(|key| key.0 >> THREAD_BITS).min();
        Some(((first & ((1 << THREAD_BITS) - 1)) as usize, second.unwrap_or(u64::MAX)))
    }

    #[inline]
    fn put_first_back(&mut self, clock: u64) {
        if let Some(mut first) = self.heap.peek_mut() {
            first.0 = clock << THREAD_BITS | first.0 & ((1 << THREAD_BITS) - 1);
        }
    }

    fn remove_first(&mut self) {
        self.heap.pop();
    }

    fn add(&mut self, thread: usize, clock: u64) {
        self.heap.push(Reverse(clock << THREAD_BITS | thread as u64));
    }
}

/// A step of a thread, done when its moment has come.
struct Stepping<'a> {
    thread: &'a SimulatedThread,
    step: Step,
}

impl Future for Stepping<'_> {
    type Output = Result<u64, Aborted>;

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let SimulatedThread { shared, thread } = self.thread;
        let mut machine = shared.machine.borrow_mut();
        if machine.clock(*thread) > shared.horizon.get() && !shared.runs_ahead.get() {
            return Poll::Pending;
        }
        if !shared.runs_ahead.get() && machine.waits_for_owner(*thread, self.step) {
            return Poll::Pending;
        }
        let answer = machine.step(*thread, self.step);
        if machine.has_woken() {
            // They may be due before the thread that is next in the heap.
            shared.horizon.set(0);
        }
        answer.map_or(Poll::Pending, Poll::Ready)
    }
}

impl SimulatedThread {
    #[inline]
    fn step(&self, step: Step) -> Stepping<'_> {
        Stepping { thread: self, step }
    }

    #[inline]
    async fn do_step(&self, step: Step) -> Result<(), Aborted> {
        self.step(step).await.map(|_| ())
    }

    /// The number of the thread.
    pub fn number(&self) -> usize {
        self.thread
    }

    /// Runs a part of a program at one moment, as if the others stood still, while its steps cost what they cost. It must not
    /// sleep. So runs code without any synchronization that would break what it works on.
    pub async fn at_one_moment<T>(&self, part: impl Future<Output = T>) -> T {
        self.shared.runs_ahead.set(true);
        let answer = part.await;
        self.shared.runs_ahead.set(false);
        answer
    }

    /// What the thread's steps have met so far.
    pub fn counters(&self) -> Counters {
        *self.shared.machine.borrow().counters(self.thread)
    }
}

impl Memory for SimulatedThread {
    #[inline]
    fn load(&self, at: Address) -> impl Future<Output = Result<u64, Aborted>> {
        self.step(Step::Load(at))
    }

    #[inline]
    fn load_ahead(&self, at: Address) -> impl Future<Output = Result<u64, Aborted>> {
        self.step(Step::LoadAhead(at))
    }

    #[inline]
    fn store(&self, at: Address, value: u64) -> impl Future<Output = Result<(), Aborted>> {
        self.do_step(Step::Store(at, value))
    }

    #[inline]
    fn compare_and_swap(&self, at: Address, expected: u64, new: u64) -> impl Future<Output = Result<u64, Aborted>> {
        self.step(Step::CompareAndSwap(at, expected, new))
    }

    fn fetch_add(&self, at: Address, value: u64) -> impl Future<Output = Result<u64, Aborted>> {
        self.step(Step::FetchAdd(at, value))
    }

    #[inline]
    fn compute(&self, cycles: u64) -> impl Future<Output = Result<(), Aborted>> {
        self.do_step(Step::Compute(cycles))
    }

    fn wait_while(&self, at: Address, value: u64) -> impl Future<Output = Result<u64, Aborted>> {
        self.step(Step::WaitWhile(at, value))
    }

    fn begin(&self) -> impl Future<Output = Result<(), Aborted>> {
        self.do_step(Step::Begin)
    }

    fn commit(&self) -> impl Future<Output = Result<(), Aborted>> {
        self.do_step(Step::Commit)
    }

    fn abort(&self, cause: AbortCause) -> impl Future<Output = Result<(), Aborted>> {
        self.do_step(Step::Abort(cause))
    }

    fn now(&self) -> u64 {
        self.shared.machine.borrow().clock(self.thread)
    }

    fn core(&self) -> usize {
        self.shared.machine.borrow().core(self.thread)
    }

    fn socket(&self) -> usize {
        self.shared.machine.borrow().socket(self.thread)
    }

    fn below(&self, end: u64) -> u64 {
        self.shared.machine.borrow_mut().below(self.thread, end)
    }
}

impl Unclocked<'_> {
    fn change(&self, at: Address, change: impl FnOnce(u64) -> u64) -> u64 {
        let mut machine = self.simulation.shared.machine.borrow_mut();
        let old = machine.word(at);
        machine.set_word(at, change(old));
        old
    }
}

impl Memory for Unclocked<'_> {
    async fn load(&self, at: Address) -> Result<u64, Aborted> {
        Ok(self.simulation.machine().word(at))
    }

    async fn store(&self, at: Address, value: u64) -> Result<(), Aborted> {
        self.change(at, |_| value);
        Ok(())
    }

    async fn compare_and_swap(&self, at: Address, expected: u64, new: u64) -> Result<u64, Aborted> {
        Ok(self.change(at, |old| if old == expected { new } else { old }))
    }

    async fn fetch_add(&self, at: Address, value: u64) -> Result<u64, Aborted> {
        Ok(self.change(at, |old| old.wrapping_add(value)))
    }

    async fn compute(&self, _: u64) -> Result<(), Aborted> {
        Ok(())
    }

    async fn wait_while(&self, at: Address, value: u64) -> Result<u64, Aborted> {
        let found = self.simulation.machine().word(at);
        assert_ne!(found, value, "nothing changes before threads run");
        Ok(found)
    }

    fn now(&self) -> u64 {
        0
    }

    fn below(&self, end: u64) -> u64 {
        self.simulation.shared.machine.borrow_mut().chance_below(end)
    }
}

/// Runs a program that never waits, or that waits for other threads of the computer.
pub fn complete<F: Future>(program: F) -> F::Output {
    let mut program = pin!(program);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(answer) = program.as_mut().poll(&mut context) {
            return answer;
        }
        std::thread::yield_now();
    }
}
