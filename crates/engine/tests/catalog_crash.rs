//! Power loss at every step of transactions that change the catalog and write rows: each is recovered whole or not at all, and
//! what was acknowledged is there.
use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Column, DataType, Database, Error, IndexDefinition, OpenOptions, Retention, Schema, Transaction,
    TransactionOptions, Value, ViewDefinition,
};
use testkit::FaultyDevice;

/// By name, the rows of a table and the seconds for which it keeps its past, or of a view how many columns it has.
type Contents = BTreeMap<String, (u64, u64)>;

fn open(device: &FaultyDevice) -> Result<Database, Error> {
    let options = OpenOptions { merge_threads: Some(0), ..OpenOptions::default() };
    Database::open_on(Arc::new(device.clone()), options)
}

fn schema() -> Schema {
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("text", DataType::TEXT)];
    Schema::new(columns, &["id"]).unwrap()
}

fn fill(transaction: &mut Transaction, name: &str, rows: i64, text: &str) -> Result<(), Error> {
    let table = transaction.table_to_write(name)?;
    (0..rows).try_for_each(|id| transaction.insert(&table, &[Value::from(id), Value::from(text)]).map(drop))
}

fn contents(db: &Database) -> Contents {
    let look = |name: String| {
        let table = db.table(&name).unwrap();
        assert_eq!(table.name(), name);
        let rows = table.aggregate(&db.read_view().unwrap(), &[], &[]).unwrap().rows;
        let Retention::For(kept) = table.settings().retention else { return (name, (rows, 0)) };
        (name, (rows, kept.as_secs()))
    };
    let views = db.begin().unwrap().views_now().into_iter();
    let views = views.map(|(name, view)| (name, (0, view.schema().columns().len() as u64)));
    db.table_names().into_iter().map(look).chain(views).collect()
}

/// Puts a table of another column in the place of one that is there, with the rows of that, and an index of the new column.
fn widen(transaction: &mut Transaction, name: &str) -> Result<(), Error> {
    transaction.lock_table(name)?;
    let old = transaction.table(name)?;
    let rows = (0..9).map(|id| transaction.get(&old, &[Value::from(id as i64)]));
    let rows: Vec<Vec<Value>> = rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let mut columns = schema().columns().to_vec();
    columns.push(Column::new("more", DataType::BigInt));
    let settings = transaction.settings(&old);
    let new = transaction.replace_table(name, Schema::new(columns, &["id"]).unwrap(), settings)?;
    for row in rows {
        let row: Vec<Value> = row.into_iter().chain([Value::from(7i64)]).collect();
        transaction.insert(&new, &row)?;
    }
    transaction.create_index(name, IndexDefinition::new("more", &[2])).map(drop)
}

fn view_of(columns: &[&str]) -> (Schema, ViewDefinition) {
    let columns = columns.iter().map(|name| Column::new(*name, DataType::BigInt)).collect();
    let definition = ViewDefinition { query: "SELECT id FROM last".into(), ..ViewDefinition::default() };
    (Schema::new(columns, &[]).unwrap(), definition)
}

type Work = fn(&mut Transaction) -> Result<(), Error>;

