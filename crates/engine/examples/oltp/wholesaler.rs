//! TPC-C's five types on one warehouse of a small size: keys, reads and writes as its specification has them (clause 2.4 to 2.8),
//! with fewer columns.

use std::ops::Bound;

use engine::{Database, Direction, IndexDefinition, IndexRange, Result, Table, Transaction, Value};

use super::{Random, add, get, number, row, run_all, table, values};

pub const NAMES: [&str; 5] = ["new order", "payment", "order status", "delivery", "stock level"];

const DISTRICTS: i64 = 10;
const CUSTOMERS: i64 = 20;
const ITEMS: i64 = 200;
const ORDERS: i64 = 6;
/// Customers of a district share one of so many last names.
const NAMES_LAST: i64 = 8;

/// The tables.
pub struct Wholesaler {
    warehouse: Table,
    district: Table,
    customer: Table,
    history: Table,
    item: Table,
    stock: Table,
    order: Table,
    new_order: Table,
    line: Table,
}

impl Wholesaler {
    pub fn load(db: &Database) -> Result<Self> {
        let tables = Wholesaler {
            // year to date, tax
            warehouse: table(db, "warehouse", 1, 3)?,
            // warehouse, district, next order, year to date, tax
            district: table(db, "district", 2, 5)?,
            // warehouse, district, customer, last name, balance, payments, payment count, deliveries
            customer: table(db, "customer", 3, 8)?,
            // number, customer, district, amount
            history: table(db, "history", 1, 4)?,
            // item, price
            item: table(db, "item", 1, 2)?,
            // warehouse, item, quantity, year to date, order count
            stock: table(db, "stock", 2, 5)?,
            // warehouse, district, order, customer, carrier, lines
            order: table(db, "orders", 3, 6)?,
            new_order: table(db, "new_order", 3, 3)?,
            // warehouse, district, order, line, item, quantity, amount, delivered
            line: table(db, "order_line", 4, 8)?,
        };
        let mut transaction = db.begin()?;
        transaction.create_index("customer", IndexDefinition::new("customer_name", &[0, 1, 3]))?;
        transaction.create_index("orders", IndexDefinition::new("orders_customer", &[0, 1, 3, 2]))?;
        transaction.create_index("new_order", IndexDefinition::new("new_order_key", &[0, 1, 2]))?;
        transaction.create_index("order_line", IndexDefinition::new("order_line_key", &[0, 1, 2]))?;
        transaction.commit()?;
        tables.fill(db)?;
        Ok(tables)
    }

