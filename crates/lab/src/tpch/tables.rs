//! The eight tables: columns, types and primary keys as the specification has them. No column takes NULL.
use engine::{Column, DataType, Database, Schema};

/// The tables, in the order in which each comes after those that it refers to.
pub const TABLES: [&str; 8] = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];

/// How many rows a table has at a scale factor where the number is proportional: `per_unit` rows at 1.
pub(super) fn scaled(per_unit: u32, sf: f64) -> u64 {
    // The generator cuts off, too.
    (f64::from(per_unit) * sf) as u64
}

const MONEY: DataType = DataType::Decimal { precision: 15, scale: 2 };
const KEY: DataType = DataType::Integer;
const ORDER_KEY: DataType = DataType::BigInt;

const fn text(max_chars: u32) -> DataType {
    DataType::Text { max_chars: Some(max_chars) }
}

/// Whether the generator can make data of this scale factor that keeps the primary keys; why not otherwise.
///
/// A part's four suppliers are a fixed step apart, round and round the list of all. With few suppliers some step
/// leads back to one that the part has already.
pub fn check_scale_factor(sf: f64) -> Result<(), String> {
    if !(0.001..=100.0).contains(&sf) {
        return Err("a scale factor is a number from 0.001 to 100".to_owned());
    }
    let suppliers = scaled(10_000, sf);
    let parts_a_supplier = scaled(200_000, sf).div_ceil(suppliers);
    let mut steps = (0..parts_a_supplier).map(|round| suppliers / 4 + round);
    if steps.any(|step| (1..4).any(|times| (times * step).is_multiple_of(suppliers))) {
        return Err("TPC-H has parts with the same supplier twice at this small scale factor; \
                    0.01, 0.1 and 1 are sound"
            .to_owned());
    }
    Ok(())
}

/// Makes the eight tables, empty.
///
/// # Errors
/// [`TableExists`](engine::Error::TableExists) if there is one of them already; what else [`Database::create_table`]
/// fails with. The tables made by then stay.
pub fn create_tables(db: &Database) -> engine::Result<()> {
    for name in TABLES {
        db.create_table(name, schema(name))?;
    }
    Ok(())
}

/// The schema of one of [`TABLES`].
///
/// # Panics
/// If there is no such table.
pub fn schema(table: &str) -> Schema {
    let (columns, key): (&[(&str, DataType)], &[&str]) = match table {
        "region" => (&[("r_regionkey", KEY), ("r_name", text(25)), ("r_comment", text(152))], &["r_regionkey"]),
        "nation" => (
            &[("n_nationkey", KEY), ("n_name", text(25)), ("n_regionkey", KEY), ("n_comment", text(152))],
            &["n_nationkey"],
        ),
        "supplier" => (&SUPPLIER, &["s_suppkey"]),
        "customer" => (&CUSTOMER, &["c_custkey"]),
        "part" => (&PART, &["p_partkey"]),
        "partsupp" => (&PARTSUPP, &["ps_partkey", "ps_suppkey"]),
        "orders" => (&ORDERS, &["o_orderkey"]),
        "lineitem" => (&LINEITEM, &["l_orderkey", "l_linenumber"]),
        other => panic!("TPC-H has no table {other}"),
    };
    let columns = columns.iter().map(|(name, data_type)| Column::new(*name, *data_type).not_null()).collect();
    Schema::new(columns, key).expect("the tables of TPC-H are sound")
}

const SUPPLIER: [(&str, DataType); 7] = [
    ("s_suppkey", KEY),
    ("s_name", text(25)),
    ("s_address", text(40)),
    ("s_nationkey", KEY),
    ("s_phone", text(15)),
    ("s_acctbal", MONEY),
    ("s_comment", text(101)),
];

const CUSTOMER: [(&str, DataType); 8] = [
    ("c_custkey", KEY),
    ("c_name", text(25)),
    ("c_address", text(40)),
    ("c_nationkey", KEY),
    ("c_phone", text(15)),
    ("c_acctbal", MONEY),
    ("c_mktsegment", text(10)),
    ("c_comment", text(117)),
];

const PART: [(&str, DataType); 9] = [
    ("p_partkey", KEY),
    ("p_name", text(55)),
    ("p_mfgr", text(25)),
    ("p_brand", text(10)),
    ("p_type", text(25)),
    ("p_size", DataType::Integer),
    ("p_container", text(10)),
    ("p_retailprice", MONEY),
    ("p_comment", text(23)),
];

const PARTSUPP: [(&str, DataType); 5] = [
    ("ps_partkey", KEY),
    ("ps_suppkey", KEY),
    ("ps_availqty", DataType::Integer),
    ("ps_supplycost", MONEY),
    ("ps_comment", text(199)),
];

const ORDERS: [(&str, DataType); 9] = [
    ("o_orderkey", ORDER_KEY),
    ("o_custkey", KEY),
    ("o_orderstatus", text(1)),
    ("o_totalprice", MONEY),
    ("o_orderdate", DataType::Date),
    ("o_orderpriority", text(15)),
    ("o_clerk", text(15)),
    ("o_shippriority", DataType::Integer),
    ("o_comment", text(79)),
];

const LINEITEM: [(&str, DataType); 16] = [
    ("l_orderkey", ORDER_KEY),
    ("l_partkey", KEY),
    ("l_suppkey", KEY),
    ("l_linenumber", DataType::Integer),
    ("l_quantity", MONEY),
    ("l_extendedprice", MONEY),
    ("l_discount", MONEY),
    ("l_tax", MONEY),
    ("l_returnflag", text(1)),
    ("l_linestatus", text(1)),
    ("l_shipdate", DataType::Date),
    ("l_commitdate", DataType::Date),
    ("l_receiptdate", DataType::Date),
    ("l_shipinstruct", text(25)),
    ("l_shipmode", text(10)),
    ("l_comment", text(44)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_scale_factors_are_sound_and_those_with_duplicate_keys_are_refused() {
        for sound in [0.0031, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 10.0, 100.0] {
            assert_eq!(check_scale_factor(sound), Ok(()), "{sound}");
        }
        for refused in [0.0, -1.0, f64::NAN, 1000.0, 0.001, 0.002, 0.012] {
            assert!(check_scale_factor(refused).is_err(), "{refused}");
        }
    }
}
