//! SQL on the emulated device of crate `gpu`: random queries give the rows of the CPU, also where the device runs out of memory or a
//! kernel fails. The driver is found when a program starts, so each test runs itself once more, with the device in place.

#[path = "../../gpu/tests/emulated/machine.rs"]
mod machine;
#[path = "../../sql/tests/statements/offload/queries.rs"]
mod queries;
#[path = "emulated/searches.rs"]
mod searches;

use engine::Database;
use machine::{Build, Machine};
use queries::{Queries, orders, plan, rows, run, sorted};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sql::{Offload, Session, SessionOptions};

/// Set where a test runs with the device in place.
const IN_PLACE: &str = "LSTORE_ON_EMULATED_DEVICE";

/// Runs a test of this program with the device in place.
fn on_device(test: &str, build: Build, settings: &[(&str, &str)], body: impl FnOnce()) {
    if std::env::var_os(IN_PLACE).is_some() {
        return body();
    }
    let program = std::env::current_exe().expect("the program of this test");
    let mut command = Machine::of(build).command(program, settings);
    command.args(["--exact", test, "--nocapture"]).env(IN_PLACE, "1");
    let output = command.output().expect("the test starts");
    let said = machine::said(&output);
    assert!(output.status.success() && said.contains("1 passed"), "{settings:?}: {said}");
}

/// A session that has the device take all that it can.
fn forced(db: &Database, partitions: usize) -> Session {
    forced_on(db, &devices::open().expect("the device is in place"), partitions)
}

fn forced_on(db: &Database, offload: &Offload, partitions: usize) -> Session {
    let offload = Some(offload.clone());
    let options = SessionOptions { target_partitions: Some(partitions), offload, ..SessionOptions::default() };
    let mut session = Session::new(db, options);
    run(&mut session, "SET gpu.enabled = force");
    session
}

/// Random queries on the device and without; how many portions it has answered, and for how many sections the CPU went on.
fn compare(count: u64, seeds: std::ops::Range<u64>) -> [u64; 2] {
    let db = orders(count);
    let (mut session, mut alone) = (forced(&db, 2), Session::new(&db, SessionOptions::default()));
    for seed in seeds {
        let query = Queries(StdRng::seed_from_u64(seed)).next();
        assert_eq!(sorted(&mut session, &query), sorted(&mut alone, &query), "seed {seed}: {query}");
    }
    let told = "SELECT sum(portions), count(continued_on_cpu) FROM lstore_device_decisions";
    let told = rows(&mut session, told).expect("the decisions").remove(0);
    [0, 1].map(|at| told[at].as_ref().map_or(0, |text| text.parse().expect("a number")))
}

#[test]
fn random_queries_give_the_rows_of_the_cpu() {
    on_device("random_queries_give_the_rows_of_the_cpu", Build::Races, &[], || {
        let [portions, continued] = compare(1_200, 0..30);
        assert!(portions > 9, "{portions} portions, {continued} sections went on");
    });
}

#[test]
fn random_queries_give_the_rows_of_the_cpu_under_the_address_sanitizer() {
    on_device("random_queries_give_the_rows_of_the_cpu_under_the_address_sanitizer", Build::Addresses, &[], || {
        let [portions, continued] = compare(1_200, 30..40);
        assert!(portions > 1, "{portions} portions, {continued} sections went on");
    });
}

#[test]
fn rows_with_several_partners_are_those_of_the_cpu() {
    on_device("rows_with_several_partners_are_those_of_the_cpu", Build::Races, &[], || {
        let db = orders(3_000);
        let (mut session, mut alone) = (forced(&db, 3), Session::new(&db, SessionOptions::default()));
        run(&mut session, "SET gpu.memory_limit = '60kB'");
        for on in ["few.id = o.customer", "few.region = o.small"] {
            let query = format!("SELECT o.id, few.id, name FROM orders o JOIN customer few ON {on}");
            assert!(plan(&mut session, &query).contains("DeviceJoinExec"), "{}", plan(&mut session, &query));
            assert_eq!(sorted(&mut session, &query), sorted(&mut alone, &query), "{query}");
        }
    });
}

#[test]
fn without_memory_on_the_device_the_statement_goes_on() {
    for allocation in ["1", "3", "60"] {
        let settings = [("EMULATED_FAIL_ALLOC", allocation)];
        on_device("without_memory_on_the_device_the_statement_goes_on", Build::Addresses, &settings, || {
            let [_, continued] = compare(600, 0..10);
            assert!(continued > 0, "no section went on");
        });
    }
}

#[test]
fn after_a_kernel_that_fails_the_statement_goes_on() {
    for launch in ["1", "9"] {
        let settings = [("EMULATED_FAIL_LAUNCH", launch)];
        on_device("after_a_kernel_that_fails_the_statement_goes_on", Build::Addresses, &settings, || {
            let [_, continued] = compare(600, 0..10);
            assert!(continued > 0, "no section went on");
        });
    }
}

#[test]
fn plans_and_views_name_the_device_and_say_that_it_is_emulated() {
    on_device("plans_and_views_name_the_device_and_say_that_it_is_emulated", Build::Addresses, &[], || {
        let mut session = forced(&orders(600), 1);
        let query = "SELECT small, sum(price) FROM orders GROUP BY small";
        assert!(plan(&mut session, query).contains("device=emulated"), "{}", plan(&mut session, query));
        let known = rows(&mut session, "SELECT emulated, lost FROM lstore_devices").expect("the devices");
        assert_eq!(known, [[Some("t".to_owned()), None]]);
        run(&mut session, "SET gpu.enabled = on");
        assert!(!plan(&mut session, query).contains("device="), "its times mean nothing");
    });
}

#[test]
fn an_old_driver_leaves_everything_to_the_cpu() {
    let settings = [("EMULATED_VERSION", "12040")];
    on_device("an_old_driver_leaves_everything_to_the_cpu", Build::Addresses, &settings, || {
        let error = devices::open().expect_err("the driver is old");
        assert!(error.to_string().contains("version 12040"), "{error}");
    });
}
