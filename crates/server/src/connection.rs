//! One connection: a loop that reads messages and has them answered.
use std::net::TcpStream;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use sql::{PreparedStatement, Session, SqlError, TransactionStatus};

use crate::listener::ServerState;
use crate::portals::Portals;
use crate::registry::{Entry, Source};
use crate::rows::Described;
use crate::startup::REPORTED;
use crate::wire::WireError;
use crate::wire::frontend::{self, Request};
use crate::wire::input::Input;
use crate::wire::output::{Gravity, Output};

/// Why something was not done.
pub(crate) enum Failure {
    /// The statement or message is wrong; the connection goes on.
    Statement(SqlError),
    /// The connection is over.
    Connection(WireError),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        Failure::Statement(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Connection(error.into())
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Failure {
        Failure::Connection(error)
    }
}

/// The result of answering a request.
pub(crate) type Answer<T = ()> = Result<T, Failure>;

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    End,
}

/// See the module.
pub(crate) struct Connection<'a> {
    pub(crate) input: Input<Source>,
    pub(crate) output: Output<TcpStream>,
    pub(crate) session: Session,
    pub(crate) portals: Portals,
    pub(crate) described: Described,
    /// The types that the client has said of the parameters of named statements, which no other statement of that name has.
    pub(crate) declared: HashMap<String, (Arc<PreparedStatement>, Vec<u32>)>,
    /// After an error everything up to the next `Sync` is thrown away.
    pub(crate) skips: bool,
    shared: &'a ServerState,
    entry: Arc<Entry>,
    /// The values that the client was told of settings that may change.
    pub(crate) told: Vec<(&'static str, String)>,
    /// When they were told; see [`Session::settings_turn`].
    pub(crate) told_turn: u64,
}

impl<'a> Connection<'a> {
    pub(crate) fn new(
        input: Input<Source>,
        output: Output<TcpStream>,
        session: Session,
        shared: &'a ServerState,
        entry: Arc<Entry>,
    ) -> Connection<'a> {
        let told = [
            "application_name",
            "client_encoding",
            "DateStyle",
            "default_transaction_read_only",
            "IntervalStyle",
            "TimeZone",
        ];
        let told = REPORTED.into_iter().filter(|name| told.contains(name));
        let told = told.map(|name| (name, session.setting(&name.to_ascii_lowercase()).unwrap_or_default()));
        let told = told.collect();
        let (portals, declared, told_turn) = (Portals::default(), HashMap::new(), session.settings_turn());
        let described = Described::default();
        Connection {
            input,
            output,
            session,
            portals,
            described,
            declared,
            skips: false,
            shared,
            entry,
            told,
            told_turn,
        }
    }

    /// Serves until either side ends it.
    pub(crate) fn run(&mut self) {
        let ended = self.serve();
        let farewell = match ended {
            _ if self.is_over() => SqlError::new("57P01", "terminating connection due to administrator command"),
            Err(Failure::Connection(WireError::Fatal(message))) => SqlError::new("08P01", message),
            Err(Failure::Statement(error)) => error,
            Ok(()) | Err(Failure::Connection(_)) => return,
        };
        self.output.error(Gravity::Fatal, &farewell, None);
        // A client that does not read it has gone.
        let _ = self.output.flush();
    }

    /// Answers messages, one after the other. A function of its own, as `tests/instructions.rs` counts what is done in it.
    #[inline(never)]
    fn serve(&mut self) -> Answer {
        self.ready()?;
        loop {
            let is_idle = !self.input.has_bytes();
            let is_told = is_idle && self.is_told();
            if is_told {
                self.entry.delivery.open(self.entry.stream());
            }
            if is_idle {
                self.entry.set_idle();
                self.session.set_asked(false);
            }
            if self.is_over() {
                return Ok(());
            }
            let message = self.input.message()?;
            if is_told {
                self.output.raw(&self.entry.delivery.close());
            }
            self.entry.set_behind(self.input.behind());
            if is_idle {
                self.shared.registry.set_busy(&self.entry);
                self.session.set_asked(true);
            }
            if self.skips && !matches!(message.kind, b'S' | b'X') {
                continue;
            }
            let encoding = self.session.client_encoding();
            self.output.speak(encoding);
            let is_extended = matches!(message.kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H');
            let next = match frontend::read(message, encoding) {
                Ok(request) => self.answer(request)?,
                Err(error) if is_extended => self.failed(&error, None).map(|()| Next::GoOn)?,
                Err(error) => self.refuse(&error).map(|()| Next::GoOn)?,
            };
            if next == Next::End {
                return Ok(());
            }
        }
    }

    /// Whether the server or another session has ended the connection.
    fn is_over(&self) -> bool {
        self.shared.registry.is_stopping() || self.entry.is_ended()
    }

    /// Whether what other sessions say is sent to the client while it is idle.
    fn is_told(&self) -> bool {
        self.session.has_listened() && self.session.transaction_status() == TransactionStatus::Idle
    }

    fn answer(&mut self, request: Request) -> Answer<Next> {
        match request {
            Request::Terminate => return Ok(Next::End),
            Request::Sync => self.sync()?,
            Request::Query(text) => {
                self.simple(&text)?;
                self.sync()?;
            }
            Request::LateCopy => {}
            Request::Flush => self.output.flush()?,
            Request::FunctionCall => {
                self.refuse(&SqlError::new("0A000", "function calls by message are not supported"))?;
            }
            request => {
                let done = self.extended(request);
                self.settle(done)?;
            }
        }
        Ok(Next::GoOn)
    }

    /// Tells of an error in a message that is answered on its own.
    fn refuse(&mut self, error: &SqlError) -> Answer {
        self.session.fail_block(error);
        self.tell(error, None)?;
        self.sync()
    }

    /// Tells of an error in a statement, and passes on that the connection is over.
    fn settle(&mut self, done: Answer) -> Answer {
        match done {
            Err(Failure::Statement(error)) => {
                let position = error.position;
                self.failed(&error, position)
            }
            done => done,
        }
    }

    /// Tells of an error outside of a simple query: what follows is thrown away up to `Sync`. It is sent at once, as a
    /// `Flush` is thrown away as well, and its client may wait.
    fn failed(&mut self, error: &SqlError, position: Option<usize>) -> Answer {
        self.session.fail_block(error);
        self.tell(error, position)?;
        self.skips = true;
        Ok(self.output.flush()?)
    }

    /// Sends an error. Some end the connection.
    pub(crate) fn tell(&mut self, error: &SqlError, position: Option<usize>) -> Answer {
        if matches!(error.sqlstate, "25P03" | "25P04" | "57P01") {
            return Err(Failure::Statement(error.clone()));
        }
        self.output.error(Gravity::Error, error, position);
        Ok(())
    }
}
