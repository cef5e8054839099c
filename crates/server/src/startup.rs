//! The beginning of a connection: requests for encryption, cancel requests, and the client's startup message.
use std::net::TcpStream;
use std::sync::Arc;

use sql::{Session, SqlError};

use crate::connection::Connection;
use crate::listener::ServerState;
use crate::registry::{Entry, Source};
use crate::wire::WireError;
use crate::wire::frontend;
use crate::wire::input::Input;
use crate::wire::output::{Gravity, Output};

const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
/// Version 3.0 of the protocol.
const VERSION: u32 = 3 << 16;

/// The settings that a client is told at the start and when they change.
pub(crate) const REPORTED: [&str; 13] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// The names of the one database: its own, and that which clients ask for where they are told none.
const DATABASES: [&str; 2] = ["lstore", "postgres"];

/// Serves a connection from its first byte to its last.
pub(crate) fn run(stream: TcpStream, shared: &ServerState, entry: &Arc<Entry>) {
    let mut input = Input::new(Source::new(entry.clone()), shared.options.message_bytes_max);
    let mut output = Output::new(stream);
    match begin(&mut input, &mut output, shared, entry) {
        Ok(Some(session)) => Connection::new(input, output, session, shared, entry.clone()).run(),
        Ok(None) => {}
        Err(error) => {
            output.error(Gravity::Fatal, &error, None);
            // A client that does not read it has gone.
            let _ = output.flush();
        }
    }
}

/// The session of a client that may have one; `None` if the connection is over already.
fn begin(
    input: &mut Input<Source>,
    output: &mut Output<TcpStream>,
    shared: &ServerState,
    entry: &Arc<Entry>,
) -> Result<Option<Session>, SqlError> {
    let (code, body) = loop {
        let (code, body) = match input.startup() {
            Ok(packet) => packet,
            Err(WireError::Fatal(message)) => return Err(SqlError::new("08P01", message)),
            Err(_) => return Ok(None),
        };
        match code {
            SSL | GSS if input.has_bytes() => {
                // Bytes that came along would be taken for a part of what is encrypted later.
                return Err(SqlError::new("08P01", "received unencrypted data after a request for encryption"));
            }
            SSL | GSS => {
                output.refuse_encryption();
                if output.flush().is_err() {
                    return Ok(None);
                }
            }
            CANCEL => {
                if let Some((process, key)) = frontend::cancel_key(&body) {
                    shared.registry.cancel(process, key);
                }
                return Ok(None);
            }
            _ => break (code, body),
        }
    };
    if code >> 16 != VERSION >> 16 {
        let message = format!("unsupported frontend protocol {}.{}: server supports 3.0", code >> 16, code & 0xffff);
        return Err(SqlError::new("0A000", message));
    }
    let parameters = frontend::startup_parameters(&body)?;
    let unknown: Vec<&str> =
        parameters.iter().map(|(name, _)| name.as_str()).filter(|name| name.starts_with("_pq_.")).collect();
    if code != VERSION || !unknown.is_empty() {
        output.negotiate_version(&unknown);
    }
    if shared.registry.count() > shared.options.connections_max {
        return Err(SqlError::new("53300", "sorry, too many clients already"));
    }
    if shared.registry.is_stopping() {
        return Err(SqlError::new("57P03", "the database system is shutting down"));
    }
    let mut session = open(shared, &parameters)?;
    session.set_process(entry.process);
    entry.set_session(session.cancel_handle());
    entry.delivery.attach(&session.mailbox(), entry);
    let ended = Arc::downgrade(entry);
    session.ended_by(move || ended.upgrade().iter().for_each(|entry| entry.end()));
    output.authentication_ok();
    for name in REPORTED {
        output.parameter_status(name, &session.setting(&name.to_ascii_lowercase()).unwrap_or_default());
    }
    output.key_data(entry.process, entry.key());
    Ok(Some(session))
}

/// A session with the settings that a startup packet asks for.
fn open(shared: &ServerState, parameters: &[(String, String)]) -> Result<Session, SqlError> {
    let mut session = (shared.options.open)();
    let value = |wanted: &str| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let user = value("user").filter(|user| !user.is_empty());
    let user = user.ok_or_else(|| SqlError::new("28000", "no PostgreSQL user name specified in startup packet"))?;
    let database = value("database").filter(|name| !name.is_empty()).unwrap_or(user);
    if !DATABASES.contains(&database) {
        let error = SqlError::new("3D000", format!("database \"{database}\" does not exist"));
        let hint = format!("The one database here is called \"{}\", or \"{}\".", DATABASES[0], DATABASES[1]);
        return Err(SqlError { hint: Some(hint), ..error });
    }
    for (name, value) in parameters {
        match name.as_str() {
            "user" | "database" => {}
            "replication" => {
                if !["false", "off", "no", "0"].contains(&value.as_str()) {
                    return Err(SqlError::new("0A000", "replication connections are not supported"));
                }
            }
            "options" => {
                for (name, value) in options(value)? {
                    session.set_setting(&name, &value)?;
                }
            }
            name if name.starts_with("_pq_.") => {}
            name => session.set_setting(name, value)?,
        }
    }
    session.settings_are_defaults();
    Ok(session)
}

/// `-c name=value` and `--name=value`; a backslash keeps a blank from parting words.
fn options(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut words = vec![String::new()];
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => words.last_mut().into_iter().for_each(|word| word.extend(signs.next())),
            blank if blank.is_whitespace() => words.push(String::new()),
            other => words.last_mut().into_iter().for_each(|word| word.push(other)),
        }
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") => words.next().unwrap_or_default(),
            Some(setting) => setting.to_owned(),
            None => word.clone(),
        };
        let (name, value) = setting.split_once('=').filter(|_| word.starts_with('-')).ok_or_else(|| {
            SqlError::new("42601", format!("invalid command-line argument for server process: {word}"))
        })?;
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_by_postgresql() {
        let read = |text: &str| options(text).map_err(|error| error.sqlstate);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read("-c a=1 --b-c=x\\ y -cd=2"), Ok(vec![pair("a", "1"), pair("b_c", "x y"), pair("d", "2")]));
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!((read("a=1"), read("-c"), read("-c a")), (Err("42601"), Err("42601"), Err("42601")));
    }
}
