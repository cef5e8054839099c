//! Wrapping: columns become narrower until a line fits the screen, and their values go on in lines below.
//!
//! As in psql, the column that gives is the one whose widest value is widest beside the average of its values; none becomes narrower
//! than its name.
use super::width::char_width;

/// How a line of a value ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With the value.
    Value,
    /// With a line break of the value.
    Break,
    /// Where the column does.
    Wrap,
}

/// The columns of a table as far as their widths go.
pub(super) struct Widths<'a> {
    /// Those of the names.
    pub(super) names: &'a [usize],
    /// Those of the widest value or name.
    pub(super) widest: &'a [usize],
    /// The averages of the values.
    pub(super) averages: &'a [usize],
}

/// The widths with which a line is no wider than it is to be; those of before where that can't be had.
pub(super) fn fitted(widths: &Widths<'_>, excess: usize) -> Vec<usize> {
    let mut fitted = widths.widest.to_vec();
    for _ in 0..excess {
        let mut worst = (0.0, None);
        for (at, average) in widths.averages.iter().enumerate() {
            if *average > 0 && fitted[at] > widths.names[at] {
                let ratio = fitted[at] as f64 / *average as f64 + widths.widest[at] as f64 * 0.01;
                if ratio > worst.0 {
                    worst = (ratio, Some(at));
                }
            }
        }
        let Some(at) = worst.1 else { break };
        fitted[at] -= 1;
    }
    fitted
}

/// The lines of a value in a column of this width, each with how it ends.
pub(super) fn lines(text: &str, width: usize) -> Vec<(&str, End)> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let (mut start, mut used) = (0, 0);
        for (at, char) in line.char_indices() {
            let cells = char_width(char);
            if used + cells > width && at > start {
                lines.push((&line[start..at], End::Wrap));
                (start, used) = (at, 0);
            }
            used += cells;
        }
        lines.push((&line[start..], End::Break));
    }
    if let Some(last) = lines.last_mut() {
        last.1 = End::Value;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_on_in_the_next_line() {
        let expected = [("ab", End::Wrap), ("c", End::Break), ("日", End::Wrap), ("本", End::Value)];
        assert_eq!(lines("abc\n日本", 2), expected);
        assert_eq!(lines("", 2), [("", End::Value)]);
        assert_eq!(lines("日", 1), [("日", End::Value)]);
    }

    #[test]
    fn the_column_whose_values_differ_most_gives() {
        let widths = Widths { names: &[2, 3], widest: &[10, 30], averages: &[10, 6] };
        assert_eq!(fitted(&widths, 20), [10, 10]);
        assert_eq!(fitted(&widths, 100), [2, 3]);
    }
}
