//! Results that kernels collect in device memory, piece by piece, while the copy engine brings those of earlier pieces to the host.
//!
//! ```text
//! input    piece 0 │ piece 1 │ piece 2 │ piece 3 │ ...
//! kernels            piece 0 │ piece 1 │ piece 2 │ ...
//! output                       piece 0 │ piece 1 │ ...     as many words as the piece's counter says, which the host looks at
//! ```
//!
//! So inputs and results cross the bus at a time, each in its own direction and in order, and a kernel waits for neither.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::device::{Device, DeviceBuffer, Event, Pinned, Plain, Stream};
use crate::error::GpuError;
use crate::join::source::Source;
use crate::join::{Input, Results};

/// Buffers that pieces take in turn: one that is filled, one that is probed, one that is emptied, and one between.
pub(super) const BUFFERS: usize = 4;

/// What was brought to the host.
#[derive(Debug)]
pub(super) struct Gathered {
    /// Words, those that found no room, too.
    pub(super) count: usize,
    /// Where the words of each piece begin.
    pub(super) starts: Vec<usize>,
    /// Whether all found room.
    pub(super) is_whole: bool,
    /// Milliseconds from the first copy to the last.
    pub(super) span_ms: f64,
}

struct Buffer<T: Plain> {
    words: DeviceBuffer<T>,
    counter: DeviceBuffer<u64>,
    noted: Pinned<u64>,
    /// Its words have been brought to the host.
    emptied: Option<Event>,
}

/// Has `launch` append the words of each piece to a list of one for each row, and brings them to `to`. A source that is not copied in
/// pieces is cut into some of so many rows.
pub(super) fn gather<T: Plain>(
    device: &Arc<Device>,
    source: &Source<'_>,
    to: &Pinned<T>,
    rows: usize,
    launch: impl Fn(&Stream, &Input, Results) -> Result<(), GpuError>,
) -> Result<Gathered, GpuError> {
    let rows = source.piece_rows().unwrap_or(rows).max(1);
    let room = rows.min(source.count);
    let mut buffers = (0..BUFFERS).map(|_| Buffer::<T>::new(device, room)).collect::<Result<Vec<_>, _>>()?;
    let [input, kernels, output] = [Stream::new(device)?, Stream::new(device)?, Stream::new(device)?];
    let start = Event::of(&input)?;
    let mut gathered = Gathered { count: 0, starts: Vec::new(), is_whole: true, span_ms: 0.0 };
    let mut at_work: VecDeque<(usize, Event)> = VecDeque::new();
    for (turn, first) in (0..source.count).step_by(rows).enumerate() {
        if at_work.len() == BUFFERS
            && let Some((buffer, probed)) = at_work.pop_front()
        {
            buffers[buffer].empty(&probed, &output, to, &mut gathered)?;
        }
        // Its last kernel has been waited for.
        let buffer = turn % BUFFERS;
        let piece = source.piece(&input, buffer, first..source.count.min(first + rows))?;
        kernels.wait_for(&Event::of(&input)?)?;
        let probed = buffers[buffer].fill(&kernels, |results| launch(&kernels, &piece, results))?;
        at_work.push_back((buffer, probed));
    }
    for (buffer, probed) in at_work {
        buffers[buffer].empty(&probed, &output, to, &mut gathered)?;
    }
    gathered.span_ms = Event::of(&output)?.since_ms(&start)?;
    [&input, &kernels, &output].into_iter().try_for_each(Stream::wait)?;
    Ok(gathered)
}

impl<T: Plain> Buffer<T> {
    fn new(device: &Arc<Device>, rows: usize) -> Result<Self, GpuError> {
        Ok(Self {
            words: DeviceBuffer::new(device, rows, "results of a piece")?,
            counter: DeviceBuffer::new(device, 1, "a counter")?,
            noted: Pinned::new(device, 1, "a counter")?,
            emptied: None,
        })
    }

    /// Has a kernel fill it, once it is empty; the event at which it has.
    fn fill(&self, stream: &Stream, launch: impl FnOnce(Results) -> Result<(), GpuError>) -> Result<Event, GpuError> {
        if let Some(emptied) = &self.emptied {
            stream.wait_for(emptied)?;
        }
        self.counter.fill(stream, 0)?;
        let results =
            Results { pairs: self.words.address(), count: self.counter.address(), capacity: self.words.len() };
        launch(results)?;
        self.counter.copy_to(stream, &self.noted)?;
        Event::of(stream)
    }

    /// Waits until it is filled, and has it emptied.
    fn empty(
        &mut self,
        filled: &Event,
        output: &Stream,
        to: &Pinned<T>,
        gathered: &mut Gathered,
    ) -> Result<(), GpuError> {
        filled.wait()?;
        let found = usize::try_from(self.noted[0]).expect("a list that fits into memory");
        let begin = gathered.count;
        gathered.starts.push(begin);
        gathered.count += found;
        gathered.is_whole &= found <= self.words.len() && gathered.count <= to.len();
        if gathered.is_whole {
            self.words.copy_part_to(output, found, to, begin)?;
        }
        self.emptied = Some(Event::of(output)?);
        Ok(())
    }
}
