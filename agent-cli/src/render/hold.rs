//! The two outputs of a terminal as one: where a line stands open, and what waits while a person types below it.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

/// The most that waits, in bytes. Beyond it is printed, and what is typed is shown again below.
const MOST: usize = 1 << 20;

/// One of the two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// stdout.
    Out,
    /// stderr.
    Err,
}

/// Both outputs. Clones are the same ones.
#[derive(Debug, Clone, Default)]
pub struct Outputs(
    // Shared, because the screen writes to both while somebody else holds them; on one thread only.
    Rc<RefCell<State>>,
);

#[derive(Debug, Default)]
struct State {
    holds: bool,
    kept: Vec<(Stream, Vec<u8>)>,
    bytes: usize,
    /// What was printed last did not end its line.
    open: bool,
}

impl Outputs {
    /// One of them, to write to.
    pub fn stream(&self, stream: Stream) -> Output {
        Output { outputs: self.clone(), stream }
    }

    /// From now on what is written waits.
    pub fn hold(&self) {
        self.0.borrow_mut().holds = true;
    }

    /// Prints what has waited; nothing waits any more.
    ///
    /// # Errors
    /// Those of the outputs.
    pub fn release(&self) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.holds = false;
        state.bytes = 0;
        for (stream, bytes) in std::mem::take(&mut state.kept) {
            state.print(stream, &bytes)?;
            flush(stream)?;
        }
        Ok(())
    }

    /// Whether more has waited than may.
    pub fn is_full(&self) -> bool {
        self.0.borrow().bytes > MOST
    }

    /// Ends the line that stands open.
    ///
    /// # Errors
    /// Those of stderr.
    pub fn close_line(&self) -> io::Result<()> {
        if self.0.borrow().open { self.print("\n") } else { Ok(()) }
    }

    /// Prints this at once, on stderr.
    ///
    /// # Errors
    /// Those of stderr.
    pub fn print(&self, text: &str) -> io::Result<()> {
        self.0.borrow_mut().print(Stream::Err, text.as_bytes())?;
        flush(Stream::Err)
    }
}

impl State {
    fn keep(&mut self, stream: Stream, bytes: &[u8]) {
        self.bytes += bytes.len();
        match self.kept.last_mut() {
            Some((last, kept)) if *last == stream => kept.extend_from_slice(bytes),
            _ => self.kept.push((stream, bytes.to_vec())),
        }
    }

    fn print(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        match stream {
            Stream::Out => io::stdout().write_all(bytes)?,
            Stream::Err => io::stderr().write_all(bytes)?,
        }
        if let Some(last) = bytes.last() {
            self.open = *last != b'\n';
        }
        Ok(())
    }
}

fn flush(stream: Stream) -> io::Result<()> {
    match stream {
        Stream::Out => io::stdout().flush(),
        Stream::Err => io::stderr().flush(),
    }
}

/// One of the outputs as a writer.
#[derive(Debug)]
pub struct Output {
    outputs: Outputs,
    stream: Stream,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.outputs.0.borrow_mut();
        if state.holds {
            state.keep(self.stream, bytes);
        } else {
            state.print(self.stream, bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        flush(self.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_and_stays_in_order() {
        let outputs = Outputs::default();
        let (mut out, mut err) = (outputs.stream(Stream::Out), outputs.stream(Stream::Err));
        outputs.hold();
        write!(out, "a").unwrap();
        write!(out, "b").unwrap();
        write!(err, "c").unwrap();
        write!(out, "d").unwrap();
        let kept = outputs.0.borrow().kept.clone();
        assert_eq!(kept, [(Stream::Out, b"ab".to_vec()), (Stream::Err, b"c".to_vec()), (Stream::Out, b"d".to_vec())]);
        assert!(!outputs.is_full());
        out.write_all(&vec![b'x'; MOST]).unwrap();
        assert!(outputs.is_full());
        outputs.0.borrow_mut().kept.clear();
        outputs.release().unwrap();
        assert!(!outputs.is_full());
    }
}
