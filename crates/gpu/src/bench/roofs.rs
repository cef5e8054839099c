//! The roofs of a device: memory, host memory over the bus, atomic operations; and the micro benchmarks of gpu-join
//! (Table 1, Figures 7 to 9).

use std::sync::Arc;

use super::Size;
use super::report::Line;
use super::timing::{billions_a_second, milliseconds};
use crate::device::{Device, DeviceBuffer, Event, Grid, Kernel, Parameters, Pinned, Stream};
use crate::error::GpuError;

/// The bounds that the operators are held against, in billions of bytes or of operations a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Roofs {
    /// Kernels read device memory.
    pub device_read: Option<f64>,
    /// Kernels read pinned host memory, the faster of 8 and 16 bytes a lane.
    pub host_read: Option<f64>,
    /// Kernels write pinned host memory.
    pub host_write: Option<f64>,
    /// Kernels read pinned host memory and write as much of it, one way's bytes.
    pub host_exchange: Option<f64>,
    /// The copy engine reads pinned host memory.
    pub copied: Option<f64>,
    /// Additions in shared memory, each lane in a bank of its own.
    pub shared_atomics: Option<f64>,
}

const BENCH: &str = "gpu.roofs";

struct Bench<'a> {
    device: &'a Arc<Device>,
    checksum: DeviceBuffer<u64>,
    runs: usize,
    lines: Vec<Line>,
}

