//! A rule over several rows that two transactions could break together, and how SERIALIZABLE keeps it.
//!
//! `cargo run --release -p lstore --example serializable`
//!
//! Two doctors are on call, and one must stay. Each looks whether the other is there, and leaves. With each in a snapshot of its
//! own both would leave (write skew). Under [`lstore::Isolation::Serializable`] one commit fails, because what it has read has changed,
//! and [`lstore::Database::run`] runs that transaction again from the start: it then sees that it must stay.
use std::error::Error;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use lstore::{Column, DataType, Database, Isolation, Schema, Table, Transaction, TransactionOptions, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let db = Database::in_memory();
    let columns = vec![Column::new("doctor", DataType::BigInt), Column::new("on_call", DataType::Boolean)];
    let doctors = db.create_table("doctors", Schema::new(columns, &["doctor"])?)?;
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        db.run(TransactionOptions::default(), |transaction| {
            for doctor in [1i64, 2] {
                transaction.delete(&doctors, &[Value::from(doctor)])?;
                transaction.insert(&doctors, &[Value::from(doctor), Value::from(true)])?;
            }
            Ok::<(), lstore::Error>(())
        })?;
        let tries = both_leave(&db, &doctors, isolation)?;
        let left = on_call(&mut db.begin()?, &doctors)?;
        println!("{isolation}: {left} on call, {tries} tries");
    }
    Ok(())
}

/// Two threads each run a doctor's transaction, at the same moment the first time. Returns how often they were run.
fn both_leave(db: &Database, doctors: &Table, isolation: Isolation) -> lstore::Result<u32> {
    let (both_have_looked, tries) = (Barrier::new(2), AtomicU32::new(0));
    let leave = |doctor: i64| {
        let mut is_first = true;
        db.run(TransactionOptions::at(isolation), |transaction| {
            tries.fetch_add(1, Ordering::Relaxed);
            let others = on_call(transaction, doctors)? > 1;
            if std::mem::take(&mut is_first) {
                both_have_looked.wait();
            }
            if others {
                transaction.update(doctors, &[Value::from(doctor)], &[("on_call", Value::from(false))])?;
            }
            Ok::<(), lstore::Error>(())
        })
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| leave(1));
        leave(2)?;
        other.join().expect("the thread does not panic")
    })?;
    Ok(tries.into_inner())
}

/// How many doctors are on call, as the transaction sees it.
fn on_call(transaction: &mut Transaction, doctors: &Table) -> lstore::Result<usize> {
    let mut count = 0;
    for doctor in [1i64, 2] {
        let row = transaction.get(doctors, &[Value::from(doctor)])?;
        count += usize::from(row.is_some_and(|row| row[1] == Value::from(true)));
    }
    Ok(count)
}
