//! The writers beside the queries: threads that run small transactions through the typed API, at full speed.
//!
//! Some enter a new order with one to seven lines; all others change a line of an existing order, and with it the
//! order's total price in the same transaction. In every consistent state an order's total is therefore the sum of
//! its lines, by the generator's formula. New orders come at a steady pace, so that the data grows by no more than
//! [`GROWTH_A_RUN`] and the queries still meet about the same data; changes take all the time that is left.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use engine::{Database, Error, Result, Table, Value};
use tpchgen::generators::{OrderGenerator, PartGeneratorIterator, PartSuppGeneratorIterator};

use super::load::rows_expected;

/// By how much new orders let the data grow in a run.
const GROWTH_A_RUN: f64 = 0.1;
/// By how much they do in all runs together. From then on it is [`GROWTH_LATER`] in each.
const GROWTH_MAX: f64 = 0.5;
/// See [`GROWTH_MAX`].
const GROWTH_LATER: f64 = 0.02;
/// The time over which new orders are spread, about as long as the queries take. The pace does not change after it;
/// orders just stop when they have grown enough.
const PACE: Duration = Duration::from_secs(15);
/// 1992-01-01, the first day of orders, as days since 1970-01-01.
const FIRST_DAY: i32 = 8035;
/// The days on which orders are placed; lines follow within 151 days, until the end of 1998.
const ORDER_DAYS: u64 = 2406;
/// 1995-06-17, "today" in the data: what was shipped until then is fulfilled.
const TODAY: i32 = 9298;

const PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
const INSTRUCTIONS: [&str; 4] = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"];
const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];

/// Positions of columns of `lineitem`.
const PARTKEY: usize = 1;
const EXTENDEDPRICE: usize = 5;
const DISCOUNT: usize = 6;
const TAX: usize = 7;
const SHIPDATE: usize = 10;

/// The writers' work in all.
pub(super) struct WrittenTotals {
    pub(super) new_orders: u64,
    pub(super) new_lines: u64,
    pub(super) changes: u64,
    pub(super) conflicts: u64,
    pub(super) elapsed: Duration,
}

impl WrittenTotals {
    /// How many transactions were committed.
    pub(super) fn transactions(&self) -> u64 {
        self.new_orders + self.changes
    }

    /// How many were committed in a second.
    pub(super) fn rate(&self) -> f64 {
        self.transactions() as f64 / self.elapsed.as_secs_f64()
    }
}

/// The state that the writers share.
struct WriterState {
    stop: AtomicBool,
    new_orders: AtomicU64,
    new_lines: AtomicU64,
    changes: AtomicU64,
    conflicts: AtomicU64,
    /// keys from here on belong to orders entered by writers
    first_new: i64,
    /// where this run began
    start_new: i64,
    /// the key of the next new order
    next_new: AtomicI64,
    /// how many new orders this run enters at the most
    budget: f64,
    start: Instant,
}

/// The writers at work.
pub(super) struct Writers {
    shared: Arc<WriterState>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Writers {
    /// Starts `count` writers on the data of a scale factor; `last_key` is the largest order key there is,
    /// `last_loaded` the largest that was loaded.
    pub(super) fn start(db: &Database, count: u32, sf: f64, last_loaded: i64, last_key: i64) -> Result<Writers> {
        let loaded = rows_expected("orders", sf) as f64;
        let growth_left = GROWTH_MAX - (last_key - last_loaded) as f64 / loaded;
        let shared = Arc::new(WriterState {
            stop: AtomicBool::new(false),
            new_orders: AtomicU64::new(0),
            new_lines: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            first_new: last_loaded + 1,
            start_new: last_key + 1,
            next_new: AtomicI64::new(last_key + 1),
            budget: loaded * growth_left.clamp(GROWTH_LATER, GROWTH_A_RUN),
            start: Instant::now(),
        });
        let mut threads = Vec::new();
        for number in 0..count {
            let mut desk = Desk::new(db, sf, number, shared.clone())?;
            threads.push(thread::spawn(move || {
                while !desk.shared.stop.load(Ordering::Relaxed) {
                    desk.run_one()?;
                }
                Ok(())
            }));
        }
        Ok(Writers { shared, threads })
    }

    /// Whether a writer has come to an end by itself, which only an error makes it do.
    pub(super) fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Has the writers stop; returns what they did.
    pub(super) fn stop(self) -> Result<WrittenTotals> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            match thread.join() {
                Ok(done) => done?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Ok(WrittenTotals {
            new_orders: load(&self.shared.new_orders),
            new_lines: load(&self.shared.new_lines),
            changes: load(&self.shared.changes),
            conflicts: load(&self.shared.conflicts),
            elapsed: self.shared.start.elapsed(),
        })
    }
}

/// Where one writer enters and changes orders.
struct Desk {
    db: Database,
    orders: Table,
    lineitem: Table,
    sf: f64,
    random: SplitMix,
    /// how many orders were loaded
    loaded: u64,
    shared: Arc<WriterState>,
}

impl Desk {
    fn new(db: &Database, sf: f64, number: u32, shared: Arc<WriterState>) -> Result<Desk> {
        Ok(Desk {
            db: db.clone(),
            orders: db.table("orders")?,
            lineitem: db.table("lineitem")?,
            sf,
            // Each run and each writer draws other orders.
            random: SplitMix(shared.start_new as u64 ^ (u64::from(number) << 48)),
            loaded: rows_expected("orders", sf),
            shared,
        })
    }

