//! The limits that a server sets its clients, and the end of connections when it stops.
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use engine::Database;
use server::{Options, Server};
use sql::{Outcome, Session, SessionOptions};

fn serve(db: &Database) -> Server {
    // Sessions of a debug build can take long to begin on a busy machine.
    serve_within(db, Duration::from_secs(60))
}

/// A server that closes a connection which has not sent its startup message in time.
fn serve_within(db: &Database, startup_time: Duration) -> Server {
    let db = db.clone();
    let open = move || Session::new(&db, SessionOptions { target_partitions: Some(1), ..SessionOptions::default() });
    let options = Options::new("127.0.0.1:0".parse().unwrap(), open);
    Server::start(Options { connections_max: 2, message_bytes_max: 1_000, startup_time, ..options }).unwrap()
}

fn stream(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// A client that has sent its startup message.
fn client(server: &Server) -> TcpStream {
    let mut stream = stream(server);
    let body = b"\0\x03\0\0user\0tester\0database\0lstore\0\0";
    stream.write_all(&u32::try_from(body.len() + 4).unwrap().to_be_bytes()).unwrap();
    stream.write_all(body).unwrap();
    stream
}

/// The next message.
fn message(stream: &mut TcpStream) -> Option<(u8, String)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let mut body = vec![0; usize::try_from(length).unwrap() - 4];
    stream.read_exact(&mut body).ok()?;
    Some((head[0], String::from_utf8_lossy(&body).replace('\0', "|")))
}

/// Reads up to a message of this kind.
fn until(stream: &mut TcpStream, kind: u8) -> String {
    loop {
        let (found, body) = message(stream).expect("the connection ended");
        if found == kind {
            return body;
        }
    }
}

/// Asks in one write: the server may close the connection as soon as it has read the length.
fn ask(stream: &mut TcpStream, text: &str) {
    let length = u32::try_from(text.len() + 5).unwrap().to_be_bytes();
    stream.write_all(&[b"Q", &length[..], text.as_bytes(), b"\0"].concat()).unwrap();
}

#[test]
fn one_client_too_many_is_told_so_and_has_room_later() {
    let server = serve(&Database::in_memory());
    let (mut first, mut second) = (client(&server), client(&server));
    until(&mut first, b'Z');
    until(&mut second, b'Z');
    assert!(until(&mut client(&server), b'E').contains("C53300"));
    drop(first);
    let room = (0..200).find(|_| {
        std::thread::sleep(Duration::from_millis(20));
        matches!(message(&mut client(&server)), Some((b'R', _)))
    });
    assert!(room.is_some());
    assert!(server.stop());
}

#[test]
fn whoever_does_not_say_who_it_is_is_closed() {
    const STARTUP_TIME: Duration = Duration::from_millis(300);
    let server = serve_within(&Database::in_memory(), STARTUP_TIME);
    let (started, mut silent, mut halting) = (Instant::now(), stream(&server), stream(&server));
    halting.write_all(b"\0\0\0\x20\0\x03").unwrap();
    assert!(message(&mut silent).is_none() && message(&mut halting).is_none());
    assert!(started.elapsed() >= STARTUP_TIME / 2);
    assert!(server.stop());
}

#[test]
fn a_message_that_is_too_long_ends_its_connection_only() {
    let server = serve(&Database::in_memory());
    let (mut talker, mut other) = (client(&server), client(&server));
    until(&mut talker, b'Z');
    until(&mut other, b'Z');
    ask(&mut talker, &" ".repeat(2_000));
    assert!(until(&mut talker, b'E').contains("C08P01"));
    assert!(message(&mut talker).is_none());
    ask(&mut other, "SELECT 1");
    until(&mut other, b'Z');
    assert!(server.stop());
}

#[test]
fn the_end_of_a_server_takes_open_transactions_back_and_says_so() {
    let db = Database::in_memory();
    let server = serve(&db);
    let (mut writer, mut runner) = (client(&server), client(&server));
    until(&mut writer, b'Z');
    ask(&mut writer, "CREATE TABLE t (id int PRIMARY KEY)");
    until(&mut writer, b'Z');
    ask(&mut writer, "BEGIN; INSERT INTO t VALUES (1)");
    assert_eq!(until(&mut writer, b'Z'), "T");
    until(&mut runner, b'Z');
    ask(&mut runner, "BEGIN; INSERT INTO t VALUES (1)");
    std::thread::sleep(Duration::from_millis(100));
    assert!(server.stop());
    assert!(until(&mut writer, b'E').contains("C57P01"));
    // Its statement was ended, or had not begun, or went on when the other's transaction was taken back, before its own was.
    let told: Vec<_> = std::iter::from_fn(|| message(&mut runner)).collect();
    let is_open = |body: &str| body.starts_with("BEGIN") || body.starts_with("INSERT 0 1");
    assert!(told.iter().all(|(kind, body)| *kind != b'C' || is_open(body)), "{told:?}");
    assert!(told.iter().any(|(kind, _)| *kind == b'E'), "{told:?}");
    let mut session = Session::new(&db, SessionOptions::default());
    let Outcome::Rows(rows) = session.execute("SELECT id FROM t").unwrap() else { panic!("no rows") };
    assert_eq!(rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 0);
    session.execute("INSERT INTO t VALUES (1)").unwrap();
}
