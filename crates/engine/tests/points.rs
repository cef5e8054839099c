//! Statements by key as words do what the general calls do: two databases get the same interleaved transactions at every level of
//! isolation, one by words and in groups, one by values and one by one, and must answer the same.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::{
    Column, DataType, Database, Durability, Error, IndexDefinition, Isolation, LockStrength, LockWait, OpenOptions,
    PointAccess, PointAction, PointStatement, Schema, Table, Transaction, TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const KEYS: i64 = 12;

/// How often a number was added by [`Transaction::update_at_once`].
static DONE_AT_ONCE: AtomicUsize = AtomicUsize::new(0);

/// A row's change or look, with the columns that it names.
#[derive(Clone, Debug)]
enum Statement {
    Read(i64, usize),
    Update(i64, usize, Vec<i64>),
    /// Adds a number to columns.
    Add(i64, usize, i64),
    Insert(i64, Vec<i64>),
    Upsert(i64, Vec<i64>),
    Delete(i64),
}

/// Column sets: the first of them has all columns that are words, in their order.
const SETS: [&[usize]; 6] = [&[0, 1, 2, 3], &[1], &[3, 1], &[2], &[0], &[2, 1]];

/// What a statement answered: the words, `None` where there is no row; or the code of its error.
type Answer = Result<Option<Vec<Option<i64>>>, &'static str>;

struct Side {
    db: Database,
    table: Table,
    accesses: Vec<PointAccess>,
}

fn schema() -> Schema {
    let columns = vec![
        Column::new("id", DataType::BigInt),
        Column::new("a", DataType::BigInt),
        Column::new("b", DataType::Integer),
        Column::new("c", DataType::BigInt).not_null(),
        Column::new("t", DataType::TEXT),
    ];
    Schema::new(columns, &["id"]).unwrap()
}

fn value(column: usize, word: i64) -> Value {
    if column == 2 { Value::Integer(word as i32) } else { Value::BigInt(word) }
}

fn word(value: &Value) -> Option<i64> {
    match value {
        Value::BigInt(word) => Some(*word),
        Value::Integer(word) => Some(i64::from(*word)),
        _ => None,
    }
}

impl Side {
    fn new(directory: Option<&std::path::Path>) -> Side {
        let options = OpenOptions { merge_tail_records: Some(8), ..OpenOptions::default() };
        let db = match directory {
            Some(directory) => Database::open_with(directory, options).unwrap(),
            None => Database::in_memory_with(&options),
        };
        let table = db.create_table("t", schema()).unwrap();
        let accesses = SETS.iter().map(|set| table.point_access(set).unwrap().unwrap()).collect();
        Side { db, table, accesses }
    }

    fn by_values(&self, transaction: &mut Transaction, statement: &Statement) -> Answer {
        let key = |key: &i64| [Value::BigInt(*key)];
        let changes = |set: usize, words: &[i64]| -> Vec<(usize, Value)> {
            SETS[set].iter().zip(words).map(|(column, word)| (*column, value(*column, *word))).collect()
        };
        let insert = |transaction: &mut Transaction, words: &[i64]| {
            let mut row: Vec<Value> = changes(0, words).into_iter().map(|(_, value)| value).collect();
            row.push(Value::Null);
            transaction.insert(&self.table, &row).map(drop)
        };
        let found = |is_found: bool| is_found.then(Vec::new);
        let answer = match statement {
            Statement::Read(id, set) => transaction
                .get(&self.table, &key(id))
                .map(|row| row.map(|row| SETS[*set].iter().map(|column| word(&row[*column])).collect())),
            Statement::Update(id, set, words) => {
                transaction.update_columns(&self.table, &key(id), &changes(*set, words)).map(found)
            }
            Statement::Insert(_, words) => insert(transaction, words).map(|()| None),
            Statement::Upsert(id, words) => {
                match transaction.update_columns(&self.table, &key(id), &changes(0, words)) {
                    Ok(false) => insert(transaction, words).map(|()| None),
                    other => other.map(found),
                }
            }
            Statement::Delete(id) => transaction.delete(&self.table, &key(id)).map(found),
            Statement::Add(id, set, by) => self.add(transaction, *id, SETS[*set], *by),
        };
        answer.map_err(|error| error.sqlstate())
    }

    /// Answers up to the first error.
    fn by_words(&self, transaction: &mut Transaction, statements: &[Statement]) -> Vec<Answer> {
        let mut answers = Vec::new();
        for statement in statements {
            // Each is a group of its own, so that errors are told apart.
            answers.push(self.one_by_words(transaction, statement).map_err(|error| error.sqlstate()));
            if answers.last().is_some_and(Result::is_err) {
                break;
            }
        }
        answers
    }