impl Bench<'_> {
    fn kernel(&self, name: &'static str) -> Result<(Kernel, Grid), GpuError> {
        let kernel = self.device.kernel(name)?;
        let blocks = self.device.blocks_that_fit(&kernel, 512, 0)?;
        Ok((kernel, Grid { blocks, threads: 512, shared_bytes: 0 }))
    }

    /// Times one launch; `amount` is what it moves or does.
    fn time(
        &mut self,
        case: String,
        unit: &'static str,
        amount: f64,
        launch: impl FnMut(&Stream) -> Result<(), GpuError>,
    ) -> Result<Option<f64>, GpuError> {
        let spans_ms = milliseconds(self.device, self.runs, launch)?;
        let line = Line::of_runs(BENCH, case, "throughput", unit, &billions_a_second(amount, &spans_ms));
        let line = if self.device.properties().is_emulated { line.without_times() } else { line };
        let value = line.value;
        self.lines.push(line);
        Ok(value)
    }

    fn read(&mut self, what: &str, place: u64, bytes: usize) -> Result<Option<f64>, GpuError> {
        let (wide, grid) = self.kernel("roof_read")?;
        let checksum = self.checksum.address();
        let wide = self.time(format!("{what}, 16 bytes a lane"), "GB/s", bytes as f64, |stream| {
            let mut parameters = Parameters::new().word(place).word(bytes as u64 / 16).word(checksum);
            // SAFETY: `place` is of `bytes` bytes, which the caller keeps until the stream is waited for.
            unsafe { wide.launch(stream, grid, &mut parameters) }
        })?;
        let (narrow, grid) = self.kernel("roof_read_words")?;
        let mut best = wide;
        for (word_bytes, is_wide) in [(4, 0), (8, 1)] {
            let case = format!("{what}, {word_bytes} bytes a lane");
            let found = self.time(case, "GB/s", bytes as f64, |stream| {
                let count = (bytes / word_bytes) as u64;
                let mut parameters = Parameters::new().word(place).word(count).half(is_wide).word(checksum);
                // SAFETY: as above.
                unsafe { narrow.launch(stream, grid, &mut parameters) }
            })?;
            best = best.zip(found).map(|(best, found)| best.max(found));
        }
        Ok(best)
    }

    fn write(&mut self, what: &str, place: u64, bytes: usize) -> Result<Option<f64>, GpuError> {
        let (kernel, grid) = self.kernel("roof_write")?;
        self.time(format!("{what}, 8 bytes a lane"), "GB/s", bytes as f64, |stream| {
            let mut parameters = Parameters::new().word(place).word(bytes as u64 / 8).word(1);
            // SAFETY: as in `read`.
            unsafe { kernel.launch(stream, grid, &mut parameters) }
        })
    }

    fn exchange(&mut self, from: u64, to: u64, bytes: usize) -> Result<Option<f64>, GpuError> {
        let (kernel, grid) = self.kernel("roof_exchange")?;
        self.time("host memory read and written by kernels, each".to_owned(), "GB/s", bytes as f64, |stream| {
            let mut parameters = Parameters::new().word(from).word(to).word(bytes as u64 / 8);
            // SAFETY: both places are of `bytes` bytes, which the caller keeps until the stream is waited for.
            unsafe { kernel.launch(stream, grid, &mut parameters) }
        })
    }

    /// The copy engines in both directions at a time; `back` of 8 words that go there come back.
    fn copy_both_ways(
        &mut self,
        memory: &DeviceBuffer<u64>,
        pinned: &Pinned<u64>,
        back: usize,
    ) -> Result<(), GpuError> {
        let (there, rest) = pinned.split_at(pinned.len() / 2);
        let count = rest.len() / 8 * back;
        let other = Stream::new(self.device)?;
        let from = DeviceBuffer::<u64>::filled(self.device, count, 0x5a, "a roof")?;
        let case = format!("host memory copied to the device and {back} of 8 back, there");
        self.time(case, "GB/s", size_of_val(there) as f64, |stream| {
            other.wait_for(&Event::of(stream)?)?;
            memory.fill_from(stream, there)?;
            from.copy_part_to(&other, count, pinned, there.len())?;
            stream.wait_for(&Event::of(&other)?)
        })?;
        Ok(())
    }

    fn shared_atomics(&mut self, size: Size) -> Result<Option<f64>, GpuError> {
        let kernel = self.device.kernel("roof_shared_atomics")?;
        let turns = size.of(4, 4096) as u32;
        let mut best = None;
        for (spread, operand, what) in [
            (1, 0, "a bank each"),
            (32, 0, "one bank"),
            (0, 0, "one place"),
            (1, 7, "a bank each, of values"),
            (0, 7, "one place, of values"),
        ] {
            let shared_bytes = 16 * 1024;
            let blocks = self.device.blocks_that_fit(&kernel, 1024, shared_bytes)?;
            let grid = Grid { blocks, threads: 1024, shared_bytes };
            let amount = f64::from(blocks) * 1024.0 * f64::from(turns);
            let checksum = self.checksum.address();
            let found = self.time(format!("additions in shared memory, {what}"), "G ops/s", amount, |stream| {
                let mut parameters = Parameters::new().half(turns).half(spread).half(4096).half(operand).word(checksum);
                // SAFETY: these are the kernel's parameters; the checksum outlives the wait.
                unsafe { kernel.launch(stream, grid, &mut parameters) }
            })?;
            if (spread, operand) == (1, 0) {
                best = found;
            }
        }
        Ok(best)
    }

    /// Words of 8 bytes at random in arrays that the device's cache holds or does not: read, and swapped.
    fn sectors(&mut self, memory: &DeviceBuffer<u64>, size: Size) -> Result<(), GpuError> {
        let (kernel, grid) = self.kernel("roof_sectors")?;
        let threads = u64::from(grid.blocks) * u64::from(grid.threads);
        let checksum = self.checksum.address();
        for megabytes in [8, 16, 32, 64, 256] {
            let count = size.of(1 << 9, megabytes << 17).min(memory.len());
            for (what, is_swap) in [("read", false), ("compared and swapped", true)] {
                let turns = size.of(1, (64 << 20) / (threads as usize * 4)) as u32;
                let amount = threads as f64 * 4.0 * f64::from(turns);
                let case = format!("words at random in {megabytes} MB {what}");
                // A swap finds what the launch before has written.
                let mut swaps = 0;
                let stream = Stream::new(self.device)?;
                memory.fill_part(&stream, 0..count, 0)?;
                stream.wait()?;
                self.time(case, "G ops/s", amount, |stream| {
                    swaps += u32::from(is_swap);
                    let mut parameters = Parameters::new()
                        .word(memory.address())
                        .word(count as u64 - 1)
                        .half(swaps)
                        .half(turns)
                        .word(checksum);
                    // SAFETY: these are the kernel's parameters, and all places are below `count`, which the memory has.
                    unsafe { kernel.launch(stream, grid, &mut parameters) }
                })?;
            }
        }
        Ok(())
    }

    /// gpu-join's micro benchmark: visits to words of an array.
    fn visit(&mut self, visit: &Visit, words: &Words, blocks: u32, threads: u32) -> Result<(), GpuError> {
        let all_threads = u64::from(blocks) * u64::from(threads);
        // Within the array for patterns that walk it.
        let turns = visit.turns.min(words.count as u64 / all_threads.min(words.count as u64)).max(1) as u32;
        let grid = Grid { blocks, threads, shared_bytes: 0 };
        if visit.operation == 0 {
            let link = self.device.kernel(if words.is_wide { "roof_link64" } else { "roof_link32" })?;
            let stream = Stream::new(self.device)?;
            let mut parameters =
                Parameters::new().word(words.place).word(words.count as u64).half(visit.pattern).word(all_threads);
            // SAFETY: `words` is of `count` words, which the caller keeps; waited for here.
            unsafe { link.launch(&stream, grid, &mut parameters) }?;
            stream.wait()?;
        }
        let kernel = self.device.kernel(if words.is_wide { "roof_visit64" } else { "roof_visit32" })?;
        let word_bytes = if words.is_wide { 8 } else { 4 };
        let amount = all_threads as f64 * f64::from(turns) * f64::from(word_bytes);
        let case = format!(
            "{}, {}, {} bit, {}, {blocks} blocks of {threads}",
            words.what,
            OPERATIONS[visit.operation as usize],
            word_bytes * 8,
            PATTERNS[visit.pattern as usize]
        );
        let checksum = self.checksum.address();
        self.time(case, "GB/s", amount, |stream| {
            let mut parameters = Parameters::new()
                .word(words.place)
                .word(words.count as u64)
                .half(visit.pattern)
                .half(visit.operation)
                .half(turns)
                .word(checksum);
            // SAFETY: as above; the links stay within the array.
            unsafe { kernel.launch(stream, grid, &mut parameters) }
        })?;
        Ok(())
    }
}

