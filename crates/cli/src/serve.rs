//! `lstore serve`: a database for PostgreSQL's drivers and tools, until a signal ends it.
use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use clap::Args;
use engine::{ArchiveSetting, Error};
use server::{Options, Server};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sql::{Session, SessionOptions};

use crate::memory::MemoryArgs;
use crate::opening::open_with;

/// How `serve` runs.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// The directory of the database, made if it is missing
    pub dir: PathBuf,
    /// How much memory tables may take
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Where to listen. There is no authentication yet, so only addresses of this machine are taken
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5433", value_parser = address)]
    pub listen: SocketAddr,
    /// How many clients there may be at a time
    #[arg(long, value_name = "COUNT", default_value_t = 250, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub connections: u16,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| format!("{error}; it is ADDRESS:PORT, as in 127.0.0.1:5433"))?;
    found.into_iter().next().ok_or_else(|| "no such address".to_owned())
}

/// Serves until SIGINT or SIGTERM, then ends connections, writes a checkpoint and closes the database. A second signal
/// ends it at once.
pub fn serve(args: &ServeArgs) -> Result<(), String> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| format!("can't wait for signals: {error}"))?;
    let db = open_with(Some(&args.dir), args.memory, ArchiveSetting::AsBefore)?;
    let of_sessions = db.clone();
    // Without a device that can be used the CPU does everything.
    let offload = devices::open().ok();
    offload.iter().for_each(|device| device.log_to(say));
    let session =
        move || Session::new(&of_sessions, SessionOptions { offload: offload.clone(), ..SessionOptions::default() });
    let options = Options { connections_max: args.connections.into(), ..Options::new(args.listen, session) };
    let server = Server::start(options).map_err(|error| error.to_string())?;
    say(&format!(
        "lstore {} serves {} on {}, to this machine only, as there is no authentication yet. Ctrl-C ends it.",
        env!("CARGO_PKG_VERSION"),
        args.dir.display(),
        server.address()
    ));
    signals.forever().next();
    say("ending: statements that run are cancelled");
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            std::process::exit(1);
        }
    });
    if !server.stop() {
        say("not every connection has ended in time");
    }
    match db.checkpoint() {
        Ok(_) | Err(Error::NotOnDisk) => {}
        Err(error) => return Err(format!("the checkpoint at the end failed; the log has everything: {error}")),
    }
    drop(db);
    say("ended");
    Ok(())
}

/// Prints a line for the program that started the server. The line may have no reader.
fn say(text: &str) {
    let mut out = io::stdout();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