    fn one_by_words(
        &self,
        transaction: &mut Transaction,
        statement: &Statement,
    ) -> Result<Option<Vec<Option<i64>>>, Error> {
        let mut words: Vec<u64> = match statement {
            Statement::Read(_, set) => vec![0; SETS[*set].len()],
            Statement::Update(_, _, words) | Statement::Insert(_, words) | Statement::Upsert(_, words) => {
                words.iter().map(|word| *word as u64).collect()
            }
            Statement::Delete(_) | Statement::Add(..) => Vec::new(),
        };
        let (key, set, action) = match statement {
            Statement::Read(key, set) => (key, *set, PointAction::Read(&mut words)),
            Statement::Update(key, set, _) => (key, *set, PointAction::Update(&words)),
            Statement::Insert(key, _) => (key, 0, PointAction::Insert(&words)),
            Statement::Upsert(key, _) => (key, 0, PointAction::Upsert(&words)),
            Statement::Delete(key) => (key, 0, PointAction::Delete),
            Statement::Add(key, set, by) => {
                return match self.add_at_once(transaction, *key, SETS[*set], *by)? {
                    true => Ok(Some(Vec::new())),
                    false => self.add(transaction, *key, SETS[*set], *by),
                };
            }
        };
        let mut statement = PointStatement::new(&self.accesses[set], *key, action);
        transaction.run_points(std::slice::from_mut(&mut statement))?;
        Ok(answer_of(&statement))
    }

    /// Adds a number to columns without NULL.
    fn add(
        &self,
        transaction: &mut Transaction,
        key: i64,
        columns: &[usize],
        by: i64,
    ) -> Result<Option<Vec<Option<i64>>>, Error> {
        let compute = |read: &[Value]| {
            columns.iter().zip(read).map(|(column, read)| Some((*column, value(*column, word(read)? + by)))).collect()
        };
        let found = transaction.update_computed(&self.table, &[Value::BigInt(key)], columns, compute)?;
        Ok(if found == Some(true) { Some(Vec::new()) } else { None })
    }

    fn add_at_once(&self, transaction: &mut Transaction, key: i64, columns: &[usize], by: i64) -> Result<bool, Error> {
        let Some(update) = self.table.words_update(columns, columns)? else { return Ok(false) };
        let is_done = transaction.update_at_once(&self.table, &update, key, |read, new| {
            for (at, (read, new)) in read.iter().zip(new).enumerate() {
                let sum = value(columns[at], word(&update.value(at, *read)).unwrap() + by);
                *new = update.word(at, &sum)?;
            }
            Some(())
        })?;
        DONE_AT_ONCE.fetch_add(usize::from(is_done), Ordering::Relaxed);
        Ok(is_done)
    }

    /// Runs reads and updates as one group; `None` if one fails.
    fn in_a_group(
        &self,
        transaction: &mut Transaction,
        reads: &[(i64, usize)],
        updates: &[(i64, usize, Vec<u64>)],
    ) -> Option<Vec<Answer>> {
        let mut out: Vec<Vec<u64>> = reads.iter().map(|(_, set)| vec![0; SETS[*set].len()]).collect();
        let mut group: Vec<PointStatement<'_>> = Vec::new();
        for (key, set, words) in updates {
            group.push(PointStatement::new(&self.accesses[*set], *key, PointAction::Update(words)));
        }
        for ((key, set), out) in reads.iter().zip(&mut out) {
            group.push(PointStatement::new(&self.accesses[*set], *key, PointAction::Read(out)));
        }
        transaction.run_points(&mut group).ok()?;
        Some(group.iter().map(|statement| Ok(answer_of(statement))).collect())
    }

    /// Inserts rows whose keys and records follow one another, so that the index has them as a run.
    fn insert_run(&self) {
        let mut transaction = self.db.begin().unwrap();
        for key in 0..64 {
            let row = [Value::BigInt(key), Value::BigInt(-key), Value::Null, Value::BigInt(key), Value::Null];
            transaction.insert(&self.table, &row).unwrap();
        }
        transaction.commit().unwrap();
    }

    /// All rows.
    fn rows(&self) -> Vec<Option<Vec<Value>>> {
        let transaction = self.db.begin().unwrap();
        (0..KEYS).map(|key| transaction.get(&self.table, &[Value::BigInt(key)]).unwrap()).collect()
    }
}

