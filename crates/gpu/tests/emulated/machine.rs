//! Building the emulated device with g++. Tests of other crates, too, run programs on it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The sources of kernels, `kernels/NAME.cu`.
pub const KERNELS: [&str; 5] = ["join", "group", "bitwise", "tree", "roof"];

/// The sources of the device itself, `emulator/NAME.cpp`.
const PARTS: [&str; 2] = ["machine", "driver"];

/// Seconds after which a run counts as stuck.
const RUN_S_MAX: &str = "300";

/// How the device is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// Every access is checked by the device.
    Races,
    /// Under the address sanitizer.
    Addresses,
}

/// An emulated device: a folder with its library.
#[derive(Debug)]
pub struct Machine {
    pub(crate) build: Build,
    pub(crate) folder: PathBuf,
}

/// The folder of crate `gpu`.
pub fn crate_folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu"))
}

impl Machine {
    /// The device of one build; it is compiled once a run of the tests.
    pub fn of(build: Build) -> &'static Self {
        static BUILT: [OnceLock<Machine>; 2] = [OnceLock::new(), OnceLock::new()];
        BUILT[build as usize].get_or_init(|| Self::compile(build))
    }

    fn compile(build: Build) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("emulated-{build:?}"));
        fs::create_dir_all(&folder).expect("a folder for the device");
        let machine = Self { build, folder };
        let sources = crate_folder();
        std::thread::scope(|scope| {
            for name in PARTS {
                let source = sources.join(format!("emulator/{name}.cpp"));
                let machine = &machine;
                scope.spawn(move || machine.compile_one(&source, name, &[]));
            }
            for name in KERNELS {
                let source = sources.join(format!("kernels/{name}.cu"));
                let machine = &machine;
                scope.spawn(move || machine.compile_kernel(&source, name));
            }
        });
        machine.link(&machine.folder, None);
        machine
    }

    pub(crate) fn compile_kernel(&self, source: &Path, name: &str) {
        match self.build {
            // The sanitizer's hooks lead into the device.
            Build::Races => self.compile_one(source, name, &["-fsanitize=thread", "-x", "c++"]),
            Build::Addresses => self.compile_one(source, name, &["-x", "c++"]),
        }
    }

    fn compile_one(&self, source: &Path, name: &str, more: &[&str]) {
        let folder = crate_folder();
        let mut command = Command::new("g++");
        command.args(["-std=c++17", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror"]);
        // Those that nvcc knows and g++ does not.
        command.args(["-Wno-unknown-pragmas", "-Wno-unused-function"]);
        command.arg("-I").arg(folder.join("emulator")).arg("-I").arg(folder.join("kernels"));
        if self.build == Build::Addresses {
            command.arg("-fsanitize=address");
        }
        command.args(more).arg("-c").arg(source).arg("-o").arg(self.folder.join(format!("{name}.o")));
        succeed(&mut command);
    }

    /// Links the library into `folder`, one kernel's object from there if it is named.
    pub(crate) fn link(&self, folder: &Path, other: Option<&str>) {
        let mut command = Command::new("g++");
        command.arg("-shared").arg("-o").arg(folder.join("libcuda.so.1"));
        if self.build == Build::Addresses {
            command.arg("-fsanitize=address");
        }
        for name in PARTS.iter().chain(&KERNELS) {
            let from = if Some(*name) == other { folder } else { &self.folder };
            command.arg(from.join(format!("{name}.o")));
        }
        succeed(&mut command);
    }

    /// A program that is about to start with this device as its driver's, under some settings of the device.
    pub fn command(&self, program: impl AsRef<OsStr>, settings: &[(&str, &str)]) -> Command {
        let mut command = Command::new("timeout");
        command.arg(RUN_S_MAX).arg(program).env("LD_LIBRARY_PATH", &self.folder);
        command.envs(settings.iter().copied());
        if self.build == Build::Addresses {
            command.env("LD_PRELOAD", sanitizer()).env("ASAN_OPTIONS", "detect_leaks=0");
        }
        command
    }
}

fn sanitizer() -> String {
    let output = Command::new("g++").arg("-print-file-name=libasan.so").output().expect("g++ starts");
    let path = String::from_utf8(output.stdout).expect("a path");
    // The file may be a script for the linker's eyes only.
    fs::canonicalize(path.trim()).expect("the address sanitizer's library").display().to_string()
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("g++ starts");
    assert!(output.status.success(), "{command:?}\n{}", said(&output));
}

pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
