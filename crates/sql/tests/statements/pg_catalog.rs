//! The catalog says what is true, in the words in which tools ask: psql, SQLAlchemy, the JDBC driver, asyncpg.
use engine::Database;
use sql::{Outcome, Session, SessionOptions, text_value};

const TABLES: [&str; 7] = [
    "CREATE TABLE customers (id int PRIMARY KEY, email varchar(40) NOT NULL UNIQUE, name text, city text, born date,
     CONSTRAINT one_name UNIQUE (name, city))",
    "CREATE INDEX customers_city_idx ON customers (city)",
    "CREATE INDEX by_born ON customers USING hash (born)",
    "CREATE UNIQUE INDEX \"Odd Name\" ON customers USING kiss (id)",
    "CREATE TABLE orders (customer int, number bigint, amount numeric(12,2) NOT NULL, PRIMARY KEY (customer, number))",
    "CREATE SEQUENCE tickets",
    "CREATE SEQUENCE small AS smallint INCREMENT BY -2 MAXVALUE 100 START 50 CYCLE",
];

fn session() -> Session {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    for statement in TABLES {
        session.execute(statement).unwrap();
    }
    session
}

/// The rows of a query, one a line.
fn ask(session: &mut Session, query: &str) -> Vec<String> {
    let Outcome::Rows(rows) = session.execute(query).unwrap_or_else(|error| panic!("{query}: {error:?}")) else {
        panic!("{query} gives no rows")
    };
    let mut lines = Vec::new();
    for batch in rows {
        let batch = batch.unwrap_or_else(|error| panic!("{query}: {error:?}"));
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| text_value(column.as_ref(), row).unwrap_or_default());
            lines.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    lines
}

#[test]
fn indexes_constraints_and_sequences_are_what_was_made() {
    let mut session = session();
    let indexes =
        ask(&mut session, "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'customers' ORDER BY 1");
    assert_eq!(
        indexes,
        [
            "Odd Name|CREATE UNIQUE INDEX \"Odd Name\" ON public.customers USING kiss (id)",
            "by_born|CREATE INDEX by_born ON public.customers USING hash (born)",
            "customers_city_idx|CREATE INDEX customers_city_idx ON public.customers USING btree (city)",
            "customers_email_key|CREATE UNIQUE INDEX customers_email_key ON public.customers USING btree (email)",
            "customers_pkey|CREATE UNIQUE INDEX customers_pkey ON public.customers USING btree (id)",
            "one_name|CREATE UNIQUE INDEX one_name ON public.customers USING btree (name, city)",
        ]
    );
    let constraints = "SELECT conname, contype, conkey, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid = 'customers'::regclass ORDER BY 1";
    assert_eq!(
        ask(&mut session, constraints),
        [
            "customers_email_key|u|{2}|UNIQUE (email)",
            "customers_pkey|p|{1}|PRIMARY KEY (id)",
            "one_name|u|{3,4}|UNIQUE (name, city)"
        ]
    );
    let sequences = "SELECT sequencename, data_type, start_value, min_value, max_value, increment_by, cycle, last_value
        FROM pg_sequences ORDER BY 1";
    let shown = ["small|smallint|50|-32768|100|-2|t|", "tickets|bigint|1|1|9223372036854775807|1|f|"];
    assert_eq!(ask(&mut session, sequences), shown);
    let kinds = "SELECT relkind, count(*) FROM pg_class GROUP BY 1 ORDER BY 1";
    assert_eq!(ask(&mut session, kinds), ["S|2", "i|7", "r|2"]);
    assert_eq!(ask(&mut session, "SELECT 'by_born'::regclass, to_regclass('nowhere') IS NULL"), ["by_born|t"]);
}

#[test]
fn a_transaction_sees_its_own_indexes_and_nobody_else_does() {
    let mut session = session();
    let mut other = Session::new(&session.database().clone(), SessionOptions::default());
    let count =
        "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname IN ('own', 'by_born')";
    session.execute("BEGIN").unwrap();
    session.execute("CREATE INDEX own ON orders (amount)").unwrap();
    session.execute("DROP INDEX by_born").unwrap();
    session.execute("CREATE SEQUENCE mine").unwrap();
    assert_eq!(ask(&mut session, "SELECT indexname FROM pg_indexes WHERE indexname IN ('own', 'by_born')"), ["own"]);
    assert_eq!(ask(&mut session, "SELECT sequencename FROM pg_sequences WHERE sequencename = 'mine'"), ["mine"]);
    assert_eq!(ask(&mut other, "SELECT indexname FROM pg_indexes WHERE indexname IN ('own', 'by_born')"), ["by_born"]);
    assert_eq!(ask(&mut other, count), ["1"]);
    session.execute("ROLLBACK").unwrap();
    assert_eq!(
        ask(&mut session, "SELECT indexname FROM pg_indexes WHERE indexname IN ('own', 'by_born')"),
        ["by_born"]
    );
}

