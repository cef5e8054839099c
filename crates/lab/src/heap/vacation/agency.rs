//! The tables of the agency and what can be done to them.
//!
//! ```text
//!   agency     | cars -> | flights -> | rooms -> | customers -> |       hash tables by number
//!   thing      | places used | places free | places in all | price |
//!   customer   | first reservation -> |
//!   reserved   | kind | number | price | next -> |                      a row of its own for each customer
//! ```

use std::collections::BTreeMap;

use durability::CommitMode;
use heap::{HashTable, Heap, HeapRef, HeapResult, Transaction};

use crate::heap::Random;

/// Kinds of things: cars, flights, rooms.
pub(super) const KINDS: usize = 3;
const CUSTOMERS: usize = KINDS;
const AGENCY_WORDS: u64 = KINDS as u64 + 1;
/// Rows that are filled in by one transaction.
const FILLED: u64 = 64;

const USED: u64 = 0;
const FREE: u64 = 1;
const TOTAL: u64 = 2;
const PRICE: u64 = 3;
const THING_WORDS: u64 = 4;

const FIRST: u64 = 0;
const CUSTOMER_WORDS: u64 = 1;

const KIND: u64 = 0;
const NUMBER: u64 = 1;
const PAID: u64 = 2;
const NEXT: u64 = 3;
const RESERVED_WORDS: u64 = 4;

/// How many reservations there are of each thing, by its kind and number.
type Reserved = BTreeMap<(u64, u64), u64>;

/// The tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agency {
    place: HeapRef,
}

/// A price as the benchmark draws it.
pub(super) fn price(random: &mut Random) -> u64 {
    random.below(5) * 10 + 50
}

impl Agency {
    pub(super) fn at(place: HeapRef) -> Agency {
        Agency { place }
    }

    pub(super) fn place(&self) -> HeapRef {
        self.place
    }

    /// Opens an agency: numbers 1 to `rows` in all tables.
    pub(super) fn create(heap: &Heap, rows: u64) -> HeapResult<Agency> {
        let agency = heap.atomically(CommitMode::Async, |tx| {
            let place = tx.pmalloc(AGENCY_WORDS)?;
            for table in 0..AGENCY_WORDS {
                let created = HashTable::create(tx, rows)?;
                tx.write_ref(place.at(table), created.place())?;
            }
            HeapResult::Ok(Agency { place })
        })?;
        let mut random = Random::new(rows);
        for start in (1..=rows).step_by(FILLED as usize) {
            heap.atomically(CommitMode::Async, |tx| {
                (start..=rows.min(start + FILLED - 1)).try_for_each(|number| {
                    for kind in 0..KINDS {
                        let places = (random.below(5) + 1) * 100;
                        agency.add_places(tx, kind, number, places, price(&mut random))?;
                    }
                    agency.add_customer(tx, number)
                })
            })?;
        }
        Ok(agency)
    }

    fn table(&self, tx: &mut Transaction<'_>, table: usize) -> HeapResult<HashTable> {
        tx.read_ref(self.place.at(table as u64)).map(HashTable::at)
    }

    fn row(&self, tx: &mut Transaction<'_>, table: usize, number: u64) -> HeapResult<Option<HeapRef>> {
        let row = self.table(tx, table)?.get(tx, number)?;
        Ok(row.map(HeapRef::from_word))
    }

    fn remove_row(&self, tx: &mut Transaction<'_>, table: usize, number: u64) -> HeapResult<()> {
        if let Some(row) = self.table(tx, table)?.remove(tx, number)? {
            tx.pfree(HeapRef::from_word(row))?;
        }
        Ok(())
    }

    /// The price of a thing with a free place.
    pub(super) fn price_if_free(&self, tx: &mut Transaction<'_>, kind: usize, number: u64) -> HeapResult<Option<u64>> {
        match self.row(tx, kind, number)? {
            Some(thing) if tx.read(thing.at(FREE))? > 0 => tx.read(thing.at(PRICE)).map(Some),
            _ => Ok(None),
        }
    }

    /// Adds places to a thing, which may be a new one, and sets its price.
    pub(super) fn add_places(
        &self,
        tx: &mut Transaction<'_>,
        kind: usize,
        number: u64,
        places: u64,
        price: u64,
    ) -> HeapResult<()> {
        let thing = match self.row(tx, kind, number)? {
            Some(thing) => thing,
            None => {
                let thing = tx.pmalloc(THING_WORDS)?;
                self.table(tx, kind)?.insert(tx, number, thing.to_word())?;
                thing
            }
        };
        for count in [FREE, TOTAL] {
            let before = tx.read(thing.at(count))?;
            tx.write(thing.at(count), before + places)?;
        }
        tx.write(thing.at(PRICE), price)
    }

