//! What a section of a plan costs on a device and on the CPU, by coefficients that are fitted to what was measured.
//!
//! ```text
//! device   host * values made ready + transfer * bytes + launch * kernels + memory * bytes read + random * places met + result * bytes
//!          + call * calls
//! CPU      by operator: rows, values, rows of the hash table, rows that look there, rows of the result
//! ```
//!
//! Each is a sum of products of a coefficient (nanoseconds) and an amount of work. A run measures the sum of some of them. Of the
//! measured over the estimated time, each coefficient takes a power: the larger its share of the estimate, the more of it. So coefficients
//! stay positive, and those that had no part in a run stay as they are.

/// How much more than its estimate a section may take on the device before the CPU would have been the better choice.
const MARGIN: f64 = 1.2;

/// How far a coefficient goes towards what one run says of it.
const RATE: f64 = 0.3;

/// Amounts of work, or their coefficients, on a device: values made ready, bytes brought there, kernels, bytes that they read, places of
/// memory that they meet, bytes brought back, calls.
pub(crate) type DeviceWork = [f64; 7];

/// Those on the CPU: rows grouped, values grouped, rows of a hash table, rows that look for partners there, rows joined.
pub(crate) type CpuWork = [f64; 5];

/// The work of a partial grouping that makes so many columns, keys among them, of so many rows.
pub(crate) fn grouping_on_cpu(rows: f64, columns: usize) -> CpuWork {
    [rows, rows * columns as f64, 0.0, 0.0, 0.0]
}

/// The work of a hash join.
pub(crate) fn join_on_cpu(build: f64, probe: f64, joined: f64) -> CpuWork {
    [0.0, 0.0, build, probe, joined]
}

/// Before anything was measured: a device behind a bus of 12 GB/s.
const DEVICE_FIRST: DeviceWork = [2.0, 0.08, 20_000.0, 0.001, 0.05, 0.2, 100_000.0];
/// Likewise: one core.
const CPU_FIRST: CpuWork = [8.0, 3.0, 40.0, 20.0, 10.0];

/// The parts of a device's work whose time is measured together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    Host,
    Transfer,
    Kernels,
    Results,
}

impl Phase {
    /// Which amounts of work are its.
    fn of(self, work: &DeviceWork) -> DeviceWork {
        let [host, transfer, launches, memory, random, result, calls] = *work;
        match self {
            Phase::Host => [host, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            Phase::Transfer => [0.0, transfer, 0.0, 0.0, 0.0, 0.0, 0.0],
            Phase::Kernels => [0.0, 0.0, launches, memory, random, 0.0, 0.0],
            Phase::Results => [0.0, 0.0, 0.0, 0.0, 0.0, result, calls],
        }
    }
}

/// The coefficients.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CostModel {
    device: DeviceWork,
    cpu: CpuWork,
}

impl Default for CostModel {
    fn default() -> CostModel {
        CostModel { device: DEVICE_FIRST, cpu: CPU_FIRST }
    }
}

impl CostModel {
    /// Nanoseconds on the device.
    pub(crate) fn device_ns(&self, work: &DeviceWork) -> f64 {
        sum(&self.device, work)
    }

    /// Nanoseconds on so many cores.
    pub(crate) fn cpu_ns(&self, work: &CpuWork, cores: usize) -> f64 {
        sum(&self.cpu, work) / cores.max(1) as f64
    }

    /// Whether a section that costs so much goes to the device.
    pub(crate) fn is_worth_it(device_ns: f64, cpu_ns: f64) -> bool {
        MARGIN * device_ns < cpu_ns
    }

    /// Learns from a phase of a run on the device.
    pub(crate) fn learn_device(&mut self, phase: Phase, work: &DeviceWork, measured_ns: f64) {
        fit(&mut self.device, &phase.of(work), measured_ns);
    }

    /// Learns from a run on the CPU, of which the time of all cores is added up.
    pub(crate) fn learn_cpu(&mut self, work: &CpuWork, measured_ns: f64) {
        fit(&mut self.cpu, work, measured_ns);
    }
}

fn sum(coefficients: &[f64], work: &[f64]) -> f64 {
    coefficients.iter().zip(work).map(|(coefficient, work)| coefficient * work).sum()
}

fn fit(coefficients: &mut [f64], work: &[f64], measured: f64) {
    let estimated = sum(coefficients, work);
    let ratio = measured / estimated;
    if !(ratio.is_finite() && ratio > 0.0) {
        return;
    }
    for (coefficient, work) in coefficients.iter_mut().zip(work) {
        *coefficient *= ratio.powf(RATE * *coefficient * work / estimated);
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    #[test]
    fn coefficients_come_to_those_of_the_machine_that_is_measured() {
        let truth =
            CostModel { device: [1.1, 0.3, 7_000.0, 0.004, 0.01, 0.05, 90_000.0], cpu: [3.0, 9.0, 11.0, 60.0, 2.0] };
        let (mut model, mut random) = (CostModel::default(), StdRng::seed_from_u64(1));
        let mut work = || {
            let mut amount = |most: f64| random.random_range(0.0..1.0f64).powi(2) * most;
            let device = [amount(1e7), amount(1e8), amount(20.0), amount(1e9), amount(1e7), amount(1e7), 1.0];
            (device, [amount(1e7), amount(2e7), amount(1e5), amount(1e7), amount(1e7)])
        };
        for _ in 0..3_000 {
            let (device, cpu) = work();
            for phase in [Phase::Host, Phase::Transfer, Phase::Kernels, Phase::Results] {
                model.learn_device(phase, &device, truth.device_ns(&phase.of(&device)));
            }
            model.learn_cpu(&cpu, truth.cpu_ns(&cpu, 1));
        }
        for _ in 0..50 {
            let (device, cpu) = work();
            let ratio = model.device_ns(&device) / truth.device_ns(&device);
            assert!((0.9..1.1).contains(&ratio), "{ratio}: {model:?}");
            let ratio = model.cpu_ns(&cpu, 2) / truth.cpu_ns(&cpu, 2);
            assert!((0.9..1.1).contains(&ratio), "{ratio}: {model:?}");
        }
    }

    #[test]
    fn runs_that_say_nothing_change_nothing() {
        let mut model = CostModel::default();
        for measured in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            model.learn_device(Phase::Kernels, &[1.0; 7], measured);
        }
        model.learn_cpu(&[0.0; 5], 10.0);
        assert_eq!(model, CostModel::default());
    }

    #[test]
    fn the_device_has_to_be_a_fifth_cheaper() {
        assert!(CostModel::is_worth_it(100.0, 121.0) && !CostModel::is_worth_it(100.0, 119.0));
    }
}
