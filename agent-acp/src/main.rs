//! The binary `agent-acp`: an editor starts it, and talks to it over its stdin and stdout.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use agent_acp::args::{self, Args};
use agent_acp::{House, ask, serve};
use agent_core::Clock;
use agent_core::discover::Dirs;
use agent_core::setup::World;
use etcetera::BaseStrategy;
use jiff::Timestamp;
use tokio::io::BufReader;
use tokio::signal::unix::{SignalKind, signal};

/// The real clock.
struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

fn main() -> ExitCode {
    let args = match args::parse(env::args_os()) {
        Ok(args) => args,
        Err(error) => {
            // Where even this cannot be printed nobody is there to read it.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            tell(&format!("error: {problem}"));
            ExitCode::from(2)
        }
    }
}

fn tell(words: &str) {
    // A closed stderr is no reason not to work.
    let _ = writeln!(io::stderr(), "{words}");
}

fn run(args: &Args) -> Result<(), String> {
    let house = house(args)?;
    if args.setup {
        return set_up(&house);
    }
    let started = |e: io::Error| format!("starting: {e}");
    let stdout = protocol().map_err(started)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(started)?;
    let served = runtime.block_on(async {
        let stop = signals().map_err(started)?;
        serve(BufReader::new(tokio::io::stdin()), stdout, house, stop).await;
        Ok(())
    });
    // The thread that waits for stdin must not hold the end up.
    runtime.shutdown_background();
    served
}

/// Asks for a model at the terminal.
fn set_up(house: &House) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let told = runtime.block_on(ask(house, &mut io::stdin().lock(), io::stdin()))?;
    tell(&told);
    Ok(())
}

/// The stream of the protocol. What anything else prints goes to stderr from here on.
fn protocol() -> io::Result<tokio::fs::File> {
    let own = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(tokio::fs::File::from_std(own.into()))
}

/// Ready when the process is told to end.
fn signals() -> io::Result<impl Future<Output = ()>> {
    let caught = |kind| signal(kind);
    let mut interrupt = caught(SignalKind::interrupt())?;
    let mut terminate = caught(SignalKind::terminate())?;
    let mut hang_up = caught(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    })
}

fn house(args: &Args) -> Result<House, String> {
    let here = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let cwd = args.cwd.as_ref().map_or_else(|| here.clone(), |cwd| here.join(cwd));
    let env: Vec<(OsString, OsString)> = env::vars_os().collect();
    let world = World::new(cwd, env, platform_directories)?;
    let settings_file = match &args.config {
        Some(file) => here.join(file),
        None => world.dirs.config.join("config.yaml"),
    };
    if args.config.is_some() && !settings_file.exists() {
        return Err(format!("--config {} does not exist", settings_file.display()));
    }
    Ok(House {
        world,
        settings_file,
        options: args.settings.clone(),
        skills: args.skills.clone(),
        keeps: !args.no_session,
        platform: env::consts::OS,
        clock: Arc::new(RealClock),
        log: Arc::new(tell),
    })
}

fn platform_directories() -> Result<Dirs, String> {
    let base = etcetera::choose_base_strategy().map_err(|e| format!("no home directory was found: {e}"))?;
    let [config, data, cache] = [base.config_dir(), base.data_dir(), base.cache_dir()].map(|dir| dir.join("agent"));
    Ok(Dirs { config, data, cache })
}
