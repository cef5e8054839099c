//! The rows that a client sends for `COPY FROM STDIN`, and those that it gets of `COPY TO STDOUT`.
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::time::Duration;

use sql::CopyInput;

use crate::registry::Source;
use crate::wire::WireError;
use crate::wire::frontend;
use crate::wire::input::Input;
use crate::wire::output::Output;

/// How long it waits for the client before it lets the statement look whether it is to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// A client that is asked for rows if a statement wants them.
pub(crate) struct ClientInput<'a> {
    input: &'a mut Input<Source>,
    output: &'a mut Output<TcpStream>,
    /// Data that has come and was not read yet.
    data: Vec<u8>,
    at: usize,
    state: CopyState,
    is_binary: bool,
    /// Why the client can't be heard any more.
    pub(crate) lost: Option<WireError>,
}

#[derive(PartialEq, Eq)]
enum CopyState {
    /// The statement has not asked for rows.
    Silent,
    Sending,
    Done,
}

impl<'a> ClientInput<'a> {
    pub(crate) fn new(input: &'a mut Input<Source>, output: &'a mut Output<TcpStream>) -> ClientInput<'a> {
        ClientInput { input, output, data: Vec::new(), at: 0, state: CopyState::Silent, is_binary: false, lost: None }
    }

    /// Waits for the next part; an error where there is none.
    fn next(&mut self) -> io::Result<()> {
        let message = match self.input.message() {
            Ok(message) => message,
            Err(WireError::Io(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(error);
            }
            Err(error) => return Err(self.lose(error)),
        };
        match message.kind {
            b'd' => {
                self.data = match self.output.encoding().filter(|_| !self.is_binary) {
                    Some(encoding) => encoding.decode(&message.body).map_err(io::Error::other)?.into_bytes(),
                    None => message.body.into_vec(),
                };
                self.at = 0;
            }
            b'c' => self.state = CopyState::Done,
            b'f' => {
                self.state = CopyState::Done;
                let why = format!("COPY from stdin failed: {}", frontend::copy_fail(&message.body));
                return Err(io::Error::new(ErrorKind::ConnectionAborted, why));
            }
            // Those that send statements in advance send these too.
            b'H' | b'S' => {}
            other => {
                let why = format!("unexpected message type 0x{other:02X} during COPY from stdin");
                return Err(self.lose(WireError::Fatal(why)));
            }
        }
        Ok(())
    }

    fn lose(&mut self, error: WireError) -> io::Error {
        let told = io::Error::new(ErrorKind::UnexpectedEof, error.to_string());
        self.lost = Some(error);
        told
    }
}

impl Read for ClientInput<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.data.len() && self.state == CopyState::Sending {
            self.next()?;
        }
        let read = (&self.data[self.at..]).read(out)?;
        self.at += read;
        Ok(read)
    }
}

impl CopyInput for ClientInput<'_> {
    fn begin(&mut self, columns: usize, is_binary: bool) -> io::Result<()> {
        self.is_binary = is_binary;
        self.output.copy_in(columns, is_binary);
        self.output.flush()?;
        self.state = CopyState::Sending;
        self.input.source().stream().set_read_timeout(Some(PATIENCE))
    }

    fn end(&mut self) -> io::Result<()> {
        // Data after the mark of the end does not matter, but the client has to have said that it is done.
        while self.state == CopyState::Sending {
            match self.next() {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Err(error),
                done => done?,
            }
        }
        Ok(())
    }

    fn begin_giving(&mut self, columns: usize, is_binary: bool) -> io::Result<()> {
        self.is_binary = is_binary;
        self.output.copy_out(columns, is_binary);
        Ok(())
    }

    fn give(&mut self, line: &[u8]) -> io::Result<()> {
        let encoding = self.output.encoding().filter(|_| !self.is_binary);
        let put = |body: &mut Vec<u8>| {
            let start = body.len();
            body.extend_from_slice(line);
            encoding.map_or(Ok(()), |encoding| encoding.encode_from(body, start))
        };
        self.output.try_message(b'd', put).map_err(io::Error::other)?;
        self.output.flush_if_full()
    }

    fn end_giving(&mut self) {
        self.output.bare(b'c');
    }
}

impl Drop for ClientInput<'_> {
    fn drop(&mut self) {
        if self.state != CopyState::Silent {
            // It only fails for a time of zero.
            let _ = self.input.source().stream().set_read_timeout(None);
        }
    }
}
