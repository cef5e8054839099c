//! What is so before the shell runs anything: its streams, what the command line sets, the user's own script.
use std::env;
use std::io::{self, BufWriter, IsTerminal};
use std::path::PathBuf;

use crate::args::{ShellArgs, SqlArgs};
use crate::output::options::set_option;
use crate::output::style::{Expanded, Format, Style};
use crate::shell::sink::Sink;
use crate::shell::{Settings, Shell, Stop, trouble};

/// Where the shell writes, and how.
pub(crate) fn settings(args: &SqlArgs) -> Settings {
    let err_terminal = io::stderr().is_terminal();
    let format = if args.shell.csv { Format::Csv } else { args.format };
    let database = match &args.dir {
        Some(dir) => format!("the database in {}", dir.display()),
        None => "a database in memory, gone when you leave".to_owned(),
    };
    Settings {
        out: Box::new(BufWriter::new(io::stdout())),
        err: Box::new(io::stderr()),
        style: Style { format, ..Style::default() },
        err_color: color(err_terminal),
        database,
        interactive: args.steps.is_empty() && io::stdin().is_terminal(),
        bars: err_terminal,
    }
}

/// Sets what the command line and the user's own script say before anything runs.
pub(crate) fn begin(shell: &mut Shell, args: &ShellArgs) -> Result<(), Stop> {
    configure(shell, args).map_err(|message| {
        eprintln!("lstore: {message}");
        Stop::Failed
    })?;
    match start_script().filter(|path| !args.no_rc && path.exists()) {
        Some(path) => shell.run_file(&path),
        None => Ok(()),
    }
}

/// The script that runs before anything else: what `LSTORERC` names, else `.lstorerc` at home; none where that is set but empty.
fn start_script() -> Option<PathBuf> {
    match env::var_os("LSTORERC") {
        Some(path) => (!path.is_empty()).then(|| PathBuf::from(path)),
        None => env::home_dir().map(|home| home.join(".lstorerc")),
    }
}

/// Sets what the command line says of variables, of how rows look, and of where they go.
///
/// # Errors
/// What is wrong with one of them.
fn configure(shell: &mut Shell, args: &ShellArgs) -> Result<(), String> {
    let switched = [
        (args.quiet, "QUIET", "on"),
        (args.echo_queries, "ECHO", "queries"),
        (args.echo_all, "ECHO", "all"),
        (args.echo_hidden, "ECHO_HIDDEN", "on"),
    ];
    for (_, name, value) in switched.iter().filter(|(is_on, ..)| *is_on) {
        shell.variables.set(name, value)?;
    }
    for setting in &args.variables {
        match setting.split_once('=') {
            Some((name, value)) => shell.variables.set(name, value)?,
            None => shell.variables.unset(setting),
        }
    }
    let style = &mut shell.settings.style;
    for option in &args.options {
        let (name, value) = option.split_once('=').map_or((option.as_str(), None), |(name, value)| (name, Some(value)));
        set_option(style, name, value)?;
    }
    if args.unaligned {
        style.format = Format::Unaligned;
    }
    if args.expanded {
        style.expanded = Expanded::On;
    }
    style.tuples_only |= args.tuples_only;
    style.field_separator = args.field_separator.clone().unwrap_or_else(|| style.field_separator.clone());
    style.record_separator = args.record_separator.clone().unwrap_or_else(|| style.record_separator.clone());
    if let Some(target) = &args.output {
        shell.redirected = Some(Sink::open(target).map_err(|error| trouble(target, &error))?);
    }
    Ok(())
}

/// Says which database it is to a user at a terminal.
pub(crate) fn greet(shell: &mut Shell) -> io::Result<()> {
    if shell.variables.is_on("QUIET") {
        return Ok(());
    }
    let (version, database) = (env!("CARGO_PKG_VERSION"), shell.settings.database.clone());
    writeln!(shell.out(), "lstore {version}: {database}.\nType \"help\" for help.\n")?;
    shell.out().flush()
}

/// Whether escape sequences for colour may go to a stream that is, or is not, a terminal.
fn color(is_terminal: bool) -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    is_terminal && !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
}
