//! Running `gpu-bench` on the emulated device, whole or with a kernel that is broken.

use std::fs;

use crate::machine::{Machine, crate_folder, said};

/// Headers of the kernels' sources.
pub const HEADERS: [&str; 5] = ["chosen.cuh", "collect.cuh", "device.cuh", "parts.cuh", "table.cuh"];

impl Machine {
    /// The device with another text of one file, in a folder of its own. A header's text counts for `kernel`.
    pub fn with_kernel(&self, kernel: &str, file: &str, text: &str, number: usize) -> Self {
        let folder = self.folder.join(format!("mutation-{number}"));
        fs::create_dir_all(&folder).expect("a folder for the device");
        let source = folder.join(format!("{kernel}.cu"));
        // A source finds headers beside it first, and they each other.
        for name in HEADERS {
            fs::copy(crate_folder().join(format!("kernels/{name}")), folder.join(name)).expect("a copy of a header");
        }
        fs::copy(crate_folder().join(format!("kernels/{kernel}.cu")), &source).expect("a copy of a source");
        fs::write(folder.join(file), text).expect("a source to compile");
        let machine = Self { build: self.build, folder };
        machine.compile_kernel(&source, kernel);
        self.link(&machine.folder, Some(kernel));
        machine
    }

    /// Runs the checks of all kernels for some seeds; the error is what the program said.
    pub fn check(&self, settings: &[(&str, &str)], first_seed: u64, last_seed: u64) -> Result<String, String> {
        self.run(&["check", "", &first_seed.to_string(), &last_seed.to_string()], settings)
    }

    /// Runs the program on this device; what it said.
    pub fn run(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Result<String, String> {
        let mut command = self.command(env!("CARGO_BIN_EXE_gpu-bench"), settings);
        let output = command.args(arguments).output().expect("the program starts");
        if output.status.success() { Ok(said(&output)) } else { Err(said(&output)) }
    }
}
