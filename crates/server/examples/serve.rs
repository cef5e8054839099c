//! A server in a few lines, as a library: `cargo run -p lstore-server --example serve -- serve DIR --listen 127.0.0.1:5433`.
//!
//! The program `lstore` does the same with more care. This one builds without it, and takes the same words, so that
//! `tests/wire/run` can be pointed at either.
use std::error::Error;

use engine::OpenOptions;
use server::{Options, Server};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sql::{Session, SessionOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [_, directory, _, listen] = &words[..] else { return Err("usage: serve DIR --listen ADDRESS:PORT".into()) };
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let db = sql::open(directory, OpenOptions::default())?;
    let of_sessions = db.clone();
    let open = move || Session::new(&of_sessions, SessionOptions::default());
    let server = Server::start(Options::new(listen.parse()?, open)).map_err(|error| error.to_string())?;
    println!("serves {directory} on {}, to this machine only", server.address());
    signals.forever().next();
    server.stop();
    db.checkpoint()?;
    println!("ended");
    Ok(())
}
