//! Power loss at every step of writing, publishing, sweeping and opening checkpoints: a published checkpoint is found
//! whole with the one before it, nothing looks damaged, nothing is left over, and checkpoints go on from there.

use durability::CheckpointError;
use testkit::{Failure, FaultyDevice};

use crate::support::{Ledger, Run, User, open, open_checked};

/// Several lives of several checkpoints each, one of them given up.
fn scripted(device: &FaultyDevice, ledger: &mut Ledger) -> Result<(), CheckpointError> {
    for life in 0..3 {
        let (checkpoints, found) = open(device)?;
        ledger.check(&found, &checkpoints);
        let mut user = User::restored(found.manifests.first(), ledger);
        for round in 0..4_u64 {
            user.add(5 + life);
            // Some die soon, so that files are emptied; some live for ever.
            user.forget(|number| number % 7 != 3 && number % 4 == round);
            if round == 2 {
                user.abandon(&checkpoints)?;
            }
            ledger.trim_below = user.checkpoint(&checkpoints, ledger)?.trim_below;
        }
    }
    Ok(())
}

/// Checks the state after the crash; then checkpoints go on, and lose power once more.
fn survives(image: &FaultyDevice, ledger: &Ledger, step: u64, seed: u64) {
    let _run = Run { step, seed };
    let mut ledger = ledger.clone();
    let (checkpoints, mut user) = open_checked(image, &mut ledger);
    for round in 0..seed % 4 {
        user.add(3);
        user.forget(|number| number % 3 == round);
        ledger.trim_below = user.checkpoint(&checkpoints, &mut ledger).unwrap().trim_below;
    }
    let lows = ledger.lows();
    let again = image.after_power_loss(seed);
    drop(checkpoints);
    open_checked(&again, &mut ledger);
    assert_eq!(ledger.lows(), lows, "what was shown once is shown again");
}

/// Cuts the power at every step of an opening of `image()`. Returns the number of steps.
fn survives_crashes_of_opening(image: impl Fn() -> FaultyDevice, ledger: &Ledger, seed: u64) -> u64 {
    for step in 1.. {
        let device = image();
        device.cut_power_at(step);
        let opened = open(&device);
        if !device.is_off() {
            return step - 1;
        }
        assert!(opened.is_err());
        survives(&device.after_power_loss(seed ^ step), ledger, step, seed ^ step);
    }
    unreachable!()
}

#[test]
fn at_every_step_of_a_script() {
    let (rehearsal, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    scripted(&rehearsal, &mut ledger).unwrap();
    assert_eq!(ledger.lows().len(), 12);
    let (mut images, mut openings) = (0, 0);
    for step in 1..=rehearsal.steps() {
        let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
        device.cut_power_at(step);
        let _cut_short = scripted(&device, &mut ledger);
        assert!(device.is_off());
        for seed in (0..8).map(|seed| step << 16 | seed) {
            survives(&device.after_power_loss(seed), &ledger, step, seed);
            images += 1;
        }
        let seed = step << 16;
        openings += survives_crashes_of_opening(|| device.after_power_loss(seed), &ledger, seed);
    }
    println!("{} crash points, {images} images, {openings} crashes while opening", rehearsal.steps());
}

/// A process that crashes, or a step that fails, leaves the page cache. Checkpoints found there must survive a
/// power loss that follows, although they had not been synced.
#[test]
fn what_an_opening_shows_is_durable() {
    let (rehearsal, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    scripted(&rehearsal, &mut ledger).unwrap();
    for step in 1..=rehearsal.steps() {
        for seed in 0..4 {
            let _run = Run { step, seed };
            let (device, mut ledger) = (FaultyDevice::new(seed), Ledger::default());
            if seed % 2 == 0 {
                device.fail_at(step, Failure::Io);
            } else {
                device.cut_power_at(step);
            }
            let _cut_short = scripted(&device, &mut ledger);
            let device = device.after_process_crash(seed);
            let (checkpoints, _) = open_checked(&device, &mut ledger);
            let shown = ledger.lows();
            let image = device.after_power_loss(seed);
            drop(checkpoints);
            open_checked(&image, &mut ledger);
            assert_eq!(ledger.lows(), shown, "shown, then lost");
        }
    }
}
