//! Text for people, append-only: the answer on stdout, all else on stderr.

use std::io::{self, Write};
use std::path::Path;

use agent_core::commands::spent;
use agent_core::{Ask, Ending, Event, Notice, Prompt, Tally, UsageReport};
use agent_tools::diff::Diff;
use agent_tools::{CallKind, Change, Details, Outline, Part, Status, ToolOutput};

use super::ending_text;
use super::style::{Style, beginning, plain, visible};

/// The most of a call that its header shows: lines and characters.
const HEADER: (usize, usize) = (20, 2_000);

/// The most that a question shows of the call, and of the change, that it is about.
const QUESTION: (usize, usize) = (200, 20_000);

/// Where a turn is shown.
pub struct Screen<O, E> {
    out: O,
    err: E,
    style: Style,
    /// Print the answer as it comes. Otherwise each reply is held until it is whole: a pipe gets the answer alone, once.
    live: bool,
    preview_lines: usize,
    cwd: String,
    held: String,
    line_open: bool,
    tally: Tally,
    /// The call whose change was shown with a question: it is not shown again.
    proposed: Option<String>,
    /// The turn has had its prompt: another one was said meanwhile.
    begun: bool,
    /// What the session has spent, where the turn made a request.
    usage: Option<UsageReport>,
}

impl<O: Write, E: Write> Screen<O, E> {
    /// A screen. `live`: stdout is a terminal.
    pub fn new(out: O, err: E, style: Style, live: bool, preview_lines: usize) -> Self {
        let (cwd, held, tally) = (String::new(), String::new(), Tally::default());
        Self {
            out,
            err,
            style,
            live,
            preview_lines,
            cwd,
            held,
            line_open: false,
            tally,
            proposed: None,
            begun: false,
            usage: None,
        }
    }

    /// Names the working directory, for questions.
    #[must_use]
    pub fn within(self, cwd: &Path) -> Self {
        Self { cwd: cwd.to_string_lossy().into_owned(), ..self }
    }

