//! The functions and operators of addresses and networks.
//!
//! Comparisons of two addresses of one kind are the planner's, as the bytes that it has of them are in their order; those of an `inet`
//! and a `cidr` are of the `inet` that the `cidr` becomes.
use engine::network::{Network, NetworkFault, NetworkKind};
use engine::{DataType, Value};

use super::form::{Form, strict};
use crate::error::SqlError;

type Answer = Result<Value, SqlError>;

const INET: DataType = DataType::Network(NetworkKind::Inet);
const CIDR: DataType = DataType::Network(NetworkKind::Cidr);

/// The functions under their names in SQL.
pub(super) fn named() -> Vec<(&'static str, Vec<Form>)> {
    let text = |of: String| Value::Text(of);
    vec![
        ("inet", vec![of_one(INET, |of| Value::Network(of.inet()))]),
        ("cidr", vec![of_one(CIDR, |of| Value::Network(of.network()))]),
        ("network", vec![of_one(CIDR, |of| Value::Network(of.network()))]),
        ("broadcast", vec![of_one(INET, |of| Value::Network(of.broadcast()))]),
        ("netmask", vec![of_one(INET, |of| Value::Network(of.netmask()))]),
        ("hostmask", vec![of_one(INET, |of| Value::Network(of.hostmask()))]),
        ("host", vec![of_one(DataType::TEXT, move |of| text(of.host()))]),
        ("abbrev", [INET, CIDR].map(|takes| of_kind(takes, DataType::TEXT, move |of| text(of.abbreviated()))).into()),
        ("masklen", vec![of_one(DataType::Integer, |of| Value::Integer(of.length().into()))]),
        ("family", vec![of_one(DataType::Integer, |of| Value::Integer(of.family().version().into()))]),
        ("set_masklen", [INET, CIDR].map(with_length).into()),
        ("bitwise_not", vec![of_one(INET, |of| Value::Network(of.not()))]),
        ("inet_same_family", vec![truth(|one, other| one.family() == other.family())]),
        ("inet_merge", vec![of_two(CIDR, "merge addresses", Network::merge)]),
    ]
}

/// The operators under their names in SQL.
pub(super) fn operators() -> Vec<(&'static str, Vec<Form>)> {
    vec![
        ("<<", vec![truth(|one, other| one.is_within(other, false))]),
        ("<<=", vec![truth(|one, other| one.is_within(other, true))]),
        (">>", vec![truth(|one, other| other.is_within(one, false))]),
        (">>=", vec![truth(|one, other| other.is_within(one, true))]),
        ("&&", vec![truth(Network::overlaps)]),
        ("&", vec![of_two(INET, "AND inet values", Network::and)]),
        ("|", vec![of_two(INET, "OR inet values", Network::or)]),
        ("+", vec![moved(INET, DataType::BigInt, i128::from), moved(DataType::BigInt, INET, i128::from)]),
        ("-", vec![moved(INET, DataType::BigInt, |count| -i128::from(count)), difference()]),
    ]
}

fn address(value: Option<&Value>) -> Option<Network> {
    match value {
        Some(Value::Network(address)) => Some(*address),
        _ => None,
    }
}

/// What is computed of an address of either kind.
fn of_one(gives: DataType, compute: impl Fn(Network) -> Value + Send + Sync + 'static) -> Form {
    of_kind(INET, gives, compute)
}

/// What is computed of an address of a kind.
fn of_kind(takes: DataType, gives: DataType, compute: impl Fn(Network) -> Value + Send + Sync + 'static) -> Form {
    strict([takes], gives, move |row| Ok(address(row.first()).map_or(Value::Null, &compute)))
}

fn pair(row: &[Value]) -> Option<(Network, Network)> {
    address(row.first()).zip(address(row.get(1)))
}

/// What is asked of two addresses.
fn truth(ask: fn(Network, Network) -> bool) -> Form {
    strict([INET, INET], DataType::Boolean, move |row| {
        Ok(pair(row).map_or(Value::Null, |(one, other)| Value::Boolean(ask(one, other))))
    })
}

/// What makes one address of two.
fn of_two(gives: DataType, what: &'static str, join: fn(Network, Network) -> Result<Network, NetworkFault>) -> Form {
    strict([INET, INET], gives, move |row| match pair(row) {
        Some((one, other)) => join(one, other).map(Value::Network).map_err(|fault| refused(fault, what)),
        None => Ok(Value::Null),
    })
}

/// An address that is some places away from another one; either may be written first.
fn moved(first: DataType, second: DataType, count: fn(i64) -> i128) -> Form {
    strict([first, second], INET, move |row| match row {
        [Value::Network(from), Value::BigInt(away)] | [Value::BigInt(away), Value::Network(from)] => {
            from.plus(count(*away)).map(Value::Network).map_err(|fault| refused(fault, ""))
        }
        _ => Ok(Value::Null),
    })
}

fn difference() -> Form {
    strict([INET, INET], DataType::BigInt, |row| match pair(row) {
        Some((one, other)) => {
            one.minus(other).map(Value::BigInt).map_err(|fault| refused(fault, "subtract inet values"))
        }
        None => Ok(Value::Null),
    })
}

/// An address with another length of its network.
fn with_length(kind: DataType) -> Form {
    strict([kind, DataType::Integer], kind, |row| -> Answer {
        match (address(row.first()), row.get(1)) {
            (Some(of), Some(Value::Integer(length))) => match of.with_length(*length) {
                Some(changed) => Ok(Value::Network(changed)),
                None => Err(SqlError::new("22023", format!("invalid mask length: {length}"))),
            },
            _ => Ok(Value::Null),
        }
    })
}

fn refused(fault: NetworkFault, what: &str) -> SqlError {
    match fault {
        NetworkFault::Families if what.starts_with("merge") => {
            SqlError::new("22023", "cannot merge addresses from different families")
        }
        NetworkFault::Families => SqlError::new("22023", format!("cannot {what} of different sizes")),
        NetworkFault::Range => SqlError::new("22003", "result is out of range"),
    }
}
