//! Which mechanism serves which workload on this machine: the costs of each by size, and for the paper's distributions what is chosen
//! and how far that is from the best.
//!
//! `cargo run --release -p lstore-snapshot --example snapshots -- [LARGEST_MIB [CYCLES [FIRST_SIZE [SIZES]]]]`
use snapshot::{Calibration, Case, Distribution, Effort, Regret, SnapshotError};

/// The updates between two snapshots.
const UPDATES: [usize; 4] = [1 << 10, 1 << 14, 1 << 17, 1 << 20];

/// Sizes in parts of the largest one; with seven distributions and four numbers of updates they are 112 cases.
const PARTS: [usize; 4] = [128, 16, 4, 1];

fn main() -> Result<(), SnapshotError> {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<usize>().ok());
    let (largest, cycles) = (numbers.next().unwrap_or(128) << 20, numbers.next().unwrap_or(5));
    let (first, count) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(PARTS.len()));
    let effort = Effort::default();
    let sizes = effort.sizes_bytes.iter().copied().filter(|size| *size <= largest).collect();
    let calibration = Calibration::measure(&Effort { sizes_bytes: sizes, ..effort });
    print_costs(&calibration);
    let mut regrets = Vec::new();
    for size_bytes in PARTS.iter().map(|part| largest / part).skip(first).take(count) {
        for distribution in Distribution::ALL {
            for updates in UPDATES {
                regrets.extend(calibration.regret(&Case { size_bytes, distribution, updates }, cycles)?);
                regrets.last().into_iter().for_each(print_regret);
            }
        }
    }
    tell("estimates alone", regrets.iter().map(|regret| regret.share_of(regret.estimated.candidate)).collect());
    tell("estimates and a trial", regrets.iter().map(Regret::share).collect());
    Ok(())
}

/// How far choices are from the best.
fn tell(which: &str, mut shares: Vec<f64>) {
    shares.sort_by(f64::total_cmp);
    let within = shares.iter().filter(|share| **share <= 0.1).count();
    let (middle, worst) = (shares[shares.len() / 2], shares[shares.len() - 1]);
    println!(
        "regret by {which}: median {:.1} %, worst {:.1} %; {within} of {} cases within 10 %",
        middle * 1e2,
        worst * 1e2,
        shares.len()
    );
}

fn print_costs(calibration: &Calibration) {
    println!("mechanism               size KiB   begin us  update ns   first ns     end ns");
    for costs in &calibration.costs {
        for (size, begin_ns) in costs.begin_ns.points() {
            let [update, first, end] = [&costs.update_ns, &costs.first_ns, &costs.end_ns].map(|curve| curve.at(*size));
            let name = costs.candidate.name();
            println!("{name:22} {:>9} {:>10.1} {update:>10.1} {first:>10.0} {end:>10.0}", size >> 10, begin_ns / 1e3);
        }
    }
    for (candidate, reason) in &calibration.refused {
        println!("{}: {reason}", candidate.name());
    }
}

fn print_regret(regret: &Regret) {
    let Case { size_bytes, distribution, updates } = regret.case;
    let measured: Vec<String> = regret
        .measured
        .iter()
        .map(|(candidate, time)| format!("{} {:.0}", candidate.name(), time.as_secs_f64() * 1e6))
        .collect();
    println!(
        "{:>7} KiB {:15} F_s {updates:>8}: chosen {:22} {:>6.1} % | us: {}",
        size_bytes >> 10,
        distribution.name(),
        regret.choice.candidate.name(),
        regret.share() * 1e2,
        measured.join("; ")
    );
}
