//! Lengths of time on the command lines of the benchmarks.
use std::time::Duration;

/// Reads how long something runs, as an argument says it.
///
/// # Errors
/// What is wrong with the text: it is no number, or below a millisecond, or above a million seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "not a number".to_owned())?;
    if !(0.001..=1e6).contains(&seconds) {
        return Err("must be from 0.001 to 1000000".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}
