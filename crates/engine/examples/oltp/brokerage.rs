//! Six types like those of TPC-E: more reads than writes, more tables, longer ways from key to key.

use engine::{Database, Direction, IndexDefinition, IndexRange, Result, Table, Transaction, Value};

use super::{BROKERAGE, Random, add, get, number, row, run_all, table, values};

pub const NAMES: [&str; 6] =
    ["trade order", "trade result", "trade status", "customer position", "market watch", "security detail"];

const CUSTOMERS: i64 = 30;
const ACCOUNTS: i64 = 60;
const SECURITIES: i64 = 50;
const TRADES: i64 = 250;

/// The tables.
pub struct Brokerage {
    customer: Table,
    account: Table,
    security: Table,
    company: Table,
    price: Table,
    daily: Table,
    trade: Table,
    holding: Table,
    watch: Table,
}

impl Brokerage {
    pub fn load(db: &Database) -> Result<Self> {
        let tables = Brokerage {
            // customer, tier
            customer: table(db, "client", 1, 2)?,
            // account, customer, balance
            account: table(db, "account", 1, 3)?,
            // security, company
            security: table(db, "security", 1, 2)?,
            company: table(db, "company", 1, 2)?,
            // security, last price, volume
            price: table(db, "last_trade", 1, 3)?,
            // security, day, close
            daily: table(db, "daily_market", 2, 3)?,
            // trade, account, security, quantity, price, state
            trade: table(db, "trade", 1, 6)?,
            // account, security, quantity
            holding: table(db, "holding", 2, 3)?,
            // customer, security
            watch: table(db, "watch_item", 2, 2)?,
        };
        let mut transaction = db.begin()?;
        transaction.create_index("account", IndexDefinition::new("account_customer", &[1]))?;
        transaction.create_index("trade", IndexDefinition::new("trade_account", &[1, 0]))?;
        transaction.create_index("holding", IndexDefinition::new("holding_account", &[0]))?;
        transaction.create_index("watch_item", IndexDefinition::new("watch_customer", &[0]))?;
        transaction.create_index("daily_market", IndexDefinition::new("daily_security", &[0, 1]))?;
        transaction.commit()?;
        tables.fill(db)?;
        Ok(tables)
    }