    /// Runs one transaction, again and again until it does not conflict with another writer's.
    fn run_one(&mut self) -> Result<()> {
        let new_key = self.is_order_due().then(|| self.shared.next_new.fetch_add(1, Ordering::Relaxed));
        let add = |count: &AtomicU64, more: u64| count.fetch_add(more, Ordering::Relaxed);
        loop {
            let done = match new_key {
                Some(key) => self.enter_order(key).map(|lines| {
                    add(&self.shared.new_orders, 1);
                    add(&self.shared.new_lines, lines);
                }),
                None => self.change_line().map(|is_done| {
                    add(&self.shared.changes, u64::from(is_done));
                }),
            };
            match done {
                Err(Error::Conflict) => add(&self.shared.conflicts, 1),
                other => return other,
            };
        }
    }

    /// Whether the next transaction is a new order: every other one is while orders are behind their pace.
    fn is_order_due(&mut self) -> bool {
        let shared = &self.shared;
        let share = shared.start.elapsed().as_secs_f64() / PACE.as_secs_f64();
        let entered = shared.next_new.load(Ordering::Relaxed) - shared.start_new;
        (entered as f64) < shared.budget * share.min(1.0) && self.random.below(2) == 0
    }

    /// A new order with its lines; returns how many lines.
    fn enter_order(&mut self, key: i64) -> Result<u64> {
        let day = FIRST_DAY + self.random.below(ORDER_DAYS) as i32;
        let line_count = 1 + self.random.below(7);
        let lines: Vec<Vec<Value>> = (1..=line_count).map(|number| self.line(key, number as i32, day)).collect();
        let shipped = lines.iter().filter(|line| matches!(line[SHIPDATE], Value::Date(day) if day <= TODAY)).count();
        let status = match shipped {
            0 => "O",
            all if all == lines.len() => "F",
            _ => "P",
        };
        let order = vec![
            Value::BigInt(key),
            Value::Integer(self.customer()),
            Value::from(status),
            money(lines.iter().map(|line| line_total(line)).sum()),
            Value::Date(day),
            Value::from(PRIORITIES[self.random.below(5) as usize]),
            Value::from(format!("Clerk#{:09}", 1 + self.random.below(1000))),
            Value::Integer(0),
            Value::from("entered while queries ran"),
        ];
        let mut transaction = self.db.begin()?;
        transaction.insert(&self.orders, &order)?;
        for line in &lines {
            transaction.insert(&self.lineitem, line)?;
        }
        transaction.commit()?;
        Ok(line_count)
    }

    /// A customer that places orders: two of three do.
    fn customer(&mut self) -> i32 {
        let customers = rows_expected("customer", self.sf);
        loop {
            let key = 1 + self.random.below(customers);
            if !key.is_multiple_of(3) {
                return key as i32;
            }
        }
    }