fn answer_of(statement: &PointStatement<'_>) -> Option<Vec<Option<i64>>> {
    let read = |words: &[u64]| -> Vec<Option<i64>> {
        let is_null = |at: usize| statement.nulls >> at & 1 != 0;
        words.iter().enumerate().map(|(at, word)| (!is_null(at)).then_some(*word as i64)).collect()
    };
    statement.is_found.then(|| if let PointAction::Read(words) = &statement.action { read(words) } else { Vec::new() })
}

fn random_statement(rng: &mut StdRng) -> Statement {
    let (key, set) = (rng.random_range(0..KEYS), rng.random_range(0..SETS.len()));
    let mut words = |set: usize| -> Vec<i64> {
        let word = |column: &usize| if *column == 0 { key } else { rng.random_range(-50..50) };
        SETS[set].iter().map(word).collect()
    };
    let row = words(0);
    match rng.random_range(0..20) {
        0..8 => Statement::Read(key, set),
        8..11 => Statement::Add(key, set, row[1]),
        11..15 => {
            let words = SETS[set].iter().map(|column| row[*column]).collect();
            Statement::Update(key, set, words)
        }
        15 => Statement::Insert(key, row),
        16..18 => Statement::Upsert(key, row),
        18 => Statement::Delete(key),
        // A key that moves, at times.
        _ => Statement::Update(key, 4, vec![(key + 1) % KEYS]),
    }
}

fn options(isolation: Isolation, is_durable: bool) -> TransactionOptions {
    let durability = if is_durable { Durability::Partition } else { Durability::Async };
    TransactionOptions { lock_timeout: Some(Duration::ZERO), durability, ..TransactionOptions::at(isolation) }
}

/// What happens beside transactions.
fn beside(sides: &[Side; 2], rng: &mut StdRng) {
    match rng.random_range(0..30) {
        0..4 => sides.iter().for_each(|side| assert!(side.db.merge_now() < 100)),
        4 => {
            let name = format!("i{}", rng.random_range(0..1_000_000));
            for side in sides {
                side.db.create_index("t", IndexDefinition::new(name.as_str(), &[1])).unwrap();
            }
        }
        5 => {
            for index in sides[0].table.indexes() {
                sides.iter().for_each(|side| side.db.drop_index(&index.definition().name).unwrap());
            }
        }
        _ => {}
    }
}

fn run(seed: u64, isolation: Isolation, directories: [Option<&std::path::Path>; 2], keeps_keys: bool) {
    let mut rng = StdRng::seed_from_u64(seed);
    let sides = directories.map(Side::new);
    if seed.is_multiple_of(2) {
        sides.iter().for_each(Side::insert_run);
    }
    let begin = |side: &Side| side.db.begin_with(options(isolation, directories[0].is_some())).unwrap();
    for _ in 0..12 {
        let mut open = [0, 1].map(|_| sides.each_ref().map(|side| Some(begin(side))));
        for _ in 0..24 {
            let pair = &mut open[rng.random_range(0..2)];
            let [Some(values), Some(words)] = pair else { continue };
            match rng.random_range(0..12) {
                0 => {
                    let commits = rng.random_bool(0.8);
                    let [values, words] = pair.each_mut().map(|transaction| transaction.take().unwrap());
                    let end = |transaction: Transaction| {
                        if commits { transaction.commit().map(drop).map_err(|error| error.sqlstate()) } else { Ok(()) }
                    };
                    assert_eq!(end(values), end(words), "commit, seed {seed}");
                }
                1 => {
                    let key = [Value::BigInt(rng.random_range(0..KEYS))];
                    let lock = |side: &Side, transaction: &mut Transaction| {
                        let view = transaction.view().unwrap();
                        let options = engine::ScanOptions { with_rid: true, ..Default::default() };
                        let row = side.table.lookup(&view, &key, &options).unwrap();
                        let rids = row.column(0).as_any().downcast_ref::<arrow_array::UInt64Array>().unwrap();
                        let rid = rids.values().first()?;
                        let locked =
                            transaction.lock_row(&side.table, *rid, LockStrength::Share, LockWait::SkipLocked, &view);
                        Some(locked.map_err(|error| error.sqlstate()))
                    };
                    assert_eq!(lock(&sides[0], values), lock(&sides[1], words), "share lock, seed {seed}");
                }
                _ => {
                    let mut statements: Vec<Statement> =
                        (0..rng.random_range(1..20)).map(|_| random_statement(&mut rng)).collect();
                    if keeps_keys {
                        statements.retain(|statement| {
                            !matches!(statement, Statement::Update(_, 0 | 4, _) | Statement::Add(_, 0 | 4, _))
                        });
                    }
                    // It sets the key as well, if to what it is.
                    if seed % 3 == 1 {
                        statements.retain(|statement| !matches!(statement, Statement::Upsert(..)));
                    }
                    let by_words = sides[1].by_words(words, &statements);
                    for (statement, answer) in statements.iter().zip(by_words) {
                        assert_eq!(sides[0].by_values(values, statement), answer, "{statement:?}, seed {seed}");
                    }
                }
            }
        }
        drop(open);
        beside(&sides, &mut rng);
        assert_eq!(sides[0].rows(), sides[1].rows(), "seed {seed}");
    }
    let whole = sides[0].rows();
    if let [Some(_), Some(directory)] = directories {
        let [_, side] = sides;
        drop(side);
        let db = Database::open(directory).unwrap();
        let table = db.table("t").unwrap();
        let reopened = Side { db, table, accesses: Vec::new() };
        assert_eq!(reopened.rows(), whole, "what the log has, seed {seed}");
    }
}