    fn fill(&self, db: &Database) -> Result<()> {
        let mut random = Random(5);
        let mut transaction = db.begin()?;
        for customer in 0..CUSTOMERS {
            transaction.insert(&self.customer, &row(&[customer, random.below(3)], 30))?;
            for place in 0..8 {
                let security = (customer * 31 + place * 7) % SECURITIES;
                transaction.insert(&self.watch, &row(&[customer, security], 0))?;
            }
        }
        for account in 0..ACCOUNTS {
            transaction.insert(&self.account, &row(&[account, account % CUSTOMERS, 1_000_000], 20))?;
            for place in 0..5 {
                let security = (account * 17 + place * 11) % SECURITIES;
                transaction.insert(&self.holding, &row(&[account, security, 100], 0))?;
            }
        }
        for security in 0..SECURITIES {
            transaction.insert(&self.company, &row(&[security, security % 12], 40))?;
            transaction.insert(&self.security, &row(&[security, security], 30))?;
            transaction.insert(&self.price, &row(&[security, 1_000 + random.below(9_000), 0], 0))?;
            for day in 0..5 {
                transaction.insert(&self.daily, &row(&[security, day, 1_000 + random.below(9_000)], 0))?;
            }
        }
        for trade in 0..TRADES {
            let numbers = [trade, random.below(ACCOUNTS), random.below(SECURITIES), 100, 5_000, 1];
            transaction.insert(&self.trade, &row(&numbers, 20))?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn rows(
        &self,
        transaction: &Transaction,
        table: &Table,
        (index, key): (&str, i64),
        direction: Direction,
        at_most: usize,
    ) -> Result<Vec<Vec<Value>>> {
        let (_, index) = transaction.index(index)?;
        let range = IndexRange::equal(values(&[key]));
        let rows = transaction.index_scan(table, &index, &range, direction)?.take(at_most);
        rows.map(|row| row.map(|(_, row)| row)).collect()
    }

    fn trade_order(&self, db: &Database, random: &mut Random) -> Result<()> {
        let mut transaction = db.begin()?;
        let (account, security) = (random.skewed(ACCOUNTS), random.skewed(SECURITIES));
        let customer = number(&get(&transaction, &self.account, &[account])?, 1);
        get(&transaction, &self.customer, &[customer])?;
        let company = number(&get(&transaction, &self.security, &[security])?, 1);
        get(&transaction, &self.company, &[company])?;
        let price = number(&get(&transaction, &self.price, &[security])?, 1);
        let holdings = self.rows(&transaction, &self.holding, ("holding_account", account), Direction::Upward, 100)?;
        let held: i64 = holdings.iter().filter(|row| number(row, 1) == security).map(|row| number(row, 2)).sum();
        let trade = TRADES + random.below(i64::MAX / 2);
        let numbers = [trade, account, security, 100.min(held.max(10)), price, 0];
        transaction.insert(&self.trade, &row(&numbers, 20))?;
        transaction.commit()?;
        Ok(())
    }

    fn trade_result(&self, db: &Database, random: &mut Random) -> Result<()> {
        let mut transaction = db.begin()?;
        let trade = random.below(TRADES);
        let row_now = get(&transaction, &self.trade, &[trade])?;
        let (account, security) = (number(&row_now, 1), number(&row_now, 2));
        let (quantity, price) = (number(&row_now, 3), number(&row_now, 4));
        if get(&transaction, &self.holding, &[account, security])?.is_empty() {
            transaction.insert(&self.holding, &row(&[account, security, quantity], 0))?;
        } else {
            add(&mut transaction, &self.holding, &[account, security], 2, quantity)?;
        }
        let state = [(4, Value::BigInt(price + random.below(100))), (5, Value::BigInt(2))];
        transaction.update_columns(&self.trade, &values(&[trade]), &state)?;
        add(&mut transaction, &self.account, &[account], 2, -quantity * price)?;
        add(&mut transaction, &self.price, &[security], 2, quantity)?;
        transaction.commit()?;
        Ok(())
    }

    fn trade_status(&self, db: &Database, random: &mut Random) -> Result<()> {
        let transaction = db.begin()?;
        let account = random.skewed(ACCOUNTS);
        let trades = self.rows(&transaction, &self.trade, ("trade_account", account), Direction::Downward, 50)?;
        for trade in &trades {
            get(&transaction, &self.security, &[number(trade, 2)])?;
        }
        get(&transaction, &self.account, &[account])?;
        transaction.commit()?;
        Ok(())
    }

    fn customer_position(&self, db: &Database, random: &mut Random) -> Result<()> {
        let transaction = db.begin()?;
        let customer = random.skewed(CUSTOMERS);
        get(&transaction, &self.customer, &[customer])?;
        let accounts = self.rows(&transaction, &self.account, ("account_customer", customer), Direction::Upward, 10)?;
        let mut worth = 0;
        for account in &accounts {
            let key = ("holding_account", number(account, 0));
            for holding in self.rows(&transaction, &self.holding, key, Direction::Upward, 100)? {
                let price = number(&get(&transaction, &self.price, &[number(&holding, 1)])?, 1);
                worth += price * number(&holding, 2);
            }
        }
        std::hint::black_box(worth);
        transaction.commit()?;
        Ok(())
    }

    fn market_watch(&self, db: &Database, random: &mut Random) -> Result<()> {
        let transaction = db.begin()?;
        let customer = random.skewed(CUSTOMERS);
        let day = random.below(5);
        let mut change = 0;
        for item in self.rows(&transaction, &self.watch, ("watch_customer", customer), Direction::Upward, 100)? {
            let security = number(&item, 1);
            let now = number(&get(&transaction, &self.price, &[security])?, 1);
            change += now - number(&get(&transaction, &self.daily, &[security, day])?, 2);
        }
        std::hint::black_box(change);
        transaction.commit()?;
        Ok(())
    }

    fn security_detail(&self, db: &Database, random: &mut Random) -> Result<()> {
        let transaction = db.begin()?;
        let security = random.skewed(SECURITIES);
        let company = number(&get(&transaction, &self.security, &[security])?, 1);
        get(&transaction, &self.company, &[company])?;
        self.rows(&transaction, &self.daily, ("daily_security", security), Direction::Upward, 20)?;
        get(&transaction, &self.price, &[security])?;
        transaction.commit()?;
        Ok(())
    }

    /// So many of each type.
    pub fn run(&self, db: &Database, count: usize) -> Result<Vec<u64>> {
        run_all(
            count,
            &mut [
                (BROKERAGE, &mut |random| self.trade_order(db, random)),
                (BROKERAGE + 1, &mut |random| self.trade_result(db, random)),
                (BROKERAGE + 2, &mut |random| self.trade_status(db, random)),
                (BROKERAGE + 3, &mut |random| self.customer_position(db, random)),
                (BROKERAGE + 4, &mut |random| self.market_watch(db, random)),
                (BROKERAGE + 5, &mut |random| self.security_detail(db, random)),
            ],
        )
    }
}