#[test]
fn the_number_of_an_index_stays_when_others_go() {
    let mut session = session();
    let number = "SELECT oid FROM pg_class WHERE relname = 'one_name'";
    let before = ask(&mut session, number);
    session.execute("DROP INDEX customers_city_idx").unwrap();
    session.execute("CREATE INDEX another ON customers (born)").unwrap();
    assert_eq!((ask(&mut session, number), before.len()), (before, 1));
}

#[test]
fn information_schema_knows_tables_columns_keys_and_sequences() {
    let mut session = session();
    let tables =
        "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1";
    assert_eq!(ask(&mut session, tables), ["customers|BASE TABLE", "orders|BASE TABLE"]);
    let columns =
        "SELECT column_name, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale,
        udt_name FROM information_schema.columns WHERE table_name = 'orders' ORDER BY ordinal_position";
    let shown = ["customer|NO|integer||32|0|int4", "number|NO|bigint||64|0|int8", "amount|NO|numeric||12|2|numeric"];
    assert_eq!(ask(&mut session, columns), shown);
    let key = "SELECT kcu.column_name FROM information_schema.table_constraints tc
        JOIN information_schema.key_column_usage kcu USING (constraint_name, table_schema)
        WHERE tc.constraint_type = 'PRIMARY KEY' AND tc.table_name = 'orders' ORDER BY kcu.ordinal_position";
    assert_eq!(ask(&mut session, key), ["customer", "number"]);
    let sequences = "SELECT sequences.sequence_name, information_schema.sequences.maximum_value
        FROM information_schema.sequences ORDER BY 1";
    assert_eq!(ask(&mut session, sequences), ["small|100", "tickets|9223372036854775807"]);
    assert_eq!(ask(&mut session, "SELECT * FROM information_schema.referential_constraints"), [""; 0]);
}

/// The JDBC driver's queries for a table's key and indexes.
#[test]
fn vectors_are_expanded_as_the_jdbc_driver_wants_them() {
    let mut session = session();
    let key = "SELECT result.COLUMN_NAME, result.KEY_SEQ, result.PK_NAME FROM
        (SELECT a.attname AS COLUMN_NAME, (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ,
        ci.relname AS PK_NAME, information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM
        FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)
        JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid) JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
        WHERE true AND ct.relname = 'orders' AND i.indisprimary ) result
        WHERE result.A_ATTNUM = (result.KEYS).x ORDER BY result.pk_name, result.key_seq";
    assert_eq!(ask(&mut session, key), ["customer|1|orders_pkey", "number|2|orders_pkey"]);
    let indexes = "SELECT tmp.INDEX_NAME, tmp.ORDINAL_POSITION,
        trim(both '\"' from pg_catalog.pg_get_indexdef(tmp.CI_OID, tmp.ORDINAL_POSITION, false)) AS COLUMN_NAME,
        CASE tmp.AM_NAME WHEN 'btree' THEN CASE tmp.I_INDOPTION[tmp.ORDINAL_POSITION - 1] & 1::smallint
        WHEN 1 THEN 'D' ELSE 'A' END ELSE NULL END AS ASC_OR_DESC
        FROM (SELECT ci.relname AS INDEX_NAME, (information_schema._pg_expandarray(i.indkey)).n AS ORDINAL_POSITION,
        ci.oid AS CI_OID, i.indoption AS I_INDOPTION, am.amname AS AM_NAME FROM pg_catalog.pg_class ct
        JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid) JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
        JOIN pg_catalog.pg_am am ON (ci.relam = am.oid) WHERE ct.relname = 'customers' AND ci.relname LIKE '%o%') AS tmp
        ORDER BY INDEX_NAME, ORDINAL_POSITION";
    let shown = ["by_born|1|born|", "customers_city_idx|1|city|A", "customers_email_key|1|email|A"];
    assert_eq!(ask(&mut session, indexes)[..3], shown);
}

