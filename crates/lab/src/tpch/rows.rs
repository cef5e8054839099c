//! The generator's rows as Arrow batches of the tables' types.
use std::fmt::{Display, Write};
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch};
use tpchgen::dates::TPCHDate;
use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    Customer, CustomerGenerator, LineItem, LineItemGenerator, Nation, NationGenerator, Order, OrderGenerator, Part,
    PartGenerator, PartSupp, PartSuppGenerator, Region, RegionGenerator, Supplier, SupplierGenerator,
};
use tpchgen::text::TextPool;

use super::tables::schema;

/// The most rows of a batch.
const BATCH_ROWS: usize = 1024;

/// The size of the pool that texts are cut from, as the benchmark has it.
const TEXT_BYTES: i32 = 300 << 20;

/// The pool that texts are cut from. It takes 300 MB: a load has one of its own, which goes when all is loaded.
pub(super) fn text_pool() -> TextPool {
    TextPool::new(TEXT_BYTES, Distributions::static_default())
}

/// The rows of a scale factor.
#[derive(Clone, Copy)]
pub(super) struct Rows<'t> {
    sf: f64,
    texts: &'t TextPool,
}

impl Rows<'static> {
    /// Those with texts from a pool that stays.
    pub(super) fn new(sf: f64) -> Rows<'static> {
        Rows::with_texts(sf, TextPool::get_or_init_default())
    }
}

impl<'t> Rows<'t> {
    /// Those with texts from a pool.
    pub(super) fn with_texts(sf: f64, texts: &'t TextPool) -> Rows<'t> {
        Rows { sf, texts }
    }

    /// The batches of one table: of all its rows split into `parts`, those numbered `part`, from 1.
    pub(super) fn batches(self, table: &str, part: i32, parts: i32) -> Box<dyn Iterator<Item = RecordBatch> + 't> {
        let (sf, words, texts) = (self.sf, Distributions::static_default(), self.texts);
        macro_rules! rows {
            ($generator:ident) => {
                $generator::new_with_distributions_and_text_pool(sf, part, parts, words, texts).iter()
            };
        }
        match table {
            "region" => chunked(RegionGenerator::new_with_distributions_and_text_pool(words, texts).iter(), regions),
            "nation" => chunked(NationGenerator::new_with_distributions_and_text_pool(words, texts).iter(), nations),
            "supplier" => chunked(rows!(SupplierGenerator), suppliers),
            "customer" => chunked(rows!(CustomerGenerator), customers),
            "part" => chunked(rows!(PartGenerator), items),
            "partsupp" => chunked(PartSuppGenerator::new_with_text_pool(sf, part, parts, texts).iter(), offers),
            "orders" => chunked(rows!(OrderGenerator), orders),
            "lineitem" => chunked(rows!(LineItemGenerator), lines),
            other => panic!("TPC-H has no table {other}"),
        }
    }
}

fn chunked<'t, T: 't>(
    mut rows: impl Iterator<Item = T> + 't,
    build: fn(&[T]) -> RecordBatch,
) -> Box<dyn Iterator<Item = RecordBatch> + 't> {
    Box::new(std::iter::from_fn(move || {
        let chunk: Vec<T> = rows.by_ref().take(BATCH_ROWS).collect();
        (!chunk.is_empty()).then(|| build(&chunk))
    }))
}

/// A batch of whole rows of a table.
fn batch(table: &str, columns: Vec<ArrayRef>) -> RecordBatch {
    RecordBatch::try_new(schema(table).to_arrow(), columns).expect("the columns are those of the table")
}

/// Keys, which the generator counts in 64 bits also where the tables hold 32.
fn keys<T>(rows: &[T], of: impl Fn(&T) -> i64) -> ArrayRef {
    let narrow = |row| i32::try_from(of(row)).expect("up to the largest scale factor, keys fit 32 bits");
    Arc::new(Int32Array::from_iter_values(rows.iter().map(narrow)))
}

fn order_keys<T>(rows: &[T], of: impl Fn(&T) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.iter().map(of)))
}

fn integers<T>(rows: &[T], of: impl Fn(&T) -> i32) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(rows.iter().map(of)))
}

fn cents<T>(rows: &[T], of: impl Fn(&T) -> i64) -> ArrayRef {
    let cents = Decimal128Array::from_iter_values(rows.iter().map(|row| i128::from(of(row))));
    Arc::new(cents.with_precision_and_scale(15, 2).expect("a precision that Arrow has"))
}

fn dates<T>(rows: &[T], of: impl Fn(&T) -> TPCHDate) -> ArrayRef {
    Arc::new(Date32Array::from_iter_values(rows.iter().map(|row| of(row).to_unix_epoch())))
}

fn strings<'a, T>(rows: &'a [T], of: impl Fn(&'a T) -> &'a str) -> ArrayRef {
    // They may lie anywhere in the pool of texts: looked at one after the other, their memory comes at the same time.
    let first = |row| of(row).as_bytes().first().copied().unwrap_or_default();
    std::hint::black_box(rows.iter().map(first).fold(0, u8::wrapping_add));
    let mut array = StringViewBuilder::with_capacity(rows.len());
    rows.iter().for_each(|row| array.append_value(of(row)));
    Arc::new(array.finish())
}