const OPERATIONS: [&str; 4] = ["read, dependent", "read, independent", "write", "compare-and-swap"];
const PATTERNS: [&str; 3] = ["coalesced", "apart", "random"];

struct Words {
    what: &'static str,
    place: u64,
    count: usize,
    is_wide: bool,
}

struct Visit {
    pattern: u32,
    operation: u32,
    turns: u64,
}

/// Measures the roofs.
pub fn measure(device: &Arc<Device>, size: Size) -> Result<(Roofs, Vec<Line>), GpuError> {
    let bytes = size.of(1 << 14, 2 << 30);
    let mut bench = bench_of(device, size)?;
    let memory = DeviceBuffer::<u64>::filled(device, bytes / 8, 0x5a, "a roof")?;
    let pinned = Pinned::<u64>::new(device, bytes / 8, "a roof")?;
    let mut roofs =
        Roofs { device_read: bench.read("device memory read", memory.address(), bytes)?, ..Roofs::default() };
    // As much as the groupings read, which tells what a launch takes by itself.
    for (part, what) in [(8, "an eighth of device memory's 2 GiB read"), (2, "half of device memory's 2 GiB read")] {
        bench.read(what, memory.address(), bytes / part)?;
    }
    bench.write("device memory written", memory.address(), bytes)?;
    roofs.host_read = bench.read("host memory read by kernels", pinned.address()?, bytes)?;
    roofs.host_write = bench.write("host memory written by kernels", pinned.address()?, bytes)?;
    let half = bytes / 16 * 8;
    roofs.host_exchange = bench.exchange(pinned.address()?, pinned.address()? + half as u64, half)?;
    roofs.copied = bench.time("host memory copied to the device".to_owned(), "GB/s", bytes as f64, |stream| {
        memory.fill_from(stream, &pinned)
    })?;
    for back in [8, 4] {
        bench.copy_both_ways(&memory, &pinned, back)?;
    }
    bench.sectors(&memory, size)?;
    roofs.shared_atomics = bench.shared_atomics(size)?;
    Ok((roofs, bench.lines))
}

/// gpu-join, Table 1 and Figures 7 to 9. The paper's array has 512 MB, its grid 1,024 blocks of 1,024.
pub fn micro(device: &Arc<Device>, size: Size) -> Result<Vec<Line>, GpuError> {
    let mut bench = bench_of(device, size)?;
    let bytes = size.of(1 << 14, 4 << 30);
    let memory = DeviceBuffer::<u64>::filled(device, bytes / 8, 0, "a micro benchmark")?;
    let words = |bytes: usize, is_wide: bool| Words {
        what: "device memory",
        place: memory.address(),
        count: bytes / if is_wide { 8 } else { 4 },
        is_wide,
    };
    let (most_blocks, most_threads) = (size.of(2, 1024) as u32, size.of(64, 1024) as u32);
    let paper_bytes = size.of(1 << 13, 512 << 20);
    for is_wide in [false, true] {
        for operation in 0..4 {
            for pattern in 0..3 {
                let visit = Visit { pattern, operation, turns: 64 };
                bench.visit(&visit, &words(paper_bytes, is_wide), most_blocks, most_threads)?;
            }
        }
    }
    // Figure 7: how many threads it takes; Figure 8: how much memory there is.
    for operation in [1, 3] {
        let visit = Visit { pattern: 2, operation, turns: 64 };
        for (blocks, threads) in grids(most_blocks, most_threads) {
            bench.visit(&visit, &words(paper_bytes, true), blocks, threads)?;
        }
        let mut here = size.of(1 << 12, 16 << 20);
        while here <= bytes {
            bench.visit(&visit, &words(here, true), most_blocks, most_threads)?;
            here *= 4;
        }
    }
    // Figure 9: host memory.
    let host_bytes = size.of(1 << 13, 512 << 20);
    let pinned = Pinned::<u64>::new(device, host_bytes / 8, "a micro benchmark")?;
    for operation in [1, 2] {
        for (blocks, threads) in grids(most_blocks, most_threads) {
            let host = Words { what: "host memory", place: pinned.address()?, count: host_bytes / 8, is_wide: true };
            bench.visit(&Visit { pattern: 0, operation, turns: 64 }, &host, blocks, threads)?;
        }
    }
    Ok(bench.lines)
}

fn grids(most_blocks: u32, most_threads: u32) -> Vec<(u32, u32)> {
    let mut all = Vec::new();
    for blocks in [1, 16, 64, 256, 1024] {
        for threads in [32, 128, 1024] {
            if blocks <= most_blocks && threads <= most_threads {
                all.push((blocks, threads));
            }
        }
    }
    all
}

fn bench_of(device: &Arc<Device>, size: Size) -> Result<Bench<'_>, GpuError> {
    let checksum = DeviceBuffer::filled(device, 1, 0, "a checksum")?;
    Ok(Bench { device, checksum, runs: size.of(1, 5), lines: Vec::new() })
}