    /// Takes free places away, all or none; a thing without any goes.
    pub(super) fn take_places(
        &self,
        tx: &mut Transaction<'_>,
        kind: usize,
        number: u64,
        places: u64,
    ) -> HeapResult<()> {
        let Some(thing) = self.row(tx, kind, number)? else {
            return Ok(());
        };
        let (free, total) = (tx.read(thing.at(FREE))?, tx.read(thing.at(TOTAL))?);
        if free < places {
            return Ok(());
        }
        if total == places {
            return self.remove_row(tx, kind, number);
        }
        tx.write(thing.at(FREE), free - places)?;
        tx.write(thing.at(TOTAL), total - places)
    }

    /// Adds a customer, if there is none of that number.
    pub(super) fn add_customer(&self, tx: &mut Transaction<'_>, number: u64) -> HeapResult<()> {
        if self.row(tx, CUSTOMERS, number)?.is_none() {
            let customer = tx.pmalloc(CUSTOMER_WORDS)?;
            self.table(tx, CUSTOMERS)?.insert(tx, number, customer.to_word())?;
        }
        Ok(())
    }

    /// Moves a place of a thing from one count to another.
    fn move_place(tx: &mut Transaction<'_>, thing: HeapRef, from: u64, to: u64) -> HeapResult<()> {
        let (less, more) = (tx.read(thing.at(from))? - 1, tx.read(thing.at(to))? + 1);
        tx.write(thing.at(from), less)?;
        tx.write(thing.at(to), more)
    }

    /// Reserves a place for a customer that has none there, if one is free.
    pub(super) fn reserve(&self, tx: &mut Transaction<'_>, customer: u64, kind: usize, number: u64) -> HeapResult<()> {
        let (Some(customer), Some(thing)) = (self.row(tx, CUSTOMERS, customer)?, self.row(tx, kind, number)?) else {
            return Ok(());
        };
        if tx.read(thing.at(FREE))? == 0 {
            return Ok(());
        }
        let mut link = customer.at(FIRST);
        loop {
            let reserved = tx.read_ref(link)?;
            if reserved.is_null() {
                break;
            }
            if (tx.read(reserved.at(KIND))?, tx.read(reserved.at(NUMBER))?) == (kind as u64, number) {
                return Ok(());
            }
            link = reserved.at(NEXT);
        }
        Agency::move_place(tx, thing, FREE, USED)?;
        let paid = tx.read(thing.at(PRICE))?;
        let reserved = tx.pmalloc(RESERVED_WORDS)?;
        tx.write_words(reserved, &[kind as u64, number, paid, 0])?;
        tx.write_ref(link, reserved)
    }

    /// Deletes a customer and gives all places back. Returns the bill, if there was one of that number.
    pub(super) fn delete_customer(&self, tx: &mut Transaction<'_>, number: u64) -> HeapResult<Option<u64>> {
        let Some(customer) = self.row(tx, CUSTOMERS, number)? else {
            return Ok(None);
        };
        let mut bill = 0;
        let mut reserved = tx.read_ref(customer.at(FIRST))?;
        while !reserved.is_null() {
            let (kind, number) = (tx.read(reserved.at(KIND))?, tx.read(reserved.at(NUMBER))?);
            bill += tx.read(reserved.at(PAID))?;
            // A thing with used places is never taken away.
            if let Some(thing) = self.row(tx, kind as usize, number)? {
                Agency::move_place(tx, thing, USED, FREE)?;
            }
            let next = tx.read_ref(reserved.at(NEXT))?;
            tx.pfree(reserved)?;
            reserved = next;
        }
        self.remove_row(tx, CUSTOMERS, number)?;
        Ok(Some(bill))
    }

    /// Whether every place that is used has its reservation and every reservation its place. Returns what is wrong, in
    /// words.
    pub(super) fn check(&self, heap: &Heap) -> HeapResult<Result<(), String>> {
        heap.atomically(CommitMode::Async, |tx| {
            let mut reserved = match self.reservations(tx)? {
                Ok(reserved) => reserved,
                Err(what) => return Ok(Err(what)),
            };
            for kind in 0..KINDS {
                let table = self.table(tx, kind)?;
                let things = table.entries(tx)?;
                if things.len() as u64 != table.len(tx)? {
                    return Ok(Err(format!("table {kind} does not count its rows")));
                }
                for (number, thing) in things {
                    let thing = HeapRef::from_word(thing);
                    let mut counts = [0; THING_WORDS as usize];
                    tx.read_words(thing, &mut counts)?;
                    let [used, free, total, price] = counts;
                    let held = reserved.remove(&(kind as u64, number)).unwrap_or(0);
                    if used != held || used + free != total || total == 0 || !(50..100).contains(&price) {
                        return Ok(Err(format!("kind {kind}, number {number}: {counts:?}, and {held} reservations")));
                    }
                }
            }
            Ok(match reserved.iter().next() {
                None => Ok(()),
                Some(lost) => Err(format!("a reservation of nothing: {lost:?}")),
            })
        })
    }

