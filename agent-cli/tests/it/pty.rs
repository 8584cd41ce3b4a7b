//! The program on a real terminal: what it shows, what is typed, and the modes that it leaves behind.

use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use pty_process::Size;
use pty_process::blocking::{Command as OnTerminal, Pts, Pty, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{ControlModes, InputModes, LocalModes, OutputModes, tcgetattr};

use crate::run::{PATIENCE, ended, until};

pub const CTRL_C: &str = "\u{3}";
pub const CTRL_D: &str = "\u{4}";
/// What the line editor shows when it waits.
pub const PROMPT: &str = "> ";

/// What a terminal does with lines and keys.
pub type Modes = (InputModes, OutputModes, ControlModes, LocalModes);

#[derive(Default)]
struct Shown {
    // A lock, because a thread reads the terminal while the test looks at what came.
    text: Mutex<Vec<u8>>,
    more: Condvar,
}

/// The program on a terminal of 24 lines of 100 columns.
pub struct Terminal {
    child: Child,
    pty: Arc<Pty>,
    // Held, so that the terminal is there after the program's end.
    pts: Pts,
    shown: Arc<Shown>,
    seen: usize,
    before: Modes,
}

impl Terminal {
    pub fn start(command: Command) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(24, 100)).unwrap();
        let before = modes(&pts);
        let child = OnTerminal::from(command).spawn_borrowed(&pts).unwrap();
        let (pty, shown) = (Arc::new(pty), Arc::<Shown>::default());
        thread::spawn({
            let (pty, shown) = (pty.clone(), shown.clone());
            move || read(&pty, &shown)
        });
        Self { child, pty, pts, shown, seen: 0, before }
    }

    /// Types.
    pub fn types(&mut self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the prompt, and enters this.
    #[track_caller]
    pub fn enters(&mut self, line: &str) {
        self.drafts(line);
        self.types("\r");
    }

    /// Waits for the prompt, and types this without entering it.
    #[track_caller]
    pub fn drafts(&mut self, line: &str) {
        self.sees(PROMPT);
        self.types(line);
        // The line as it was typed, so that what is waited for next is not the echo.
        self.sees(line);
    }

    /// Waits until this is shown, after what was waited for before. Gives what was shown in between.
    #[track_caller]
    pub fn sees(&mut self, wanted: &str) -> String {
        let end = Instant::now() + PATIENCE;
        let mut text = self.shown.text.lock().unwrap();
        loop {
            let new = &text[self.seen..];
            if let Some(at) = new.windows(wanted.len()).position(|w| w == wanted.as_bytes()) {
                let before = String::from_utf8_lossy(&new[..at]).into_owned();
                self.seen += at + wanted.len();
                return before;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{wanted:?} was not shown; {:?} was", String::from_utf8_lossy(new));
            text = self.shown.more.wait_timeout(text, left).unwrap().0;
        }
    }

    /// Everything that was shown so far.
    pub fn all(&self) -> String {
        String::from_utf8_lossy(&self.shown.text.lock().unwrap()).into_owned()
    }

    /// Changes the size of the window, which the program is told by a signal.
    pub fn resizes(&self, lines: u16, columns: u16) {
        self.pty.resize(Size::new(lines, columns)).unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn modes(&self) -> Modes {
        modes(&self.pts)
    }

    /// Waits for the program's end. It must leave the terminal as it was. Gives all that was shown.
    #[track_caller]
    pub fn ends(mut self, code: i32) -> String {
        let found = ended(&mut self.child);
        assert_eq!(found, Some(code), "{}", self.all());
        assert_eq!(self.modes(), self.before, "the terminal's modes were not put back");
        // What was shown before this mark has been read when the mark has. A late Ctrl-C makes the terminal forget it.
        until("the end is shown", || {
            rustix::io::write(&self.pts, b"<the end>").unwrap();
            self.all().contains("<the end>")
        });
        let all = self.all().replace("<the end>", "");
        let (on, off) = (all.matches("\u{1b}[?2004h").count(), all.rfind("\u{1b}[?2004l"));
        assert!(on == 0 || off > all.rfind("\u{1b}[?2004h"), "bracketed paste was left on: {all:?}");
        all
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After a failed test the program would wait for keys for ever.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn modes(pts: &Pts) -> Modes {
    let modes = tcgetattr(pts).unwrap();
    (modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes)
}

fn read(pty: &Pty, shown: &Shown) {
    let mut bytes = [0; 4096];
    while let Ok(n) = (&*pty).read(&mut bytes) {
        if n == 0 {
            return;
        }
        shown.text.lock().unwrap().extend_from_slice(&bytes[..n]);
        shown.more.notify_all();
    }
}

/// Whether a process with this command line lives.
pub fn lives(command: &str) -> bool {
    let wanted: Vec<u8> = command.bytes().map(|b| if b == b' ' { 0 } else { b }).chain([0]).collect();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|p| std::fs::read(p.path().join("cmdline")).ok()).any(|line| line == wanted)
}