    fn fill(&self, db: &Database) -> Result<()> {
        let mut random = Random(3);
        let mut transaction = db.begin()?;
        transaction.insert(&self.warehouse, &row(&[0, 0, 7], 10))?;
        for item in 0..ITEMS {
            transaction.insert(&self.item, &row(&[item, 100 + random.below(9_900)], 24))?;
            transaction.insert(&self.stock, &row(&[0, item, 10 + random.below(91), 0, 0], 24))?;
        }
        for district in 0..DISTRICTS {
            transaction.insert(&self.district, &row(&[0, district, ORDERS, 0, 8], 10))?;
            for customer in 0..CUSTOMERS {
                let numbers = [0, district, customer, customer % NAMES_LAST, -10, 10, 1, 0];
                transaction.insert(&self.customer, &row(&numbers, 40))?;
            }
            for order in 0..ORDERS {
                let customer = random.below(CUSTOMERS);
                self.insert_order(&mut transaction, (district, order, customer), &mut random)?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Five to fifteen lines, each of an item whose stock falls.
    fn insert_order(
        &self,
        transaction: &mut Transaction,
        (district, order, customer): (i64, i64, i64),
        random: &mut Random,
    ) -> Result<()> {
        let lines = 5 + random.below(11);
        transaction.insert(&self.order, &row(&[0, district, order, customer, 0, lines], 0))?;
        transaction.insert(&self.new_order, &row(&[0, district, order], 0))?;
        for line in 0..lines {
            let (item, quantity) = (random.skewed(ITEMS), 1 + random.below(10));
            let price = number(&get(transaction, &self.item, &[item])?, 1);
            let stock = get(transaction, &self.stock, &[0, item])?;
            let left = number(&stock, 2) - quantity;
            let changes = [(2, if left < 10 { left + 91 } else { left }), (3, number(&stock, 3) + quantity)];
            let changes = changes.map(|(column, value)| (column, Value::BigInt(value)));
            transaction.update_columns(&self.stock, &values(&[0, item]), &changes)?;
            let numbers = [0, district, order, line, item, quantity, price * quantity, 0];
            transaction.insert(&self.line, &row(&numbers, 24))?;
        }
        Ok(())
    }

    /// The rows of an index whose first columns have these values.
    fn rows(
        &self,
        transaction: &Transaction,
        table: &Table,
        (index, equal): (&str, &[i64]),
        direction: Direction,
        at_most: usize,
    ) -> Result<Vec<Vec<Value>>> {
        let (_, index) = transaction.index(index)?;
        let range = IndexRange::equal(values(equal));
        let rows = transaction.index_scan(table, &index, &range, direction)?.take(at_most);
        rows.map(|row| row.map(|(_, row)| row)).collect()
    }

    fn new_order(&self, db: &Database, random: &mut Random) -> Result<()> {
        let mut transaction = db.begin()?;
        let (district, customer) = (random.below(DISTRICTS), random.skewed(CUSTOMERS));
        get(&transaction, &self.warehouse, &[0])?;
        get(&transaction, &self.customer, &[0, district, customer])?;
        let next = add(&mut transaction, &self.district, &[0, district], 2, 1)?;
        self.insert_order(&mut transaction, (district, next - 1, customer), random)?;
        transaction.commit()?;
        Ok(())
    }

    /// A customer by number, or in six of ten cases the middle one of those with a last name.
    fn customer(&self, transaction: &Transaction, district: i64, random: &mut Random) -> Result<i64> {
        if random.below(10) < 4 {
            return Ok(random.skewed(CUSTOMERS));
        }
        let equal = [0, district, random.below(NAMES_LAST)];
        let named = self.rows(transaction, &self.customer, ("customer_name", &equal), Direction::Upward, 100)?;
        Ok(named.get(named.len() / 2).map_or(0, |row| number(row, 2)))
    }

    fn payment(&self, db: &Database, random: &mut Random) -> Result<()> {
        let mut transaction = db.begin()?;
        let (district, amount) = (random.below(DISTRICTS), 1 + random.below(5_000));
        add(&mut transaction, &self.warehouse, &[0], 1, amount)?;
        add(&mut transaction, &self.district, &[0, district], 3, amount)?;
        let customer = self.customer(&transaction, district, random)?;
        let row_now = get(&transaction, &self.customer, &[0, district, customer])?;
        let changes = [(4, -amount), (5, amount), (6, 1)]
            .map(|(column, by)| (column, Value::BigInt(number(&row_now, column) + by)));
        transaction.update_columns(&self.customer, &values(&[0, district, customer]), &changes)?;
        let payment = random.below(i64::MAX);
        transaction.insert(&self.history, &row(&[payment, customer, district, amount], 24))?;
        transaction.commit()?;
        Ok(())
    }

    fn order_status(&self, db: &Database, random: &mut Random) -> Result<()> {
        let transaction = db.begin()?;
        let district = random.below(DISTRICTS);
        let customer = self.customer(&transaction, district, random)?;
        get(&transaction, &self.customer, &[0, district, customer])?;
        let equal = [0, district, customer];
        let newest = self.rows(&transaction, &self.order, ("orders_customer", &equal), Direction::Downward, 1)?;
        if let Some(order) = newest.first() {
            let equal = [0, district, number(order, 2)];
            self.rows(&transaction, &self.line, ("order_line_key", &equal), Direction::Upward, 100)?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn delivery(&self, db: &Database, random: &mut Random) -> Result<()> {
        let mut transaction = db.begin()?;
        let carrier = 1 + random.below(10);
        for district in 0..DISTRICTS {
            let equal = [0, district];
            let oldest = self.rows(&transaction, &self.new_order, ("new_order_key", &equal), Direction::Upward, 1)?;
            let Some(order) = oldest.first().map(|row| number(row, 2)) else { continue };
            transaction.delete(&self.new_order, &values(&[0, district, order]))?;
            let key = values(&[0, district, order]);
            let customer = number(&transaction.get(&self.order, &key)?.unwrap_or_default(), 3);
            transaction.update_columns(&self.order, &key, &[(4, Value::BigInt(carrier))])?;
            let equal = [0, district, order];
            let lines = self.rows(&transaction, &self.line, ("order_line_key", &equal), Direction::Upward, 100)?;
            for line in &lines {
                let key = values(&[0, district, order, number(line, 3)]);
                transaction.update_columns(&self.line, &key, &[(7, Value::BigInt(1))])?;
            }
            let amount = lines.iter().map(|line| number(line, 6)).sum();
            add(&mut transaction, &self.customer, &[0, district, customer], 4, amount)?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn stock_level(&self, db: &Database, random: &mut Random) -> Result<()> {
        let transaction = db.begin()?;
        let (district, threshold) = (random.below(DISTRICTS), 10 + random.below(11));
        let next = number(&get(&transaction, &self.district, &[0, district])?, 2);
        let (_, index) = transaction.index("order_line_key")?;
        let (low, high) = (Bound::Included(Value::BigInt(next - 20)), Bound::Excluded(Value::BigInt(next)));
        let range = IndexRange { equal: values(&[0, district]), ..IndexRange::between(low, high) };
        let lines = transaction.index_scan(&self.line, &index, &range, Direction::Upward)?;
        let mut items = lines.map(|row| row.map(|(_, row)| number(&row, 4))).collect::<Result<Vec<_>>>()?;
        items.sort_unstable();
        items.dedup();
        let mut low = 0;
        for item in items {
            low += i64::from(number(&get(&transaction, &self.stock, &[0, item])?, 2) < threshold);
        }
        std::hint::black_box(low);
        transaction.commit()?;
        Ok(())
    }

    /// So many of each type.
    pub fn run(&self, db: &Database, count: usize) -> Result<Vec<u64>> {
        run_all(
            count,
            &mut [
                (0, &mut |random| self.new_order(db, random)),
                (1, &mut |random| self.payment(db, random)),
                (2, &mut |random| self.order_status(db, random)),
                (3, &mut |random| self.delivery(db, random)),
                (4, &mut |random| self.stock_level(db, random)),
            ],
        )
    }
}
