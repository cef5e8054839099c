//! The 22 queries, with the specification's validation parameters, and the query that checks consistency.

/// The 22 queries in order.
const QUERIES: [&str; 22] = [
    include_str!("../../queries/q01.sql"),
    include_str!("../../queries/q02.sql"),
    include_str!("../../queries/q03.sql"),
    include_str!("../../queries/q04.sql"),
    include_str!("../../queries/q05.sql"),
    include_str!("../../queries/q06.sql"),
    include_str!("../../queries/q07.sql"),
    include_str!("../../queries/q08.sql"),
    include_str!("../../queries/q09.sql"),
    include_str!("../../queries/q10.sql"),
    include_str!("../../queries/q11.sql"),
    include_str!("../../queries/q12.sql"),
    include_str!("../../queries/q13.sql"),
    include_str!("../../queries/q14.sql"),
    include_str!("../../queries/q15.sql"),
    include_str!("../../queries/q16.sql"),
    include_str!("../../queries/q17.sql"),
    include_str!("../../queries/q18.sql"),
    include_str!("../../queries/q19.sql"),
    include_str!("../../queries/q20.sql"),
    include_str!("../../queries/q21.sql"),
    include_str!("../../queries/q22.sql"),
];

/// Counts the orders with a total price that is not the sum of their lines: 0 in every consistent state.
pub const CONSISTENCY: &str = include_str!("../../queries/consistency.sql");

/// The text of query `number`, 1 to 22, for a scale factor.
///
/// # Panics
/// If there is no such query.
pub fn query(number: usize, sf: f64) -> String {
    let text = QUERIES[number - 1];
    match number {
        // The specification has the fraction of the eleventh shrink as the data grows.
        11 => {
            let fraction = format!("{:.10}", 0.0001 / sf);
            text.replace("* 0.0001", &format!("* {}", fraction.trim_end_matches('0')))
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fraction_of_the_eleventh_query_follows_the_scale() {
        assert!(query(11, 1.0).contains("* 0.0001\n"));
        assert!(query(11, 0.1).contains("* 0.001\n"));
        assert!(query(11, 30.0).contains("* 0.0000033333\n"));
    }

    #[test]
    fn each_query_is_one_statement() {
        for number in 1..=22 {
            assert_eq!(sql::split(&query(number, 1.0)).len(), 1, "query {number}");
        }
        assert_eq!(sql::split(CONSISTENCY).len(), 1);
    }
}