/// Queries of SQLAlchemy and psycopg.
#[test]
fn subscripts_subqueries_and_type_names_are_understood() {
    let mut session = session();
    let columns = "SELECT s.attnum, s.ord, a.attname FROM (SELECT i.indrelid, unnest(i.indkey) AS attnum,
        generate_subscripts(i.indkey, 1) AS ord FROM pg_index i WHERE i.indexrelid = 'one_name'::regclass) s
        LEFT JOIN pg_attribute a ON a.attrelid = s.indrelid AND a.attnum = s.attnum ORDER BY s.ord";
    assert_eq!(ask(&mut session, columns), ["3|0|name", "4|1|city"]);
    let any = "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
        AND a.attnum = ANY(i.indkey) WHERE i.indrelid = 'orders'::regclass AND i.indisprimary ORDER BY a.attnum";
    assert_eq!(ask(&mut session, any), ["customer", "number"]);
    let kind = "SELECT t.typname, (SELECT c.relkind = 'r' FROM pg_class c WHERE c.oid = t.typrelid),
        oid::regtype::text, ARRAY(SELECT n.nspname FROM pg_namespace n WHERE n.oid = t.typnamespace)
        FROM pg_type t WHERE t.oid = to_regtype('int4[]')";
    assert_eq!(ask(&mut session, kind), ["_int4||integer[]|{pg_catalog}"]);
    let identity = "SELECT attname, CASE WHEN attidentity <> '' THEN (SELECT json_build_object('start', s.seqstart)
        FROM pg_sequence s WHERE a.attidentity <> '' AND s.seqrelid = a.attrelid) END
        FROM pg_attribute a WHERE attrelid = 'orders'::regclass AND attnum = 1";
    assert_eq!(ask(&mut session, identity), ["customer|"]);
    let escaped = "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg/_' || '%' ESCAPE '/' ORDER BY 1";
    assert_eq!(ask(&mut session, escaped), ["information_schema", "public"]);
}

#[test]
fn settings_are_read_and_set_by_functions() {
    let mut session = session();
    assert_eq!(ask(&mut session, "SELECT current_setting('server_version_num')::int / 10000 = 15"), ["t"]);
    assert_eq!(ask(&mut session, "SELECT current_setting('nothing.such', true) IS NULL"), ["t"]);
    let wrong = match session.execute("SELECT current_setting('nothing.such')") {
        Ok(Outcome::Rows(rows)) => rows.filter_map(Result::err).next(),
        Ok(Outcome::Done(_)) => None,
        Err(error) => Some(error),
    };
    assert_eq!(wrong.map(|error| error.sqlstate), Some("42704"));
    assert_eq!(ask(&mut session, "SELECT set_config('application_name', 'x', false)"), ["x"]);
    assert_eq!(ask(&mut session, "SELECT setting FROM pg_settings WHERE name = 'application_name'"), ["x"]);
    assert_eq!(session.execute("SELECT set_config('nothing', 'x', false)").unwrap_err().sqlstate, "42704");
}

#[test]
fn the_jdbc_driver_learns_keywords_types_and_keys_of_others() {
    let mut session = session();
    let words =
        "SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{a,abs,select}'::text[])";
    let words = ask(&mut session, words).concat();
    assert!(words.contains("vacuum") && words.split(',').all(|word| word != "select"), "{words}");
    let most = "SELECT setting FROM pg_catalog.pg_settings WHERE name='max_index_keys'";
    assert_eq!(ask(&mut session, most), ["32"]);
    let foreign =
        "SELECT con.conname, pos.n FROM pg_catalog.pg_constraint con, pg_catalog.generate_series(1, 32) pos(n)
         WHERE con.contype = 'f' AND pos.n = 1 ORDER BY 1";
    assert!(ask(&mut session, foreign).is_empty());
    let path = "SELECT s.r, (current_schemas(false))[s.r] AS nspname
         FROM generate_series(1, array_upper(current_schemas(false), 1)) AS s(r)";
    assert_eq!(ask(&mut session, path), ["1|public"]);
    // It sends days with the zone of its machine.
    assert_eq!(ask(&mut session, "SELECT '2020-01-01 +00'::date, '2020-01-02 -05'::date"), ["2020-01-01|2020-01-02"]);
}