#[test]
fn words_do_what_values_do_at_every_level() {
    for isolation in [Isolation::Snapshot, Isolation::ReadCommitted, Isolation::Serializable] {
        (0..12).for_each(|seed| run(seed, isolation, [None, None], seed % 3 > 0));
    }
    assert!(DONE_AT_ONCE.load(Ordering::Relaxed) > 100, "{DONE_AT_ONCE:?} updates were done at once");
}

#[test]
fn words_leave_the_same_in_the_log() {
    for isolation in [Isolation::Snapshot, Isolation::ReadCommitted, Isolation::Serializable] {
        for seed in 100..102 {
            let directories = [0, 1].map(|_| tempfile::tempdir().unwrap());
            let [one, other] = &directories;
            run(seed, isolation, [Some(one.path()), Some(other.path())], true);
        }
    }
}

/// Statements of a group see what those before them did, rows come twice, and some are not there.
#[test]
fn a_group_is_done_in_its_order() {
    let side = Side::new(None);
    let mut transaction = side.db.begin().unwrap();
    for key in 0..KEYS {
        let row = [Value::BigInt(key), Value::Null, Value::Integer(1), Value::BigInt(key), Value::from("text")];
        transaction.insert(&side.table, &row).unwrap();
    }
    transaction.commit().unwrap();
    for merges in [false, true] {
        if merges {
            side.db.merge_now();
        }
        for isolation in [Isolation::Snapshot, Isolation::ReadCommitted, Isolation::Serializable] {
            let mut transaction = side.db.begin_with(options(isolation, false)).unwrap();
            let updates: Vec<_> = (0..KEYS + 2).map(|key| (key % (KEYS + 1), 2, vec![key as u64, 7])).collect();
            let reads: Vec<_> = (0..KEYS + 1).map(|key| (key, 0)).collect();
            let answers = side.in_a_group(&mut transaction, &reads, &updates).unwrap();
            let (updated, read) = answers.split_at(updates.len());
            let is_there = |key: i64| key < KEYS;
            assert!(
                (0..KEYS + 2)
                    .all(|key| updated[key as usize].as_ref().unwrap().is_some() == is_there(key % (KEYS + 1)))
            );
            for key in 0..KEYS + 1 {
                let c = if key == 0 { KEYS + 1 } else { key };
                let row = is_there(key).then(|| vec![Some(key), Some(7), Some(1), Some(c)]);
                assert_eq!(read[key as usize], Ok(row), "{isolation:?}");
            }
            transaction.rollback();
        }
    }
    let rows = side.rows();
    assert!(
        rows.iter()
            .all(|row| row.as_ref().unwrap()[1] == Value::Null && row.as_ref().unwrap()[4] == Value::from("text"))
    );
}

