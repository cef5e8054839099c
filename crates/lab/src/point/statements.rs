//! The statements, in words that both databases understand, and the values of their parameters.

use smallvec::{SmallVec, smallvec};

/// Accounts of ten columns, each of an owner.
pub(super) const SCHEMA: [&str; 3] = [
    "CREATE TABLE owners (id bigint PRIMARY KEY, city bigint NOT NULL, born bigint NOT NULL)",
    "CREATE TABLE accounts (id bigint PRIMARY KEY, owner bigint NOT NULL, balance bigint NOT NULL, a bigint NOT NULL, \
     b bigint NOT NULL, c bigint NOT NULL, d bigint NOT NULL, e bigint NOT NULL, f bigint NOT NULL, g bigint NOT NULL)",
    "CREATE INDEX accounts_owner ON accounts (owner)",
];

/// No statement has more parameters.
pub(super) const PARAMETERS_MAX: usize = 10;

/// So many accounts has an owner.
pub(super) const ACCOUNTS_OF_OWNER: u64 = 10;

pub(super) const INSERT_OWNER: &str = "INSERT INTO owners (id, city, born) VALUES ($1, $2, $3)";

pub(super) const INSERT_ACCOUNT: &str = "INSERT INTO accounts (id, owner, balance, a, b, c, d, e, f, g) \
                                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// The values of an account.
pub(super) fn account(id: i64) -> [i64; 10] {
    std::array::from_fn(|at| match at {
        0 => id,
        1 => id / ACCOUNTS_OF_OWNER as i64,
        _ => ((id as u64 * 10 + at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i64,
    })
}

/// The values of an owner.
pub(super) fn owner(id: i64) -> [i64; 3] {
    [id, id % 97, 1900 + id % 120]
}

/// A statement that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Statement {
    Select,
    Range10,
    Range100,
    Sum100,
    Index,
    Join,
    Update,
    UpdateReturning,
    Upsert,
    Insert,
    Delete,
}

impl Statement {
    /// All of them; those that only read come first.
    pub(super) const ALL: [Statement; 11] = [
        Statement::Select,
        Statement::Range10,
        Statement::Range100,
        Statement::Sum100,
        Statement::Index,
        Statement::Join,
        Statement::Update,
        Statement::UpdateReturning,
        Statement::Upsert,
        Statement::Insert,
        Statement::Delete,
    ];

    /// As the report calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Statement::Select => "SELECT by key",
            Statement::Range10 => "range of 10",
            Statement::Range100 => "range of 100",
            Statement::Sum100 => "sum of 100",
            Statement::Index => "10 by second index",
            Statement::Join => "join by key",
            Statement::Update => "UPDATE by key",
            Statement::UpdateReturning => "UPDATE RETURNING",
            Statement::Upsert => "upsert",
            Statement::Insert => "INSERT",
            Statement::Delete => "DELETE by key",
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Statement::Select => "SELECT owner, balance, a, b FROM accounts WHERE id = $1",
            Statement::Range10 | Statement::Range100 => {
                "SELECT id, balance FROM accounts WHERE id BETWEEN $1 AND $2 ORDER BY id"
            }
            Statement::Sum100 => "SELECT sum(balance), count(*) FROM accounts WHERE id BETWEEN $1 AND $2",
            Statement::Index => "SELECT id, balance FROM accounts WHERE owner = $1",
            Statement::Join => {
                "SELECT o.city, o.born, a.balance FROM accounts a JOIN owners o ON o.id = a.owner WHERE a.id = $1"
            }
            Statement::Update => "UPDATE accounts SET balance = balance + $2, a = $2, b = $3, c = $4 WHERE id = $1",
            Statement::UpdateReturning => "UPDATE accounts SET balance = balance + $2 WHERE id = $1 RETURNING balance",
            Statement::Upsert => {
                "INSERT INTO owners (id, city, born) VALUES ($1, $2, $3) \
                 ON CONFLICT (id) DO UPDATE SET city = excluded.city, born = owners.born + 1"
            }
            Statement::Insert => INSERT_ACCOUNT,
            Statement::Delete => "DELETE FROM accounts WHERE id = $1",
        }
    }

    /// The values of its parameters for a number: random below `rows`, or, for rows that come or go, the next one.
    pub(super) fn values(self, number: u64, rows: u64) -> SmallVec<[i64; PARAMETERS_MAX]> {
        let id = (number % rows) as i64;
        match self {
            Statement::Select | Statement::Join => smallvec![id],
            Statement::Range10 => smallvec![id, id + 9],
            Statement::Range100 | Statement::Sum100 => smallvec![id, id + 99],
            Statement::Index => smallvec![id / ACCOUNTS_OF_OWNER as i64],
            Statement::Update => smallvec![id, 3, 5, 7],
            Statement::UpdateReturning => smallvec![id, 1],
            // Some of them are new.
            Statement::Upsert => smallvec![(number % (rows / 5)) as i64, 5, 1950],
            Statement::Insert => account((rows + number) as i64).into(),
            Statement::Delete => smallvec![(rows + number) as i64],
        }
    }

    /// Whether it is a change that gives no rows.
    pub(super) fn is_of_changes(self) -> bool {
        matches!(self, Statement::Update | Statement::Upsert | Statement::Insert | Statement::Delete)
    }

    /// Whether each run needs a row of its own.
    pub(super) fn goes_on(self) -> bool {
        matches!(self, Statement::Insert | Statement::Delete)
    }
}