#[test]
fn a_constant_that_is_cast_to_uuid_is_described_as_one() {
    let mut session = session();
    let query =
        "SELECT '550e8400-e29b-41d4-a716-446655440000'::uuid, ('550e8400-e29b-41d4-a716-446655440000'::uuid) AS u, 'a'";
    let Outcome::Rows(rows) = session.execute(query).unwrap() else { panic!("no rows") };
    let types: Vec<_> = rows.schema().fields().iter().map(|field| sql::type_of_field(field)).collect();
    assert_eq!(types, [Some(engine::DataType::Uuid), Some(engine::DataType::Uuid), Some(engine::DataType::TEXT)]);
}

#[test]
fn options_of_identity_columns_are_the_json_that_sqlalchemy_reads() {
    let mut session = session();
    let table = "CREATE TABLE numbered (id bigint GENERATED ALWAYS AS IDENTITY (START 5 INCREMENT BY 2) PRIMARY KEY,
         a int, other int GENERATED BY DEFAULT AS IDENTITY (CYCLE), s serial)";
    session.execute(table).unwrap();
    let query = "SELECT pg_catalog.pg_attribute.attname AS name, (SELECT json_build_object('always',
             pg_catalog.pg_attribute.attidentity = 'a', 'start', pg_catalog.pg_sequence.seqstart, 'increment',
             pg_catalog.pg_sequence.seqincrement, 'minvalue', pg_catalog.pg_sequence.seqmin, 'maxvalue',
             pg_catalog.pg_sequence.seqmax, 'cache', pg_catalog.pg_sequence.seqcache, 'cycle',
             pg_catalog.pg_sequence.seqcycle) AS json_build_object_1
         FROM pg_catalog.pg_sequence
         WHERE pg_catalog.pg_attribute.attidentity != '' AND pg_catalog.pg_sequence.seqrelid =
             CAST(CAST(pg_catalog.pg_get_serial_sequence(CAST(CAST(pg_catalog.pg_attribute.attrelid AS REGCLASS) AS TEXT),
             pg_catalog.pg_attribute.attname) AS REGCLASS) AS OID)) AS identity_options
         FROM pg_catalog.pg_attribute
         WHERE attrelid = 'numbered'::regclass AND attnum > 0 ORDER BY attnum";
    let options = |always, start, increment, max, cycle| {
        format!(
            "{{\"always\" : {always}, \"start\" : {start}, \"increment\" : {increment}, \"minvalue\" : 1, \"maxvalue\" : {max}, \
             \"cache\" : 1, \"cycle\" : {cycle}}}"
        )
    };
    let wanted = [
        format!("id|{}", options(true, 5, 2, i64::MAX, false)),
        "a|".to_owned(),
        format!("other|{}", options(false, 1, 1, i64::from(i32::MAX), true)),
        "s|".to_owned(),
    ];
    assert_eq!(ask(&mut session, query), wanted);
    let all = "SELECT json_build_object('start', seqstart, 'cycle', seqcycle) FROM pg_sequence WHERE seqincrement = -2";
    assert_eq!(ask(&mut session, all), ["{\"start\" : 50, \"cycle\" : true}"]);
}

#[test]
fn pg_stats_tells_what_merges_have_seen_of_the_columns() {
    let db = Database::in_memory();
    let mut session = Session::new(&db, SessionOptions::default());
    for statement in [
        "CREATE TABLE t (id int PRIMARY KEY, few int, half text, on_day date)",
        "INSERT INTO t SELECT g, g % 4, CASE WHEN g % 2 = 0 THEN 'a text' END, date '2024-01-01' + g FROM generate_series(1, 1000) g",
    ] {
        session.execute(statement).unwrap();
    }
    let query = "SELECT schemaname || '.' || tablename, attname, inherited, null_frac, avg_width, \
                 CASE WHEN n_distinct < 0 THEN 'grows' ELSE round(n_distinct)::text END, histogram_bounds, correlation \
                 FROM pg_catalog.pg_stats WHERE tablename = 't' ORDER BY attname";
    assert!(ask(&mut session, query).is_empty(), "nothing was merged");
    db.merge_now();
    let expected = [
        "public.t|few|f|0|4|4|{0,3}|",
        "public.t|half|f|0.5||1||",
        "public.t|id|f|0|4|grows|{1,1000}|",
        "public.t|on_day|f|0|4|grows|{2024-01-02,2026-09-27}|",
    ];
    assert_eq!(ask(&mut session, query), expected);
}