#[test]
fn a_serializable_transaction_is_held_to_what_it_read_as_words() {
    let side = Side::new(None);
    let statement = |key: i64| Statement::Insert(key, vec![key, 1, 1, 1]);
    let mut transaction = side.db.begin().unwrap();
    assert!(side.by_words(&mut transaction, &[statement(1), statement(2)]).iter().all(Result::is_ok));
    transaction.commit().unwrap();
    let serializable = || side.db.begin_with(TransactionOptions::at(Isolation::Serializable)).unwrap();
    // Each reads what the other writes; then a row that is not there yet.
    for (read, written) in [([1, 2], [2, 1]), ([3, 3], [3, 3])] {
        let mut both = [serializable(), serializable()];
        for ((transaction, read), written) in both.iter_mut().zip(read).zip(written) {
            let mut out = [0];
            transaction.get_words(&side.accesses[1], read, &mut out).unwrap();
            if written < 3 {
                assert!(transaction.update_words(&side.accesses[1], written, &[5]).unwrap());
            }
        }
        let [mut first, second] = both;
        if written[0] == 3 {
            assert!(side.by_words(&mut first, &[statement(3)])[0].is_ok());
            let mut second = second;
            assert!(second.update_words(&side.accesses[1], 1, &[6]).unwrap());
            first.commit().unwrap();
            assert!(matches!(second.commit(), Err(Error::ReadChanged)));
        } else {
            first.commit().unwrap();
            assert!(matches!(second.commit(), Err(Error::ReadChanged)));
        }
    }
}

/// Its reads are noted with its writes to the same table, without a latch.
#[test]
fn a_serializable_group_is_held_to_what_it_read_beside_what_it_writes() {
    let side = Side::new(None);
    side.insert_run();
    for merges in [false, true] {
        if merges {
            side.db.merge_now();
        }
        for changed in [None, Some(40), Some(7), Some(2)] {
            let mut transaction = side.db.begin_with(TransactionOptions::at(Isolation::Serializable)).unwrap();
            // More than there is room for, in several groups.
            let reads: Vec<_> = (0..38).map(|key| (key, 1)).collect();
            side.in_a_group(&mut transaction, &reads, &[(50, 1, vec![9])]).unwrap();
            if let Some(key) = changed {
                side.db
                    .run(options(Isolation::Snapshot, false), |other| other.update_words(&side.accesses[1], key, &[8]))
                    .unwrap();
            } else {
                // Others have committed since, elsewhere.
                side.db.create_table(&format!("u{merges}"), schema()).unwrap();
            }
            let is_changed = changed.is_some_and(|key| key < 38);
            assert_eq!(transaction.commit().is_err(), is_changed, "{changed:?}, {merges}");
        }
    }
}

#[test]
fn what_is_no_value_is_refused() {
    let side = Side::new(None);
    let mut transaction = side.db.begin().unwrap();
    let row = [1, 2, 3, 4];
    let mut insert = |row: &[u64], key| {
        transaction.run_points(&mut [PointStatement::new(&side.accesses[0], key, PointAction::Insert(row))])
    };
    insert(&row, 1).unwrap();
    assert!(matches!(insert(&row, 1), Err(Error::DuplicateKey { .. })));
    assert!(matches!(insert(&row, 2), Err(Error::BadValue { .. })), "another key than the row's");
    assert!(matches!(insert(&[5, 2, 1 << 31, 4], 5), Err(Error::BadValue { .. })));
    assert!(matches!(insert(&[5, 2], 5), Err(Error::WrongWidth { .. })));
    let partial = PointStatement::new(&side.accesses[1], 6, PointAction::Insert(&[1]));
    assert!(matches!(transaction.run_points(&mut [partial]), Err(Error::NullInColumn { .. })));
    assert!(matches!(transaction.update_words(&side.accesses[3], 1, &[1 << 40]), Err(Error::BadValue { .. })));
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
    let mut reader = side.db.begin_with(options).unwrap();
    assert!(matches!(reader.update_words(&side.accesses[1], 1, &[1]), Err(Error::ReadOnlyTransaction)));
    let other = Database::in_memory();
    let mut stranger = other.begin().unwrap();
    assert!(matches!(stranger.get_words(&side.accesses[1], 1, &mut [0]), Err(Error::NoSuchTable(_))));
}

#[test]
fn no_number_that_several_threads_add_at_once_is_lost() {
    const ADDED: i64 = 3_000;
    let side = Side::new(None);
    side.insert_run();
    let options = TransactionOptions::at(Isolation::ReadCommitted);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..ADDED {
                    let mut transaction = side.db.begin_with(options).unwrap();
                    if !side.add_at_once(&mut transaction, 3, &[1], 1).unwrap() {
                        side.add(&mut transaction, 3, &[1], 1).unwrap().unwrap();
                    }
                    transaction.commit().unwrap();
                }
            });
        }
    });
    let row = side.rows()[3].clone().unwrap();
    assert_eq!(row[1], Value::BigInt(4 * ADDED - 3));
}
