//! Simulated annealing over coefficients (the paper's Section 4.2): they are changed by chance, the workload runs, and the change is kept
//! if it ran faster, or sometimes although it did not.
//!
//! ```text
//! strength and     │\      │\      │\          each cycle begins at the best point that was found, with steps so large
//! temperature      │ \__   │ \__   │ \__       that it may leave the neighbourhood, and cools down
//!                  └───────┴───────┴───────▶ iterations
//! ```
//!
//! A step multiplies each coefficient by a number that is log-normally distributed: coefficients of very different sizes are changed
//! alike, and none drifts by itself. The annealer measures nothing: its caller takes a proposal, measures it, and tells the cost. What it
//! knows can be written as text after each iteration and read again; it then goes on as if it had never stopped.
use crate::random::Random;

/// How the search goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// iterations from one restart to the next
    pub cycle: u64,
    /// the standard deviation of the logarithm of a step's factors, at the begin of a cycle and at its end
    pub strength: (f64, f64),
    /// by how much worse, as a part of the cost, a point is accepted with probability 1/e, at the begin of a cycle and at its end
    pub temperature: (f64, f64),
}

impl Default for Schedule {
    /// Cycles of 100 iterations, as in the paper.
    fn default() -> Schedule {
        Schedule { cycle: 100, strength: (1.2, 0.05), temperature: (0.2, 0.001) }
    }
}

/// What became of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// it is the best so far
    Best,
    /// the search goes on from there
    Accepted,
    /// the search goes on from where it was
    Refused,
}

/// A point and what it costs.
#[derive(Clone, Debug, PartialEq)]
struct Point {
    values: Vec<f64>,
    cost: f64,
}

/// A search.
#[derive(Clone, Debug, PartialEq)]
pub struct Annealer {
    schedule: Schedule,
    iteration: u64,
    random: Random,
    best: Point,
    current: Point,
}

impl Annealer {
    /// A search from a point of which the cost is known. All values must be above 0.
    ///
    /// # Panics
    /// If a value is not above 0, or the cycle is of no length.
    pub fn new(schedule: Schedule, seed: u64, values: Vec<f64>, cost: f64) -> Annealer {
        assert!(values.iter().all(|value| *value > 0.0), "a step multiplies, and never leaves 0: {values:?}");
        assert!(schedule.cycle > 0, "a cycle has iterations");
        let start = Point { values, cost };
        Annealer { schedule, iteration: 0, random: Random::new(seed), best: start.clone(), current: start }
    }

    /// The iterations that are over.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// The best point so far and its cost.
    pub fn best(&self) -> (&[f64], f64) {
        (&self.best.values, self.best.cost)
    }

    /// A quantity that falls from the begin of a cycle to its end, by the same factor at each iteration.
    fn cooled(&self, (begin, end): (f64, f64)) -> f64 {
        let part = (self.iteration % self.schedule.cycle) as f64 / self.schedule.cycle as f64;
        begin * (end / begin).powf(part)
    }

    /// The next point to be measured.
    pub fn propose(&mut self) -> Vec<f64> {
        if self.iteration > 0 && self.iteration.is_multiple_of(self.schedule.cycle) {
            self.current = self.best.clone();
        }
        let strength = self.cooled(self.schedule.strength);
        let random = &mut self.random;
        let step = |value: &f64| (value * (strength * random.normal()).exp()).clamp(1e-12, 1e12);
        self.current.values.iter().map(step).collect()
    }

    /// Takes in what a proposal cost.
    pub fn judge(&mut self, values: Vec<f64>, cost: f64) -> Verdict {
        let temperature = self.cooled(self.schedule.temperature);
        self.iteration += 1;
        let chance = self.random.uniform();
        let worse = (cost - self.current.cost) / self.current.cost.abs().max(f64::MIN_POSITIVE);
        if !(cost <= self.current.cost || chance < (-worse / temperature).exp()) {
            return Verdict::Refused;
        }
        self.current = Point { values, cost };
        if cost >= self.best.cost {
            return Verdict::Accepted;
        }
        self.best = self.current.clone();
        Verdict::Best
    }

    /// All that it knows, in lines of words.
    pub fn to_text(&self) -> String {
        let Annealer { schedule: Schedule { cycle, strength, temperature }, iteration, random, best, current } = self;
        let point = |name: &str, point: &Point| {
            let values: Vec<String> = point.values.iter().map(f64::to_string).collect();
            format!("{name} {} {}\n", point.cost, values.join(" "))
        };
        format!(
            "annealer 1\nschedule {cycle} {} {} {} {}\niteration {iteration}\nrandom {}\n{}{}",
            strength.0,
            strength.1,
            temperature.0,
            temperature.1,
            random.state(),
            point("best", best),
            point("current", current)
        )
    }

