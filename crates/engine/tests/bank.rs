//! Transfers between accounts at every isolation level, while others sum all accounts in every way that there is.
//!
//! One statement sees one snapshot at every level, so a single sum is right at every level. Several statements of one
//! transaction agree with each other from SNAPSHOT on.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use engine::{
    Column, DataType, Database, Error, Isolation, OpenOptions, Schema, Sum, Table, Transaction, TransactionOptions,
    Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const ACCOUNTS: i64 = 300;
const BALANCE: i64 = 1000;
const TRANSFERS: u64 = 400;
const TOTAL: i64 = ACCOUNTS * BALANCE;

fn bank() -> (Database, Table) {
    let small = OpenOptions { range_records: Some(64), merge_tail_records: Some(32), ..OpenOptions::default() };
    let db = Database::in_memory_with(&small);
    let columns = ["account", "balance"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
    let table = db.create_table("bank", Schema::new(columns, &["account"]).unwrap()).unwrap();
    let load = |transaction: &mut Transaction| -> Result<(), Error> {
        (0..ACCOUNTS).try_for_each(|id| transaction.insert(&table, &[Value::from(id), Value::from(BALANCE)]).map(drop))
    };
    db.run(TransactionOptions::default(), load).unwrap();
    (db, table)
}

fn balance(row: Option<Vec<Value>>) -> i64 {
    match row.as_deref() {
        Some([_, Value::BigInt(balance)]) => *balance,
        other => panic!("{other:?}"),
    }
}

/// Moves an amount by way of a third account, of which a savepoint takes the traces back.
fn transfer(
    transaction: &mut Transaction,
    table: &Table,
    [from, to, over]: [i64; 3],
    amount: i64,
) -> Result<(), Error> {
    let add = |transaction: &mut Transaction, account: i64, amount: i64| {
        let key = [Value::from(account)];
        let balance = balance(transaction.get_for_update(table, &key)?);
        transaction.update(table, &key, &[("balance", Value::from(balance + amount))]).map(drop)
    };
    add(transaction, from, -amount)?;
    let savepoint = transaction.savepoint();
    add(transaction, over, amount)?;
    transaction.rollback_to(savepoint)?;
    add(transaction, to, amount)
}

fn sum_by_scan(transaction: &Transaction, table: &Table) -> i64 {
    let batches = transaction.scan(table, &["balance"]).unwrap().batches().map(Result::unwrap);
    batches.map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>()).sum()
}

fn sum_of_pages(transaction: &Transaction, table: &Table) -> i64 {
    match table.aggregate(&transaction.view().unwrap(), &[], &[1]).unwrap().columns[0].sum {
        Sum::Integer(sum) => sum as i64,
        ref other => panic!("{other:?}"),
    }
}

fn sum_by_key(transaction: &Transaction, table: &Table) -> i64 {
    (0..ACCOUNTS).map(|id| balance(transaction.get(table, &[Value::from(id)]).unwrap())).sum()
}

fn run(isolation: Isolation) {
    let (db, table) = &bank();
    let (is_over, sums) = (&AtomicBool::new(false), &AtomicU64::new(0));
    let options = TransactionOptions::at(isolation);
    thread::scope(|scope| {
        let transfers: Vec<_> = (0..3)
            .map(|seed| {
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed);
                    for _ in 0..TRANSFERS {
                        let accounts = std::array::from_fn(|_| random.random_range(0..ACCOUNTS / 20));
                        let amount = random.random_range(1..50);
                        db.run(options, |transaction| transfer(transaction, table, accounts, amount)).unwrap();
                    }
                })
            })
            .collect();
        let summing = scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let transaction = db.begin_with(options).unwrap();
                assert_eq!(sum_by_scan(&transaction, table), TOTAL, "{isolation}");
                assert_eq!(sum_of_pages(&transaction, table), TOTAL, "{isolation}");
                if isolation != Isolation::ReadCommitted {
                    assert_eq!(sum_by_key(&transaction, table), TOTAL, "{isolation}");
                }
                // Nothing was written, so there is nothing to fail but what was seen: a serializable transfer whose writes are
                // seen may end without them, as others may change the row that its savepoint gave free.
                let ended = transaction.commit();
                let may_depend = isolation == Isolation::Serializable;
                assert!(
                    ended.is_ok() || may_depend && matches!(ended, Err(Error::DependencyFailed)),
                    "{isolation}: {ended:?}"
                );
                sums.fetch_add(1, Ordering::Relaxed);
            }
        });
        transfers.into_iter().for_each(|thread| thread.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        summing.join().unwrap();
    });
    assert!(sums.load(Ordering::Relaxed) > 0);
    let end = db.begin().unwrap();
    assert_eq!((sum_by_key(&end, table), sum_of_pages(&end, table)), (TOTAL, TOTAL));
    assert_eq!(db.running_transactions().iter().filter(|running| running.waits.is_some()).count(), 0);
}

#[test]
fn sums_are_right_at_every_level() {
    [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable].into_iter().for_each(run);
}