    /// How many reservations customers have of each thing.
    fn reservations(&self, tx: &mut Transaction<'_>) -> HeapResult<Result<Reserved, String>> {
        let mut found = BTreeMap::new();
        for (number, customer) in self.table(tx, CUSTOMERS)?.entries(tx)? {
            let mut own = BTreeMap::new();
            let mut reserved = tx.read_ref(HeapRef::from_word(customer).at(FIRST))?;
            while !reserved.is_null() {
                let thing = (tx.read(reserved.at(KIND))?, tx.read(reserved.at(NUMBER))?);
                if own.insert(thing, ()).is_some() {
                    return Ok(Err(format!("customer {number} has {thing:?} twice")));
                }
                *found.entry(thing).or_insert(0) += 1;
                reserved = tx.read_ref(reserved.at(NEXT))?;
            }
        }
        Ok(Ok(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heap::HeapOptions;

    /// An agency in which customer 1 has car 2 and room 3.
    fn agency() -> (Heap, Agency) {
        let heap = Heap::volatile(HeapOptions { words: 1 << 16, ..HeapOptions::default() });
        let agency = Agency::create(&heap, 5).unwrap();
        let reserve = |tx: &mut Transaction<'_>| {
            agency.reserve(tx, 1, 0, 2)?;
            agency.reserve(tx, 1, 2, 3)?;
            // A second time, and for a customer that does not exist: nothing happens.
            agency.reserve(tx, 1, 0, 2)?;
            agency.reserve(tx, 77, 0, 2)
        };
        heap.atomically(CommitMode::Async, reserve).unwrap();
        assert_eq!(agency.check(&heap).unwrap(), Ok(()));
        (heap, agency)
    }

    fn counts(heap: &Heap, agency: &Agency, kind: usize, number: u64) -> Option<[u64; 4]> {
        let mut tx = heap.begin();
        let thing = agency.row(&mut tx, kind, number).unwrap()?;
        let mut counts = [0; 4];
        tx.read_words(thing, &mut counts).unwrap();
        Some(counts)
    }

    #[test]
    fn a_customer_who_goes_gives_every_place_back_and_pays() {
        let (heap, agency) = agency();
        let (car, room) = (counts(&heap, &agency, 0, 2).unwrap(), counts(&heap, &agency, 2, 3).unwrap());
        assert_eq!((car[0], room[0]), (1, 1));
        let bill = heap.atomically(CommitMode::Async, |tx| agency.delete_customer(tx, 1)).unwrap();
        assert_eq!(bill, Some(car[3] + room[3]));
        assert_eq!(counts(&heap, &agency, 0, 2).unwrap()[..2], [0, car[2]]);
        assert_eq!(heap.atomically(CommitMode::Async, |tx| agency.delete_customer(tx, 1)).unwrap(), None);
        assert_eq!(agency.check(&heap).unwrap(), Ok(()));
    }

    #[test]
    fn places_are_taken_only_where_all_are_free_and_a_thing_without_places_goes() {
        let (heap, agency) = agency();
        let take = |kind, number, places| {
            heap.atomically(CommitMode::Async, |tx| agency.take_places(tx, kind, number, places)).unwrap();
            assert_eq!(agency.check(&heap).unwrap(), Ok(()));
            counts(&heap, &agency, kind, number)
        };
        let before = counts(&heap, &agency, 0, 2).unwrap();
        assert_eq!(take(0, 2, before[2]), Some(before), "one is used");
        let all = counts(&heap, &agency, 0, 1).unwrap()[2];
        assert_eq!(take(0, 1, all), None);
        assert_eq!(take(0, 1, 100), None);
    }

    #[test]
    fn the_check_finds_a_place_too_many_and_a_reservation_too_few() {
        for (word, change) in [(USED, 1), (FREE, 1), (TOTAL, 1), (PRICE, 60), (USED, u64::MAX)] {
            let (heap, agency) = agency();
            let spoil = |tx: &mut Transaction<'_>| {
                let thing = agency.row(tx, 0, 2)?.expect("it is there");
                let before = tx.read(thing.at(word))?;
                tx.write(thing.at(word), before.wrapping_add(change))
            };
            heap.atomically(CommitMode::Async, spoil).unwrap();
            assert!(agency.check(&heap).unwrap().is_err(), "word {word}");
        }
        let (heap, agency) = agency();
        let forget = |tx: &mut Transaction<'_>| {
            let customer = agency.row(tx, CUSTOMERS, 1)?.expect("it is there");
            tx.write_ref(customer.at(FIRST), HeapRef::NULL)
        };
        heap.atomically(CommitMode::Async, forget).unwrap();
        assert!(agency.check(&heap).unwrap().is_err());
    }
}
