//! Work that is tried again when another transaction gets in its way.
use std::time::{Duration, Instant};

use crate::database::handle::Database;
use crate::error::{Error, Result};
use crate::terms::isolation::TransactionOptions;
use crate::transaction::{Begun, Lost, PointStatement, Transaction, run_at_once};

/// How long work is tried again.
const RETRY_TIME: Duration = Duration::from_secs(10);
/// After so many tries in a row that failed the next one rests a little.
const TRIES_WITHOUT_REST: u32 = 4;
const REST_MAX: Duration = Duration::from_millis(20);

impl Database {
    /// Does work in a transaction of its own and commits. After a conflict with another transaction, the work is
    /// rolled back and run again from the start, for some seconds at most: so `work` may be called several times.
    /// Where it lost a row, it first waits until the winner is done, one behind the other, so that a row in great
    /// demand is passed on instead of fought for.
    ///
    /// ```
    /// # use engine::{Column, DataType, Database, Error, Schema, TransactionOptions, Value};
    /// # let db = Database::in_memory();
    /// # let schema = Schema::new(vec![Column::new("id", DataType::BigInt), Column::new("n", DataType::BigInt)], &["id"])?;
    /// # let counters = db.create_table("counters", schema)?;
    /// # db.run(TransactionOptions::default(), |t| t.insert(&counters, &[Value::from(1i64), Value::from(0i64)]).map(drop))?;
    /// let key = [Value::from(1i64)];
    /// let n = db.run(TransactionOptions::default(), |transaction| {
    ///     let Some(row) = transaction.get(&counters, &key)? else { return Ok(0) };
    ///     let Value::BigInt(n) = row[1] else { return Ok(0) };
    ///     transaction.update(&counters, &key, &[("n", Value::from(n + 1))])?;
    ///     Ok::<i64, Error>(n + 1)
    /// })?;
    /// assert_eq!(n, 1);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// What `work` or the commit fails with.
    pub fn run<T, E: From<Error>>(
        &self,
        options: TransactionOptions,
        mut work: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let (mut started, mut tries, mut lost) = (None, 0, None);
        loop {
            let Attempt { result, is_retryable, lost: lost_now } = self.attempt(options, lost, &mut work);
            debug_assert!(result.is_err() || lost_now.is_none(), "a commit has lost no row");
            if result.is_ok() || !is_retryable {
                return result;
            }
            if started.get_or_insert_with(Instant::now).elapsed() >= RETRY_TIME {
                return result;
            }
            tries += 1;
            lost = lost_now;
            if lost.is_none() && tries >= TRIES_WITHOUT_REST {
                std::thread::sleep(Duration::from_micros(50 << (tries - TRIES_WITHOUT_REST).min(8)).min(REST_MAX));
            }
        }
    }

    /// Does work in a transaction of its own, and commits if the work gives something; gives `None`, and leaves nothing behind, where it
    /// does not. It is done once: a conflict is not waited for beyond the lock timeout of the options. Begun and committed where it
    /// stands, a short transaction takes a tenth fewer instructions than one that the caller [begins](Self::begin_with) and holds.
    ///
    /// # Errors
    /// [`Error::TooManyTransactions`] if as many run as there may be; those of [`Transaction::commit`].
    pub fn run_once<T>(
        &self,
        options: TransactionOptions,
        work: impl FnOnce(&mut Transaction) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut transaction = Transaction::of(Begun::new(self.shared.anchor(), &options)?, options);
        let Some(done) = work(&mut transaction) else { return Ok(None) };
        transaction.finish()?;
        Ok(Some(done))
    }

    /// Runs statements by key as a transaction of their own, and commits: the same as [`run`](Self::run) with
    /// [`run_points`](Transaction::run_points), for a fraction of what a transaction costs that may go on with anything.
    ///
    /// ```
    /// # use engine::{Column, DataType, Database, PointAction, PointStatement, Schema, TransactionOptions};
    /// # let db = Database::in_memory();
    /// # let columns = vec![Column::new("id", DataType::BigInt), Column::new("balance", DataType::BigInt)];
    /// # let accounts = db.create_table("accounts", Schema::new(columns, &["id"])?)?;
    /// let (row, balance) = (accounts.point_access(&[0, 1])?.unwrap(), accounts.point_access(&[1])?.unwrap());
    /// let insert = PointStatement::new(&row, 1, PointAction::Insert(&[1, 70]));
    /// db.run_points(TransactionOptions::default(), &mut [insert])?;
    ///
    /// let mut before = [0];
    /// let read = PointStatement::new(&balance, 1, PointAction::Read(&mut before));
    /// let update = PointStatement::new(&balance, 1, PointAction::Update(&[80]));
    /// db.run_points(TransactionOptions::default(), &mut [read, update])?;
    /// assert_eq!(before, [70]);
    /// # Ok::<(), engine::Error>(())
    /// ```
    ///
    /// Returns how often it was started again, because of others.
    ///
    /// # Errors
    /// Those of the statements and of the commit. None of the statements is done then.
    pub fn run_points(&self, options: TransactionOptions, statements: &mut [PointStatement<'_>]) -> Result<u64> {
        if run_at_once(&self.shared, &options, statements)? {
            return Ok(0);
        }
        let mut tries = 0;
        self.run(options, |transaction| {
            tries += 1;
            transaction.run_points(statements)
        })?;
        debug_assert!(tries > 0, "work that has ended well was begun");
        Ok(tries - 1)
    }

    fn attempt<T, E: From<Error>>(
        &self,
        options: TransactionOptions,
        lost: Option<Lost>,
        work: &mut impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Attempt<T, E> {
        let failed =
            |error: Error| Attempt { is_retryable: error.is_retryable(), result: Err(error.into()), lost: None };
        let mut transaction = match Begun::new(self.shared.anchor(), &options) {
            Ok(begun) => Transaction::of(begun, options),
            Err(error) => return failed(error),
        };
        // The place in the queue is kept until the work is done, or has failed.
        let mut place = lost.as_ref().map(|lost| transaction.place(&self.shared, lost));
        if let (Some(place), Some(lost)) = (&mut place, &lost)
            && let Err(error) = transaction.follow(place, lost)
        {
            return failed(error);
        }
        match work(&mut transaction) {
            Ok(value) => {
                drop(place);
                match transaction.finish() {
                    Ok(_) => Attempt { result: Ok(value), is_retryable: false, lost: None },
                    Err(error) => failed(error),
                }
            }
            Err(error) => {
                let (is_retryable, lost) = transaction.loss();
                // The next try would meet what this one wrote.
                if is_retryable {
                    transaction.undo_at_once();
                }
                transaction.rollback();
                Attempt { result: Err(error), is_retryable, lost }
            }
        }
    }
}

/// The result of one try.
struct Attempt<T, E> {
    result: Result<T, E>,
    is_retryable: bool,
    lost: Option<Lost>,
}