    /// Shows an event.
    ///
    /// # Errors
    /// The reader of stdout or stderr is gone.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Prompt(prompt) => self.prompt(prompt)?,
            Event::Text(text) => self.text(text)?,
            Event::Thinking(text) => self.thinking(text)?,
            Event::Called { call, outline } => self.header(&call.name, outline)?,
            Event::Ask(ask) => self.question(ask)?,
            Event::Finished { call, kind, output } => {
                let seen = self.proposed.take_if(|id| *id == call.id).is_some();
                self.result(*kind, output, seen)?;
            }
            Event::Notice(notice) => self.notice(notice)?,
            Event::Ended(ended) => self.ended(ended.as_ref())?,
            Event::Usage(report) => self.usage = Some(*report),
            Event::Started { .. } | Event::Output { .. } => {}
        }
        self.out.flush()
    }

    /// A dim line.
    ///
    /// # Errors
    /// The reader of stderr is gone.
    pub fn say(&mut self, text: &str) -> io::Result<()> {
        self.close_line()?;
        for line in plain(text).lines() {
            writeln!(self.err, "{}", self.style.dim(line))?;
        }
        Ok(())
    }

    /// What a turn begins with was typed a moment ago; what is said meanwhile is shown when the model is told.
    fn prompt(&mut self, prompt: &Prompt) -> io::Result<()> {
        if !self.begun {
            (self.begun, self.tally) = (true, Tally::default());
            return Ok(());
        }
        let text: String = prompt.parts.iter().map(Part::as_text).collect();
        self.commentary()?;
        self.say(&format!("[you → now] {text}"))
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if !self.live {
            self.held.push_str(text);
            return Ok(());
        }
        let text = plain(text);
        if !text.is_empty() {
            self.line_open = !text.ends_with('\n');
        }
        self.out.write_all(text.as_bytes())
    }

    fn thinking(&mut self, text: &str) -> io::Result<()> {
        if self.live {
            write!(self.err, "{}", self.style.dim(&plain(text)))?;
            self.line_open = !text.ends_with('\n');
        }
        Ok(())
    }

    /// What was held of a reply that went on to call tools: words for people, no part of the answer.
    fn commentary(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.say(held.trim_end())
    }

    fn header(&mut self, name: &str, outline: &Outline) -> io::Result<()> {
        self.commentary()?;
        self.close_line()?;
        let (shown, rest) = beginning(&outline.title, HEADER.0, HEADER.1);
        let cut = if rest.is_empty() { "" } else { "…" };
        let mark = format!("{} {}", sign(outline.kind), one_line(name));
        self.about(&mark, &format!("{shown}{cut}"))?;
        self.err.flush()
    }

    /// What a call is about, after its name.
    fn about(&mut self, name: &str, title: &str) -> io::Result<()> {
        let title = visible(title);
        let mut lines = title.lines();
        writeln!(self.err, "{name}: {}", lines.next().unwrap_or_default())?;
        lines.try_for_each(|line| writeln!(self.err, "    {line}"))
    }

    fn question(&mut self, ask: &Ask) -> io::Result<()> {
        self.close_line()?;
        if let Some(change) = &ask.change {
            self.proposal(change)?;
            self.proposed = Some(ask.call.id.clone());
        }
        writeln!(self.err, "  {}", one_line(&ask.why))?;
        for finding in &ask.outline.needs.findings {
            let zone = finding.zone.map_or("", agent_tools::policy::zone_name);
            let line = format!("  {} {zone}: {}", one_line(&finding.what), finding.rights);
            writeln!(self.err, "{}", self.style.dim(&line))?;
        }
        self.subject(&ask.call.name, &ask.outline.title)?;
        let grants: Vec<String> = ask.outline.needs.grants.iter().map(|g| one_line(&g.subject)).collect();
        let session = if grants.is_empty() {
            String::new()
        } else {
            format!(" · s: {} for this session · p: for good", grants.join(", "))
        };
        write!(self.err, "{}", self.style.bold(&format!("  a: allow once{session} · r: reject  [a/s/r] ")))?;
        self.err.flush()
    }

    /// Which call a question is about, and where: other headers may stand between.
    fn subject(&mut self, name: &str, title: &str) -> io::Result<()> {
        let (shown, rest) = beginning(title, QUESTION.0, QUESTION.1);
        self.about(&format!("  {}", one_line(name)), shown)?;
        self.left_out(rest)?;
        writeln!(self.err, "  in {}", one_line(&self.cwd))
    }

    /// The change that a question is about.
    fn proposal(&mut self, change: &Change) -> io::Result<()> {
        let diff = Diff::between(change.old.as_deref().unwrap_or_default(), &change.new);
        let (shown, rest) = beginning(&diff.text, QUESTION.0, QUESTION.1);
        for line in visible(shown).lines() {
            writeln!(self.err, "    {}", self.style.diff(line))?;
        }
        self.left_out(rest)
    }

    fn left_out(&mut self, rest: &str) -> io::Result<()> {
        if rest.is_empty() {
            return Ok(());
        }
        let (lines, characters) = (rest.trim_start_matches('\n').lines().count(), rest.chars().count());
        self.indented(&format!("… (not shown: {characters} more characters in {lines} line(s))"))
    }

    fn result(&mut self, kind: CallKind, output: &ToolOutput, seen: bool) -> io::Result<()> {
        self.tally.count(kind);
        match kind {
            CallKind::Skill | CallKind::Read if output.status == Status::Ok => Ok(()),
            CallKind::Command => self.command(output),
            CallKind::Skill
            | CallKind::Read
            | CallKind::Write
            | CallKind::Edit
            | CallKind::Search
            | CallKind::Todo
            | CallKind::Plan
            | CallKind::Agent
            | CallKind::Other => self.change(output, seen),
        }
    }

    fn command(&mut self, output: &ToolOutput) -> io::Result<()> {
        let text = output.text();
        if text.trim().is_empty() {
            return self.indented("(no output)");
        }
        let text = plain(&text);
        let lines: Vec<&str> = text.lines().collect();
        let suffixes = lines.iter().rev().take_while(|l| is_suffix(l)).count();
        let body = lines.len() - suffixes;
        self.preview(&lines[..body])?;
        lines[body..].iter().try_for_each(|line| self.indented(line))
    }

    fn change(&mut self, output: &ToolOutput, seen: bool) -> io::Result<()> {
        let text = plain(&output.text());
        let lines: Vec<&str> = text.lines().collect();
        self.indented(lines.first().unwrap_or(&""))?;
        match &output.details {
            Details::Change(_) if seen => Ok(()),
            Details::Change(change) => self.diff(change),
            _ => self.preview(lines.get(1..).unwrap_or_default()),
        }
    }

    fn diff(&mut self, change: &Change) -> io::Result<()> {
        let diff = Diff::between(change.old.as_deref().unwrap_or_default(), &change.new);
        let text = plain(&diff.text);
        let lines: Vec<&str> = text.lines().collect();
        for line in lines.iter().take(self.preview_lines) {
            writeln!(self.err, "    {}", self.style.diff(line))?;
        }
        self.more(lines.len().saturating_sub(self.preview_lines))
    }

    fn preview(&mut self, lines: &[&str]) -> io::Result<()> {
        lines.iter().take(self.preview_lines).try_for_each(|line| self.indented(line))?;
        self.more(lines.len().saturating_sub(self.preview_lines))
    }

    fn more(&mut self, left: usize) -> io::Result<()> {
        if left == 0 { Ok(()) } else { self.indented(&format!("… (+{left} lines)")) }
    }

    fn indented(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.err, "    {}", self.style.dim(line))
    }

    fn notice(&mut self, notice: &Notice) -> io::Result<()> {
        match notice {
            Notice::Permission { .. } => Ok(()),
            Notice::Retry { .. } => {
                self.held.clear();
                self.say(&notice.to_string())
            }
            // The model goes on from here: what it said before is no part of the answer.
            Notice::ChildEnded { .. } | Notice::TaskEnded(_) => {
                self.commentary()?;
                self.say(&notice.to_string())
            }
            _ => self.say(&notice.to_string()),
        }
    }

    fn ended<X: std::fmt::Display>(&mut self, ended: Result<&Ending, X>) -> io::Result<()> {
        self.begun = false;
        let held = std::mem::take(&mut self.held);
        self.out.write_all(held.as_bytes())?;
        self.line_open |= !held.is_empty() && !held.ends_with('\n');
        self.close_line()?;
        self.out.flush()?;
        let tally = self.tally.to_string();
        if !tally.is_empty() {
            self.say(&tally)?;
        }
        if let Some(spent) = self.usage.take().filter(|_| self.live).and_then(|report| spent(&report)) {
            self.say(&spent)?;
        }
        match ended {
            Err(error) => writeln!(self.err, "error: {}", plain(&error.to_string())),
            Ok(ending) => ending_text(ending).map_or(Ok(()), |text| self.say(&text)),
        }
    }

    fn close_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.line_open) {
            self.out.write_all(b"\n")?;
            self.out.flush()?;
        }
        Ok(())
    }
}

/// A name or a reason in one line of bounded length. The model may call a tool that there is not, by any name.
fn one_line(text: &str) -> String {
    let (shown, rest) = beginning(text, usize::MAX, HEADER.1);
    let cut = if rest.is_empty() { "" } else { "…" };
    format!("{}{cut}", visible(shown).replace('\n', " "))
}

/// The sign before a header. The one of commands has a space of its own: it is one column wide and drawn as two.
fn sign(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Command => "🛠️ ",
        CallKind::Read | CallKind::Write | CallKind::Edit => "📝",
        CallKind::Skill => "📖",
        CallKind::Search | CallKind::Todo | CallKind::Plan | CallKind::Agent | CallKind::Other => "•",
    }
}

/// Lines that tell how a command ended: shown even where the preview ends before them.
fn is_suffix(line: &str) -> bool {
    const STARTS: [&str; 7] = [
        "[exit code: ",
        "[killed by signal ",
        "[error: ",
        "[output truncated ",
        "[LOOP_DETECTED: ",
        "[... command ",
        "[the sandbox ",
    ];
    STARTS.iter().any(|start| line.starts_with(start))
}
