//! Statements by messages of the protocol, for counting what the server does from one message to the next (`tests/instructions.rs`).
//!
//! A client in this process prepares some statements and has each run `COUNT` times, one after the other, after as many times that are not
//! counted. Each part ends with [`phase`].
//!
//! `cargo run --release -p lstore-server --example messages -- [COUNT]`
use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use engine::Database;
use server::{Options, Server};
use sql::{Session, SessionOptions};

/// What is counted, with the number of its parameters.
const STATEMENTS: [(&str, usize); 5] = [
    ("SELECT owner, balance FROM accounts WHERE id = $1", 1),
    ("SELECT id, balance FROM accounts WHERE id BETWEEN $1 AND $2 ORDER BY id", 2),
    ("SELECT DISTINCT note FROM notes WHERE id BETWEEN $1 AND $2 ORDER BY note", 2),
    ("UPDATE accounts SET balance = balance + $2 WHERE id = $1", 2),
    ("INSERT INTO accounts (id, owner, balance) VALUES ($1, $2, $3)", 3),
];
const ROWS: usize = 1_000;

/// A connection as a client has it.
struct Client(TcpStream);

impl Client {
    fn connect(address: std::net::SocketAddr) -> Result<Client, Box<dyn Error>> {
        let mut client = Client(TcpStream::connect(address)?);
        client.0.set_nodelay(true)?;
        let mut startup = 196_608_u32.to_be_bytes().to_vec();
        startup.extend(b"user\0lstore\0\0");
        client.0.write_all(&u32::try_from(startup.len() + 4)?.to_be_bytes())?;
        client.0.write_all(&startup)?;
        client.until_ready()?;
        Ok(client)
    }

    /// Reads answers up to the one that says that the next message may come.
    fn until_ready(&mut self) -> Result<(), Box<dyn Error>> {
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head)?;
            let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4;
            let mut body = vec![0; len];
            self.0.read_exact(&mut body)?;
            match head[0] {
                b'Z' => return Ok(()),
                b'E' => return Err(String::from_utf8_lossy(&body).into()),
                _ => {}
            }
        }
    }

    fn query(&mut self, text: &str) -> Result<(), Box<dyn Error>> {
        self.0.write_all(&message(b'Q', &[text.as_bytes(), b"\0"].concat()))?;
        self.until_ready()
    }

    fn prepare(&mut self, name: usize, text: &str) -> Result<(), Box<dyn Error>> {
        let parse = message(b'P', format!("s{name}\0{text}\0\0\0").as_bytes());
        self.0.write_all(&[parse, message(b'S', &[])].concat())?;
        self.until_ready()
    }

    /// Binds values and runs a statement.
    fn run(&mut self, name: usize, values: &[String]) -> Result<(), Box<dyn Error>> {
        let mut bind = format!("\0s{name}\0").into_bytes();
        bind.extend(0_u16.to_be_bytes());
        bind.extend(u16::try_from(values.len())?.to_be_bytes());
        for value in values {
            bind.extend(u32::try_from(value.len())?.to_be_bytes());
            bind.extend(value.as_bytes());
        }
        bind.extend(0_u16.to_be_bytes());
        let execute = message(b'E', &[0, 0, 0, 0, 0]);
        self.0.write_all(&[message(b'B', &bind), execute, message(b'S', &[])].concat())?;
        self.until_ready()
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len() + 4).expect("messages here are short");
    [&[kind], &len.to_be_bytes()[..], body].concat()
}

/// The end of a part. A counter may begin anew here.
#[inline(never)]
fn phase(name: &str, begun: Instant, count: usize) {
    println!("{name}: {:.1} us", begun.elapsed().as_secs_f64() * 1e6 / count as f64);
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(10_000), |count| count.parse())?;
    let db = Database::in_memory();
    let open = move || Session::new(&db, SessionOptions::default());
    let server = Server::start(Options::new("127.0.0.1:0".parse()?, open))?;
    let mut client = Client::connect(server.address())?;
    client.query("CREATE TABLE accounts (id bigint PRIMARY KEY, owner bigint NOT NULL, balance bigint NOT NULL)")?;
    client.query(&format!("INSERT INTO accounts SELECT g, g / 10, g FROM generate_series(1, {ROWS}) g"))?;
    client.query("CREATE TABLE notes (id bigint PRIMARY KEY, note char(120) NOT NULL)")?;
    client.query(&format!(
        "INSERT INTO notes SELECT g, lpad((g * 7 % {ROWS})::text, 119, '-') FROM generate_series(1, {ROWS}) g"
    ))?;
    client.query("SET synchronous_commit = off")?;
    for (name, (text, _)) in STATEMENTS.iter().enumerate() {
        client.prepare(name, text)?;
    }
    for is_counted in [false, true] {
        for (name, (text, width)) in STATEMENTS.iter().enumerate() {
            let begun = Instant::now();
            for at in 0..count {
                let id = match text.starts_with("INSERT") {
                    true => 1 + ROWS + usize::from(is_counted) * count + at,
                    false => 1 + at * 7 % (ROWS - 10),
                };
                let values = [id, id + 9, id + 90].map(|value| value.to_string());
                client.run(name, &values[..*width])?;
            }
            phase(if is_counted { text } else { "not counted" }, begun, count);
        }
    }
    Ok(())
}