    fn line(&mut self, order: i64, number: i32, order_day: i32) -> Vec<Value> {
        let part = 1 + self.random.below(rows_expected("part", self.sf)) as i64;
        let supplier = PartSuppGeneratorIterator::select_part_supplier(part, self.random.below(4) as i64, self.sf);
        let quantity = 1 + self.random.below(50) as i64;
        let ship = order_day + 1 + self.random.below(121) as i32;
        let commit = order_day + 30 + self.random.below(61) as i32;
        let receipt = ship + 1 + self.random.below(30) as i32;
        let returned = match receipt <= TODAY {
            true => ["R", "A"][self.random.below(2) as usize],
            false => "N",
        };
        vec![
            Value::BigInt(order),
            Value::Integer(part as i32),
            Value::Integer(supplier as i32),
            Value::Integer(number),
            money(quantity * 100),
            money(PartGeneratorIterator::calculate_part_price(part) * quantity),
            money(self.random.below(11) as i64),
            money(self.random.below(9) as i64),
            Value::from(returned),
            Value::from(if ship <= TODAY { "F" } else { "O" }),
            Value::Date(ship),
            Value::Date(commit),
            Value::Date(receipt),
            Value::from(INSTRUCTIONS[self.random.below(4) as usize]),
            Value::from(MODES[self.random.below(7) as usize]),
            Value::from("entered while queries ran"),
        ]
    }

    /// Another quantity in one line of some order, and the totals that follow from it; whether there is such an order.
    fn change_line(&mut self) -> Result<bool> {
        let key = self.some_order();
        let mut transaction = self.db.begin()?;
        let mut lines = Vec::new();
        for number in 1..=7 {
            match transaction.get(&self.lineitem, &[Value::BigInt(key), Value::Integer(number)])? {
                Some(line) => lines.push(line),
                None => break,
            }
        }
        if lines.is_empty() {
            return Ok(false);
        }
        let at = self.random.below(lines.len() as u64) as usize;
        let quantity = 1 + self.random.below(50) as i64;
        let line = &mut lines[at];
        let (Value::Integer(part), Value::Date(ship)) = (&line[PARTKEY], &line[SHIPDATE]) else {
            unreachable!("the columns of lineitem have these types")
        };
        let ship = *ship + self.random.below(7) as i32 - 3;
        let price = PartGeneratorIterator::calculate_part_price(i64::from(*part)) * quantity;
        line[EXTENDEDPRICE] = money(price);
        let changes = [
            ("l_quantity", money(quantity * 100)),
            ("l_extendedprice", money(price)),
            ("l_shipdate", Value::Date(ship)),
        ];
        let line_key = [Value::BigInt(key), Value::Integer(at as i32 + 1)];
        transaction.update(&self.lineitem, &line_key, &changes)?;
        let total = money(lines.iter().map(|line| line_total(line)).sum());
        let is_there = transaction.update(&self.orders, &[Value::BigInt(key)], &[("o_totalprice", total)])?;
        assert!(is_there, "an order that has lines is there");
        transaction.commit()?;
        Ok(true)
    }

    fn some_order(&mut self) -> i64 {
        let entered = (self.shared.next_new.load(Ordering::Relaxed) - self.shared.first_new) as u64;
        let number = self.random.below(self.loaded + entered);
        match number < self.loaded {
            true => OrderGenerator::make_order_key(number as i64 + 1),
            false => self.shared.first_new + (number - self.loaded) as i64,
        }
    }
}

/// Whole cents as a value of the tables' money columns.
fn money(cents: i64) -> Value {
    Value::decimal(i128::from(cents), 2)
}

/// The amount that a line adds to its order's total, in cents: the generator's formula, which cuts fractions off
/// twice.
fn line_total(line: &[Value]) -> i64 {
    let cents = |column: usize| match &line[column] {
        Value::Decimal(number) => i64::try_from(number.unscaled).expect("prices fit 64 bits"),
        other => unreachable!("{other} is no amount of money"),
    };
    (cents(EXTENDEDPRICE) * (100 - cents(DISCOUNT)) / 100) * (100 + cents(TAX)) / 100
}

/// A small fast generator of random numbers (splitmix64), the same sequence for the same seed.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_total_is_cut_off_twice() {
        let mut line = vec![Value::Null; 16];
        // 17954.55 less 4 percent is 17236.368, cut to 17236.36; plus 2 percent is 17581.0872, cut to 17581.08.
        line[EXTENDEDPRICE] = money(1_795_455);
        line[DISCOUNT] = money(4);
        line[TAX] = money(2);
        assert_eq!(line_total(&line), 1_758_108);
    }

    #[test]
    fn random_numbers_stay_below_their_end_and_reach_it() {
        let mut random = SplitMix(7);
        let drawn: Vec<u64> = (0..1000).map(|_| random.below(7)).collect();
        assert!((0..7).all(|number| drawn.contains(&number)) && drawn.iter().all(|number| *number < 7));
    }
}