    /// A search that was written by [`Annealer::to_text`].
    ///
    /// # Errors
    /// What is wrong with the text, and in which line.
    pub fn of_text(text: &str) -> Result<Annealer, String> {
        let mut lines = text.lines();
        let mut line = |name: &str| -> Result<Vec<String>, String> {
            let line = lines.next().unwrap_or_default();
            let mut words = line.split(' ').map(str::to_owned);
            match words.next().as_deref() == Some(name) {
                true => Ok(words.collect()),
                false => Err(format!("a line with \"{name}\" is expected in place of \"{line}\"")),
            }
        };
        if line("annealer")? != ["1"] {
            return Err("the search was stored by another version of the program".to_owned());
        }
        let [cycle, strength_begin, strength_end, hot, cold] = exactly(line("schedule")?)?;
        let [iteration] = exactly(line("iteration")?)?;
        let [random] = exactly(line("random")?)?;
        let (best, current) = (point(&line("best")?)?, point(&line("current")?)?);
        if best.values.len() != current.values.len() {
            return Err("the best and the current point have different numbers of values".to_owned());
        }
        let cycle = whole(&cycle).ok().filter(|cycle| *cycle > 0).ok_or("a cycle has iterations")?;
        let strength = (number(&strength_begin)?, number(&strength_end)?);
        let schedule = Schedule { cycle, strength, temperature: (number(&hot)?, number(&cold)?) };
        Ok(Annealer { schedule, iteration: whole(&iteration)?, random: Random::new(whole(&random)?), best, current })
    }
}

fn exactly<const N: usize>(words: Vec<String>) -> Result<[String; N], String> {
    words.try_into().map_err(|words: Vec<String>| format!("{N} words are expected in place of {}", words.len()))
}

fn whole(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("\"{word}\" is not a whole number"))
}

fn number(word: &str) -> Result<f64, String> {
    let number = word.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("\"{word}\" is not a number above 0"))
}

fn point(words: &[String]) -> Result<Point, String> {
    let numbers = words.iter().map(|word| number(word)).collect::<Result<Vec<f64>, String>>()?;
    match numbers.split_first() {
        Some((cost, values)) if !values.is_empty() => Ok(Point { values: values.to_vec(), cost: *cost }),
        _ => Err("a point is a cost and its values".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A surface with its lowest point at 3, 0.002 and 40, and ripples with other low points around it.
    fn surface(values: &[f64]) -> f64 {
        let away = |value: f64, best: f64| {
            let distance = (value / best).ln();
            distance * distance + 0.5 * (1.0 - (6.0 * distance).cos())
        };
        10.0 + away(values[0], 3.0) + away(values[1], 0.002) + away(values[2], 40.0)
    }

    fn run(annealer: &mut Annealer, iterations: u64) {
        for _ in 0..iterations {
            let values = annealer.propose();
            let cost = surface(&values);
            annealer.judge(values, cost);
        }
    }

    fn begun(seed: u64) -> Annealer {
        let start = vec![1.0, 0.1, 1.0];
        let cost = surface(&start);
        Annealer::new(Schedule::default(), seed, start, cost)
    }

    #[test]
    fn the_lowest_point_of_a_rippled_surface_is_found_from_every_seed() {
        for seed in 0..20 {
            let mut annealer = begun(seed);
            run(&mut annealer, 3_000);
            let (values, cost) = annealer.best();
            assert!(cost < 10.1, "seed {seed}: {cost} at {values:?}");
            for (value, best) in values.iter().zip([3.0, 0.002, 40.0]) {
                assert!((value / best).ln().abs() < 0.2, "seed {seed}: {values:?}");
            }
        }
    }

    #[test]
    fn a_search_that_was_stored_at_any_time_goes_on_as_if_it_had_never_stopped() {
        let mut whole = begun(7);
        run(&mut whole, 250);
        for stopped in [0, 1, 99, 100, 101, 249] {
            let mut first = begun(7);
            run(&mut first, stopped);
            let stored = first.to_text();
            // What it had proposed when it was cut off is proposed again.
            first.propose();
            let mut second = Annealer::of_text(&stored).unwrap();
            run(&mut second, 250 - stopped);
            assert_eq!(second, whole, "stopped at {stopped}");
        }
    }

    #[test]
    fn the_best_point_is_never_lost_and_worse_ones_are_taken_less_and_less() {
        let mut annealer = begun(1);
        let (mut best, mut early, mut late) = (annealer.best().1, 0, 0);
        for at in 0..1_000u64 {
            let before = annealer.current.cost;
            let values = annealer.propose();
            let cost = surface(&values);
            let verdict = annealer.judge(values, cost);
            assert!(annealer.best().1 <= best);
            assert_eq!(verdict == Verdict::Best, annealer.best().1 < best);
            best = annealer.best().1;
            // A cycle's begin brings another point to start from.
            let is_worse = cost > before && verdict == Verdict::Accepted && at % 100 > 0;
            match at % 100 {
                1..=33 => early += u32::from(is_worse),
                67.. => late += u32::from(is_worse),
                _ => {}
            }
        }
        assert!(early > late, "{early} {late}");
    }

    #[test]
    fn steps_do_not_drift() {
        let mut annealer = begun(2);
        let count = 4_000u32;
        let sum: f64 = (0..count).map(|_| annealer.propose()[0].ln()).sum();
        assert!((sum / f64::from(count)).abs() < 0.1, "{}", sum / f64::from(count));
    }

    #[test]
    fn damaged_texts_are_refused_with_the_line() {
        let text = begun(1).to_text();
        assert_eq!(Annealer::of_text(&text), Ok(begun(1)));
        let wrong = |from: &str, to: &str| Annealer::of_text(&text.replace(from, to)).unwrap_err();
        assert!(wrong("annealer 1", "annealer 2").contains("another version"));
        assert!(wrong("schedule 100", "schedule 0").contains("cycle"));
        assert!(wrong("iteration", "x").contains("\"iteration\" is expected"));
        assert!(wrong("random 1", "random -1").contains("whole number"));
        assert!(Annealer::of_text("").is_err() && Annealer::of_text(&text[..text.len() / 2]).is_err());
    }
}