/// Of values that are no strings yet.
fn texts<'a, T, D: Display>(rows: &'a [T], of: impl Fn(&'a T) -> D) -> ArrayRef {
    let mut array = StringViewBuilder::with_capacity(rows.len());
    let mut text = String::new();
    for row in rows {
        text.clear();
        write!(text, "{}", of(row)).expect("a string takes all that is written to it");
        array.append_value(&text);
    }
    Arc::new(array.finish())
}

fn regions(rows: &[Region<'_>]) -> RecordBatch {
    let columns = vec![keys(rows, |r| r.r_regionkey), strings(rows, |r| r.r_name), strings(rows, |r| r.r_comment)];
    batch("region", columns)
}

fn nations(rows: &[Nation<'_>]) -> RecordBatch {
    let columns = vec![
        keys(rows, |n| n.n_nationkey),
        strings(rows, |n| n.n_name),
        keys(rows, |n| n.n_regionkey),
        strings(rows, |n| n.n_comment),
    ];
    batch("nation", columns)
}

fn suppliers(rows: &[Supplier]) -> RecordBatch {
    let columns = vec![
        keys(rows, |s| s.s_suppkey),
        texts(rows, |s| s.s_name),
        texts(rows, |s| &s.s_address),
        keys(rows, |s| s.s_nationkey),
        texts(rows, |s| &s.s_phone),
        cents(rows, |s| s.s_acctbal.0),
        strings(rows, |s| &s.s_comment),
    ];
    batch("supplier", columns)
}

fn customers(rows: &[Customer<'_>]) -> RecordBatch {
    let columns = vec![
        keys(rows, |c| c.c_custkey),
        texts(rows, |c| c.c_name),
        texts(rows, |c| &c.c_address),
        keys(rows, |c| c.c_nationkey),
        texts(rows, |c| &c.c_phone),
        cents(rows, |c| c.c_acctbal.0),
        strings(rows, |c| c.c_mktsegment),
        strings(rows, |c| c.c_comment),
    ];
    batch("customer", columns)
}

fn items(rows: &[Part<'_>]) -> RecordBatch {
    let columns = vec![
        keys(rows, |p| p.p_partkey),
        texts(rows, |p| &p.p_name),
        texts(rows, |p| p.p_mfgr),
        texts(rows, |p| p.p_brand),
        strings(rows, |p| p.p_type),
        integers(rows, |p| p.p_size),
        strings(rows, |p| p.p_container),
        cents(rows, |p| p.p_retailprice.0),
        strings(rows, |p| p.p_comment),
    ];
    batch("part", columns)
}

fn offers(rows: &[PartSupp<'_>]) -> RecordBatch {
    let columns = vec![
        keys(rows, |ps| ps.ps_partkey),
        keys(rows, |ps| ps.ps_suppkey),
        integers(rows, |ps| ps.ps_availqty),
        cents(rows, |ps| ps.ps_supplycost.0),
        strings(rows, |ps| ps.ps_comment),
    ];
    batch("partsupp", columns)
}

fn orders(rows: &[Order<'_>]) -> RecordBatch {
    let columns = vec![
        order_keys(rows, |o| o.o_orderkey),
        keys(rows, |o| o.o_custkey),
        texts(rows, |o| o.o_orderstatus),
        cents(rows, |o| o.o_totalprice.0),
        dates(rows, |o| o.o_orderdate),
        strings(rows, |o| o.o_orderpriority),
        texts(rows, |o| o.o_clerk),
        integers(rows, |o| o.o_shippriority),
        strings(rows, |o| o.o_comment),
    ];
    batch("orders", columns)
}

fn lines(rows: &[LineItem<'_>]) -> RecordBatch {
    let columns = vec![
        order_keys(rows, |l| l.l_orderkey),
        keys(rows, |l| l.l_partkey),
        keys(rows, |l| l.l_suppkey),
        integers(rows, |l| l.l_linenumber),
        cents(rows, |l| l.l_quantity * 100),
        cents(rows, |l| l.l_extendedprice.0),
        cents(rows, |l| l.l_discount.0),
        cents(rows, |l| l.l_tax.0),
        strings(rows, |l| l.l_returnflag),
        strings(rows, |l| l.l_linestatus),
        dates(rows, |l| l.l_shipdate),
        dates(rows, |l| l.l_commitdate),
        dates(rows, |l| l.l_receiptdate),
        strings(rows, |l| l.l_shipinstruct),
        strings(rows, |l| l.l_shipmode),
        strings(rows, |l| l.l_comment),
    ];
    batch("lineitem", columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpch::tables::TABLES;

    #[test]
    fn parts_together_are_the_table() {
        for table in TABLES {
            let parts = if matches!(table, "region" | "nation") { 1 } else { 3 };
            let rows = Rows::new(0.001);
            let count = |part, parts| rows.batches(table, part, parts).map(|batch| batch.num_rows()).sum::<usize>();
            assert_eq!((1..=parts).map(|part| count(part, parts)).sum::<usize>(), count(1, 1), "{table}");
        }
    }
}
