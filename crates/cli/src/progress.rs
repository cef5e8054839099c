//! Progress on standard error: bars on a terminal, lines elsewhere.
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use lab::Progress;

/// Work below this many bytes is over before a bar could be read.
const BAR_BYTES_MIN: u64 = 4 << 20;

fn bar(template: &str, total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn bytes_bar(label: &str, total: Option<u64>) -> ProgressBar {
    let bar = match total {
        Some(total) => bar("{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}", total),
        None => {
            let spinner = ProgressBar::new_spinner();
            spinner.enable_steady_tick(Duration::from_millis(100));
            spinner
        }
    };
    bar.set_message(label.to_owned());
    bar
}

/// A bar for each statement that reads or writes a file.
#[derive(Default)]
pub(crate) struct CopyBars {
    bar: Mutex<Option<ProgressBar>>,
}

impl CopyBars {
    fn with(&self, act: impl FnOnce(&mut Option<ProgressBar>)) {
        // A bar is not worth a second panic: after one, progress is simply no longer shown.
        if let Ok(mut bar) = self.bar.lock() {
            act(&mut bar);
        }
    }
}

impl sql::Progress for CopyBars {
    fn start(&self, label: &str, total_bytes: Option<u64>) {
        if total_bytes.is_none_or(|total| total >= BAR_BYTES_MIN) {
            self.with(|bar| *bar = Some(bytes_bar(label, total_bytes)));
        }
    }

    fn advance(&self, bytes: u64) {
        self.with(|bar| {
            if let Some(bar) = bar {
                bar.inc(bytes);
            }
        });
    }

    fn finish(&self) {
        self.with(|bar| {
            if let Some(bar) = bar.take() {
                bar.finish_and_clear();
            }
        });
    }
}

/// The receiver of progress (bytes done, bytes in all) while the log is replayed; `None` without a terminal.
pub(crate) fn replay_progress() -> Option<Box<dyn FnMut(u64, u64)>> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let mut shown: Option<ProgressBar> = None;
    Some(Box::new(move |done, total| {
        if total < BAR_BYTES_MIN {
            return;
        }
        let bar = shown.get_or_insert_with(|| bytes_bar("replaying the log", Some(total)));
        bar.set_position(done);
        if done >= total {
            bar.finish_and_clear();
        }
    }))
}

/// Progress of a benchmark: a bar on a terminal, else a line when a stage starts and when it ends.
pub(crate) struct BenchProgress {
    bar: Mutex<Option<ProgressBar>>,
    is_terminal: bool,
}

impl BenchProgress {
    /// Progress on standard error.
    pub(crate) fn on_stderr() -> BenchProgress {
        BenchProgress { bar: Mutex::new(None), is_terminal: io::stderr().is_terminal() }
    }
}

impl Progress for BenchProgress {
    fn start(&self, stage: &str, total: u64) {
        if !self.is_terminal {
            eprintln!("{stage} ...");
            return;
        }
        let new = bar("{msg} [{bar:30}] {human_pos}/{human_len} {elapsed}", total);
        new.set_message(stage.to_owned());
        new.enable_steady_tick(Duration::from_millis(100));
        if let Ok(mut bar) = self.bar.lock() {
            *bar = Some(new);
        }
    }

    fn advance(&self, count: u64) {
        if let Ok(bar) = self.bar.lock()
            && let Some(bar) = &*bar
        {
            bar.inc(count);
        }
    }

    fn tell(&self, note: &str) {
        match self.bar.lock() {
            // Written above the bar.
            Ok(bar) if bar.is_some() => bar.iter().for_each(|bar| bar.println(note)),
            _ => eprintln!("{note}"),
        }
    }

    fn finish(&self, note: &str) {
        if let Ok(mut bar) = self.bar.lock()
            && let Some(bar) = bar.take()
        {
            bar.finish_and_clear();
        }
        eprintln!("{note}");
    }
}
