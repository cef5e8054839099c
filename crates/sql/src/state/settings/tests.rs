//! Settings are true or refused, and come back as they were.
use super::*;

#[test]
fn a_commit_waits_for_the_disk_unless_it_is_told_not_to() {
    let mut settings = Settings::new(&Database::in_memory(), 4);
    assert_eq!(settings.durability(), Durability::Sync);
    for (value, durability, shown) in [
        ("off", Durability::Async, "off"),
        ("local", Durability::Sync, "on"),
        ("Partition", Durability::Partition, "partition"),
        ("false", Durability::Async, "off"),
    ] {
        settings.assign("synchronous_commit", value, false).unwrap();
        let known = find("synchronous_commit").unwrap();
        assert_eq!((settings.durability(), &*settings.value(known, Modes::DEFAULT)), (durability, shown));
    }
    assert_eq!(refused(&mut settings, "synchronous_commit", "sometimes"), "22023");
}

fn refused(settings: &mut Settings, name: &str, value: &str) -> &'static str {
    settings.assign(name, value, false).err().map_or("", |error| error.sqlstate)
}

fn shown(settings: &Settings, name: &str) -> String {
    settings.show(&[Ident::new(name)], Modes::DEFAULT).unwrap().remove(0).1
}

#[test]
fn settings_are_true_or_refused() {
    let mut settings = Settings::new(&Database::in_memory(), 4);
    assert!(settings.assign("timezone", "utc", false).is_ok());
    assert_eq!(refused(&mut settings, "timezone", "Europe/Nowhere"), "22023");
    assert_eq!(refused(&mut settings, "statement_timeout", "soon"), "22023");
    assert_eq!(refused(&mut settings, "default_transaction_isolation", "chaos"), "22023");
    assert_eq!(refused(&mut settings, "default_transaction_read_only", "o"), "22023");
    assert_eq!(refused(&mut settings, "server_version", "1"), "55P02");
    assert_eq!(refused(&mut settings, "no_such", "1"), "42704");
    settings.assign("application_name", "psql", false).unwrap();
    assert_eq!(shown(&settings, "Application_Name"), "psql");
    assert!(KNOWN.is_sorted_by_key(|known| known.0));
}

#[test]
fn local_values_end_and_saved_values_come_back() {
    let mut settings = Settings::new(&Database::in_memory(), 4);
    settings.assign("lock_timeout", "1s", false).unwrap();
    let saved = settings.save();
    settings.assign("lock_timeout", "2s", true).unwrap();
    settings.assign("statement_timeout", "3s", false).unwrap();
    assert_eq!(settings.limit(Limit::Lock), Some(Duration::from_secs(2)));
    settings.end_local();
    assert_eq!((shown(&settings, "lock_timeout"), shown(&settings, "statement_timeout")), ("1s".into(), "3s".into()));
    settings.restore(saved);
    assert_eq!((shown(&settings, "lock_timeout"), shown(&settings, "statement_timeout")), ("1s".into(), "0".into()));
    settings.assign("default_transaction_isolation", "Repeatable Read", false).unwrap();
    settings.assign("default_transaction_read_only", "t", false).unwrap();
    assert_eq!(shown(&settings, "default_transaction_isolation"), "repeatable read");
    assert!(settings.modes().is_read_only && settings.modes().isolation == IsolationLevel::RepeatableRead);
}

#[test]
fn the_cost_model_is_set_shown_and_reset_as_other_settings_are() {
    let mut settings = Settings::new(&Database::in_memory(), 4);
    assert_eq!(
        (shown(&settings, "random_page_cost"), shown(&settings, "lstore.cost_model")),
        ("4".into(), "asymmetric".into())
    );
    settings.assign("random_page_cost", "1.5", false).unwrap();
    settings.assign("lstore.cost_model", "original", true).unwrap();
    assert_eq!(
        (shown(&settings, "random_page_cost"), shown(&settings, "lstore.cost_model")),
        ("1.5".into(), "original".into())
    );
    settings.end_local();
    assert_eq!(shown(&settings, "lstore.cost_model"), "asymmetric");
    settings.assign("random_page_cost", "default", false).unwrap();
    assert_eq!(shown(&settings, "random_page_cost"), "4");
    assert_eq!(refused(&mut settings, "seq_page_cost", "-1"), "22023");
    assert!(settings.all(Modes::DEFAULT).contains_key("lstore.random_write_cost"));
}

#[test]
fn a_query_takes_what_the_session_says_and_the_database_s_default_otherwise() {
    let db = Database::in_memory();
    db.set_memory_limit_bytes(Some(40 << 20));
    let mut settings = Settings::new(&db, 4);
    assert_eq!(shown(&settings, "lstore.query_memory"), "10MB");
    settings.assign("lstore.query_memory", "4MB", true).unwrap();
    assert_eq!(shown(&settings, "lstore.query_memory"), "4MB");
    settings.end_local();
    assert_eq!(shown(&settings, "lstore.query_memory"), "10MB");
    settings.assign("lstore.query_memory", "none", false).unwrap();
    assert_eq!(shown(&settings, "lstore.query_memory"), "none");
    assert_eq!(refused(&mut settings, "lstore.query_memory", "1kB"), "22023");
}

#[test]
fn the_number_of_threads_has_two_names_and_is_never_raised() {
    let mut settings = Settings::new(&Database::in_memory(), 4);
    let both = |settings: &Settings| {
        (shown(settings, "max_parallel_workers_per_gather"), shown(settings, "lstore.threads"), settings.threads())
    };
    assert_eq!(both(&settings), ("3".into(), "4".into(), 4));
    settings.assign("max_parallel_workers_per_gather", "0", true).unwrap();
    assert_eq!(both(&settings), ("0".into(), "1".into(), 1));
    settings.end_local();
    assert_eq!(both(&settings), ("3".into(), "4".into(), 4));
    settings.assign("lstore.threads", "3", false).unwrap();
    assert_eq!(both(&settings), ("2".into(), "3".into(), 3));
    settings.assign("max_parallel_workers_per_gather", "20", false).unwrap();
    assert_eq!(both(&settings), ("20".into(), "21".into(), 4));
    settings.assign("max_parallel_workers_per_gather", "default", false).unwrap();
    assert_eq!(both(&settings), ("3".into(), "4".into(), 4));
    assert_eq!(refused(&mut settings, "max_parallel_workers_per_gather", "1025"), "22023");
    assert_eq!(refused(&mut settings, "lstore.threads", "0"), "22023");
}