/// The transactions, one after the other.
const WORK: [Work; 10] = [
    |transaction| {
        transaction.create_table("a", schema())?;
        fill(transaction, "a", 3, "x")?;
        transaction.create_table("b", schema())?;
        fill(transaction, "b", 2, "y")
    },
    |transaction| {
        transaction.truncate_table("a")?;
        fill(transaction, "a", 5, "z")?;
        transaction.set_retention("a", Retention::For(std::time::Duration::from_secs(7)))
    },
    |transaction| {
        transaction.rename_table("a", "c")?;
        transaction.rename_table("b", "a")?;
        transaction.create_table("b", schema()).map(drop)
    },
    |transaction| {
        fill(transaction, "b", 1, "kept")?;
        let savepoint = transaction.savepoint();
        transaction.drop_table("c")?;
        transaction.create_table("c", schema())?;
        fill(transaction, "c", 9, "lost")?;
        transaction.rollback_to(savepoint)?;
        transaction.create_table("d", schema()).map(drop)
    },
    // So much that its redo goes to the log in parts, of which some are taken back.
    |transaction| {
        let long = "long ".repeat(30_000);
        transaction.create_table("long", schema())?;
        fill(transaction, "long", 8, &long)?;
        let savepoint = transaction.savepoint();
        transaction.drop_table("long")?;
        transaction.truncate_table("c")?;
        fill(transaction, "c", 8, &long)?;
        transaction.rollback_to(savepoint)?;
        transaction.drop_table("d")?;
        let table = transaction.table_to_write("long")?;
        transaction.insert(&table, &[Value::from(100i64), Value::from("short")]).map(drop)
    },
    |transaction| {
        transaction.drop_table("long")?;
        transaction.drop_table("c")?;
        fill(transaction, "a", 0, "")?;
        transaction.lock_table("a")
    },
    |transaction| {
        transaction.drop_table("a")?;
        transaction.create_table("a", schema())?;
        fill(transaction, "a", 4, "again")?;
        transaction.rename_table("a", "last")
    },
    |transaction| {
        let table = transaction.table_to_write("last")?;
        transaction.delete(&table, &[Value::from(1i64)])?;
        transaction.set_retention("last", Retention::For(std::time::Duration::from_secs(9)))
    },
    |transaction| {
        let (columns, query) = view_of(&["id"]);
        transaction.create_view("v", columns, query)?;
        widen(transaction, "last")
    },
    |transaction| {
        let (columns, query) = view_of(&["id", "more"]);
        transaction.replace_view("v", columns, query)?;
        let table = transaction.table_to_write("last")?;
        transaction.insert(&table, &[Value::from(50i64), Value::from("new"), Value::from(8i64)]).map(drop)
    },
];

/// Does all of it; returns what was there after each commit that was acknowledged.
fn scripted(device: &FaultyDevice) -> (Vec<Contents>, Result<(), Error>) {
    let mut states = vec![Contents::new()];
    let done = open(device).and_then(|db| {
        for work in WORK {
            // One that is rolled back, and one that never ends, in between.
            let mut other = db.begin_with(TransactionOptions::default())?;
            other.create_table("never", schema())?;
            fill(&mut other, "never", 2, "no")?;
            let mut transaction = db.begin()?;
            work(&mut transaction)?;
            drop(other);
            transaction.commit()?;
            states.push(contents(&db));
        }
        Ok(())
    });
    (states, done)
}

#[test]
fn a_transaction_with_changes_of_the_catalog_survives_power_loss_whole_or_not_at_all() {
    let rehearsal = FaultyDevice::new(0);
    let (states, done) = scripted(&rehearsal);
    done.unwrap();
    let named = |state: &Contents| state.keys().cloned().collect::<Vec<_>>().join(" ");
    let names: Vec<String> = states.iter().map(named).collect();
    assert_eq!(
        names,
        ["", "a b", "a b", "a b c", "a b c d", "a b c long", "a b", "b last", "b last", "b last v", "b last v"]
    );
    assert_eq!((states[8]["last"], states[9]["last"], states[9]["v"]), ((3, 9), (3, 9), (0, 1)));
    assert_eq!((states[10]["last"], states[10]["v"]), ((4, 9), (0, 2)));
    let mut unacknowledged = 0;
    for step in 1..=rehearsal.steps() {
        let device = FaultyDevice::new(0);
        device.cut_power_at(step);
        let (acknowledged, _) = scripted(&device);
        assert!(device.is_off());
        for seed in 0..4 {
            let image = device.after_power_loss(step << 8 | seed);
            let found = contents(&open(&image).unwrap());
            let (least, most) = (acknowledged.len() - 1, acknowledged.len().min(states.len() - 1));
            assert!(states[least..=most].contains(&found), "step {step}, seed {seed}: {found:?} after {least} commits");
            unacknowledged += usize::from(found != states[least]);
            // It goes on from there, and finds numbers for new tables.
            let db = open(&image.after_process_crash(seed)).unwrap();
            db.create_table("new", schema()).unwrap();
            assert_eq!(contents(&db)["new"], (0, 0));
        }
    }
    assert!(unacknowledged > 0, "some commits were on disk and not acknowledged yet");
}
