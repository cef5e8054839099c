//! The kernels without a device: their sources run on the emulated one (`emulator/`), through the program that
//! would run them on a real one.
//!
//! Two builds of it. One checks every access of the kernels itself: bounds, alignment, races. The other is
//! under the address sanitizer, with the program's own memory.

mod machine;
mod mutations;
mod program;

use machine::{Build, Machine};

/// Schedules that every kernel runs under; more with `LSTORE_GPU_SEEDS`.
fn seeds() -> u64 {
    std::env::var("LSTORE_GPU_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

#[test]
fn kernels_agree_with_their_twins() {
    let machine = Machine::of(Build::Races);
    machine.check(&[("EMULATED_SEED", "1")], 1, seeds()).expect("all kernels agree");
    machine.check(&[("EMULATED_SEED", "2")], 1, seeds()).expect("all kernels agree");
}

#[test]
fn kernels_agree_under_the_address_sanitizer() {
    let machine = Machine::of(Build::Addresses);
    machine.check(&[], 1, 2).expect("all kernels agree");
}

#[test]
fn a_device_of_another_kind_compiles_the_kernels_itself() {
    let machine = Machine::of(Build::Races);
    machine.check(&[("EMULATED_CAPABILITY", "75")], 1, 1).expect("all kernels agree");
}

#[test]
fn a_device_without_memory_says_so_and_answers_nothing_wrong() {
    let machine = Machine::of(Build::Races);
    for allocation in ["1", "2", "5", "9", "40"] {
        let said = machine.check(&[("EMULATED_FAIL_ALLOC", allocation)], 1, 1).expect_err("memory is missing");
        assert!(said.contains("the device has no room for"), "{said}");
    }
    let said = machine.check(&[("EMULATED_MEMORY", "4096")], 1, 1).expect_err("memory is missing");
    assert!(said.contains("the device has no room for"), "{said}");
}

#[test]
fn a_kernel_that_fails_says_so_and_answers_nothing_wrong() {
    let machine = Machine::of(Build::Races);
    for launch in ["1", "2", "3", "20"] {
        let said = machine.check(&[("EMULATED_FAIL_LAUNCH", launch)], 1, 1).expect_err("a kernel fails");
        assert!(said.contains("CUDA_ERROR_LAUNCH_FAILED"), "{said}");
    }
}

#[test]
fn an_old_driver_is_named() {
    let machine = Machine::of(Build::Races);
    let said = machine.check(&[("EMULATED_VERSION", "12040")], 1, 1).expect_err("the driver is old");
    assert!(said.contains("the CUDA driver is of version 12040, but version 13000 is needed"), "{said}");
}

#[test]
fn every_mutation_of_a_kernel_is_noticed() {
    mutations::check_all();
}

#[test]
fn the_binaries_are_those_of_the_sources() {
    let folder = machine::crate_folder().join("kernels");
    let status = std::process::Command::new("sha256sum")
        .args(["--check", "--quiet", "binary/sources.sha256"])
        .current_dir(&folder)
        .status()
        .expect("sha256sum starts");
    assert!(status.success(), "run crates/gpu/kernels/build: the binaries are older than their sources");
}

#[test]
fn every_benchmark_runs_and_checks_its_answers() {
    // The paper's random writes are not ordered, so this is not for the build that looks for races.
    let machine = Machine::of(Build::Addresses);
    let said = machine.run(&["measure", "all", "--small"], &[]).expect("all benchmarks run");
    assert!(said.contains("no time") && said.contains("table 1, theta 1"), "{said}");
    let said = machine.run(&["measure", "join"], &[]).expect_err("there are no times to measure");
    assert!(said.contains("the emulated device has no times"), "{said}");
}
