//! How full the context is, and whether it pays to summarise a part of it. Pure.
//!
//! The decision is that of the toolset page, section 5.4: a summary costs a request and a cold cache now, and saves
//! cache reads in the requests to come. Prices are those of the model.

use agent_tools::{Declaration, Part};

use crate::agent::Agent;
use crate::message::{Block, CallResult, Message};
use crate::prompt::Section;
use crate::provider::{Prices, Usage};
use crate::session::Session;
use crate::settings::Compact;

/// The part of the lines that is kept at least.
const KEPT: f64 = 0.25;
/// The fewest lines that are kept for money's sake.
const FEWEST: usize = 3;
/// From this part of the context on it is compacted whatever it costs.
const FULL: f64 = 0.9;
/// Below this part of it nothing is compacted for money's sake: a summary loses more than the formula knows, and a busy
/// turn alone would have one made of a conversation of a few thousand tokens.
const WORTH: f64 = 0.25;
/// Tokens that a picture counts.
const PICTURE: u64 = 1500;

/// Roughly how many tokens this many bytes are.
pub fn tokens_of(bytes: usize) -> u64 {
    (bytes as u64 * 10).div_ceil(36)
}

/// Roughly how many tokens a message has.
pub fn estimate(message: &Message) -> u64 {
    match message {
        Message::User(parts) => of_parts(parts),
        Message::Assistant(blocks) => blocks.iter().map(of_block).sum(),
        Message::Results(results) => results.iter().map(of_result).sum(),
    }
}

fn of_parts(parts: &[Part]) -> u64 {
    let part = |part: &Part| match part {
        Part::Text { text } => tokens_of(text.len()),
        _ => PICTURE,
    };
    parts.iter().map(part).sum()
}

fn of_block(block: &Block) -> u64 {
    tokens_of(match block {
        Block::Text { text } => text.len(),
        Block::Call { call } => call.id.len() + call.name.len() + call.arguments.len(),
        Block::Opaque { raw, .. } => raw.get().len(),
    })
}

fn of_result(result: &CallResult) -> u64 {
    tokens_of(result.id.len()) + of_parts(&result.parts)
}

/// Roughly how many tokens the tools take.
pub fn of_tools<'a>(tools: impl IntoIterator<Item = &'a Declaration>) -> u64 {
    let size = |tool: &Declaration| tool.name.len() + tool.description.len() + tool.schema.to_string().len();
    tools.into_iter().map(|tool| tokens_of(size(tool))).sum()
}

/// All tokens of a request and its answer: what the next request begins with.
pub fn held(usage: &Usage) -> u64 {
    usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens + usage.output_tokens
}

/// What a request cost, in US dollars; none where the prices are not known, or the server did not say what it used.
pub(crate) fn cost(prices: Option<&Prices>, usage: &Usage) -> Option<f64> {
    let told = *usage != Usage::default();
    prices.filter(|prices| told || **prices == Prices::FREE).map(|prices| prices.cost(usage))
}

/// A part of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Share {
    /// What it is.
    pub what: &'static str,
    /// Roughly how many tokens it has.
    pub tokens: u64,
    /// It is the same in every request.
    pub fixed: bool,
}

/// What the context of a session is full of: what is the same in every request first.
pub fn shares(agent: &Agent, session: &Session) -> Vec<Share> {
    let prompt = tokens_of(session.prompt(agent).len());
    let instructions = tokens_of(agent.prompt.get(Section::Instructions).map_or(0, str::len));
    let fixed = [
        ("system prompt", prompt.saturating_sub(instructions)),
        ("instruction files", instructions),
        ("tools", of_tools(agent.tools.declarations())),
    ];
    let mut moving = [("summary", 0), ("prompts and news", 0), ("answers", 0), ("calls", 0), ("results", 0)];
    let has_summary = session.usage().compactions > 0;
    for (at, message) in session.messages().iter().enumerate() {
        let calls: u64 = message.calls().map(|call| tokens_of(call.name.len() + call.arguments.len())).sum();
        let kind = match message {
            Message::User(_) if at == 0 && has_summary => 0,
            Message::User(_) => 1,
            Message::Assistant(_) => 2,
            Message::Results(_) => 4,
        };
        moving[kind].1 += estimate(message).saturating_sub(calls);
        moving[3].1 += calls;
    }
    let share = |fixed| move |(what, tokens)| Share { what, tokens, fixed };
    fixed.into_iter().map(share(true)).chain(moving.into_iter().map(share(false))).filter(|s| s.tokens > 0).collect()
}

/// Which part of what was sent came from the provider's cache; none where nothing was sent.
pub fn hit_rate(usage: &Usage) -> Option<f64> {
    let sent = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
    (sent > 0).then(|| usage.cache_read_input_tokens as f64 / sent as f64)
}

/// What a line of the conversation, which is a message here, begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// What a person said.
    Turn,
    /// What the model said.
    Answer,
    /// Nothing: results belong to the calls before them.
    Nothing,
}

/// A line of the conversation as the decision sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Its size in tokens.
    pub tokens: u64,
    /// Whether the kept part may begin here.
    pub begins: Begins,
}

impl Line {
    /// The line of a message, with the estimated size.
    pub fn of(message: &Message) -> Self {
        let begins = match message {
            Message::User(_) => Begins::Turn,
            Message::Assistant(_) => Begins::Answer,
            Message::Results(_) => Begins::Nothing,
        };
        Self { tokens: estimate(message), begins }
    }
}

/// What the session has been like so far, and what the model costs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Course {
    /// What the model costs; none: not known, and then nothing is done for money's sake.
    pub prices: Option<Prices>,
    /// The model's context in tokens (M).
    pub context: u64,
    /// Tokens of the system prompt and the tools (V).
    pub fixed: u64,
    /// Prompts so far.
    pub turns: u64,
    /// Requests so far.
    pub requests: u64,
    /// All tokens sent so far.
    pub sent: u64,
    /// Summaries so far (c).
    pub compactions: u32,
}

impl Course {
    /// A session that has just begun, with a model of this context.
    pub fn new(prices: Option<Prices>, context: u64, fixed: u64) -> Self {
        Self { prices, context, fixed, turns: 0, requests: 0, sent: 0, compactions: 0 }
    }

    /// How many requests are still to come (R): rounds (E) times requests a round (L).
    fn expected_requests(&self) -> f64 {
        const ROUNDS: u64 = 8;
        const A_ROUND: f64 = 5.0;
        let rounds = ROUNDS.saturating_sub(self.turns).max(ROUNDS / 2);
        let a_round = if self.turns == 0 { A_ROUND } else { self.requests as f64 / self.turns as f64 };
        rounds as f64 * a_round.max(1.0)
    }

    /// What keeping `kept` of `total` tokens brings, in dollars.
    fn benefit(&self, prices: &Prices, kept: u64, total: u64) -> f64 {
        /// Tokens of a summary (S), and of the words that ask for it.
        const SUMMARY: f64 = 500.0;
        const INSTRUCTION: f64 = 70.0;
        /// What is lost with each summary: beta, r and its least value.
        const BETA: f64 = 0.03;
        const R: f64 = 0.8;
        const LEAST: f64 = 0.37;
        /// What a shorter context is worth (Q).
        const QUALITY: f64 = 0.2;
        /// Tokens of a request where none was made.
        const A_REQUEST: f64 = 4000.0;
        let (k, t, v) = (kept as f64, total as f64, self.fixed as f64);
        let h = t - k;
        let (fresh, cached, out) = (prices.input, prices.cache_read, prices.output);
        let requests = self.expected_requests();
        let average = if self.requests == 0 { A_REQUEST } else { self.sent as f64 / self.requests as f64 };
        let remembered = R.powf(f64::from(self.compactions) + 1.0).max(LEAST);
        let saved = (requests - 1.0) * cached * h;
        let cold = (SUMMARY + k) * (fresh - cached);
        let request = cached * (v + h) + fresh * INSTRUCTION + out * SUMMARY;
        let lost = BETA * (1.0 - remembered) * requests * average * fresh;
        let quality = QUALITY * fresh * ((v + t).powi(2) - (v + k).powi(2)) / (self.context.max(1) as f64);
        (saved - cold - request - lost + quality) / 1e6
    }
}

/// How many of the last lines to keep because that is cheaper; none where it is not.
pub fn worthwhile(lines: &[Line], course: &Course) -> Option<usize> {
    let prices = course.prices.as_ref()?;
    let least = least_kept(lines.len());
    let most = (lines.len() as f64 * (1.0 - KEPT)) as usize;
    let total: u64 = lines.iter().map(|line| line.tokens).sum();
    let mut kept: u64 = lines.iter().rev().take(least).map(|line| line.tokens).sum();
    let mut best: Option<(usize, f64)> = None;
    for count in least..lines.len() {
        let benefit = course.benefit(prices, kept, total);
        if kept < total && benefit > best.map_or(0.0, |(_, most)| most) {
            best = Some((count, benefit));
        }
        kept += lines[lines.len() - 1 - count].tokens;
    }
    best.and_then(|(count, _)| begun(lines, count, most))
}

fn least_kept(lines: usize) -> usize {
    ((lines as f64 * KEPT).round() as usize).max(FEWEST).min(lines)
}

/// At least so many of the last lines that the kept part begins with what a person said, else with an answer; none
/// where that would be more than `most`.
fn begun(lines: &[Line], count: usize, most: usize) -> Option<usize> {
    let found = |wanted: Begins| {
        let fits = |kept: &usize| lines[lines.len() - kept].begins == wanted;
        (count.max(1)..=most.min(lines.len())).find(fits)
    };
    found(Begins::Turn).or_else(|| found(Begins::Answer))
}

/// How many of the last lines to keep where it must be less: those of the last quarter of the turns, or where that is
/// nearly all, the last lines that have a quarter of the tokens.
pub fn necessary(lines: &[Line]) -> usize {
    let total: u64 = lines.iter().map(|line| line.tokens).sum();
    let tokens = |kept: usize| lines.iter().rev().take(kept).map(|line| line.tokens).sum::<u64>();
    let turns = lines.iter().filter(|line| line.begins == Begins::Turn).count();
    let wanted = ((turns as f64 * KEPT).round() as usize).max(1);
    let starts = lines.iter().enumerate().rev().filter(|(_, line)| line.begins == Begins::Turn);
    let kept = starts.take(wanted).last().map_or(0, |(at, _)| lines.len() - at);
    if tokens(kept) * 2 <= total {
        return kept;
    }
    let budget = (total as f64 * KEPT) as u64;
    let mut fitting = 0;
    let mut sum = 0;
    for (count, line) in lines.iter().rev().enumerate() {
        sum += line.tokens;
        if sum > budget {
            break;
        }
        if line.begins != Begins::Nothing {
            fitting = count + 1;
        }
    }
    fitting
}

/// How many of the last lines to keep before the next request; none where nothing is to be done.
pub fn due(lines: &[Line], used: u64, compact: Compact, course: &Course) -> Option<usize> {
    let beyond = |part: f64| used as f64 > course.context as f64 * part;
    match compact {
        Compact::Off => None,
        Compact::At(percent) => beyond(f64::from(percent) / 100.0).then(|| necessary(lines)),
        Compact::Auto if beyond(FULL) => Some(worthwhile(lines, course).unwrap_or_else(|| necessary(lines))),
        Compact::Auto => beyond(WORTH).then(|| worthwhile(lines, course)).flatten(),
    }
    .filter(|kept| lines[..lines.len() - kept].iter().any(|line| line.begins == Begins::Answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sonnet() -> Prices {
        Prices { cache_read: 0.3, cache_write: 3.75, ..Prices::new(3.0, 15.0) }
    }

    /// Lines in short form: `u100` said by a person, `a100` an answer, `r100` results, each with its tokens.
    fn lines(short: &str) -> Vec<Line> {
        let line = |word: &str| {
            let begins = match &word[..1] {
                "u" => Begins::Turn,
                "a" => Begins::Answer,
                _ => Begins::Nothing,
            };
            Line { tokens: word[1..].parse().unwrap(), begins }
        };
        short.split_whitespace().map(line).collect()
    }

    /// Worked out by hand from the formula: R, then each term in dollars per million.
    #[test]
    fn the_benefit_is_that_of_the_formula() {
        let course = |turns, requests, sent, compactions| Course {
            turns,
            requests,
            sent,
            compactions,
            ..Course::new(Some(sonnet()), 200_000, 5000)
        };
        for (course, kept, total, expect) in [
            // E = max(8 - 2, 4) = 6, L = 10 / 2 = 5, R = 30; H = 30000.
            // saved 29 x 0.3 x 30000 = 261000; cold (500 + 10000) x 2.7 = 28350;
            // request 0.3 x 35000 + 3 x 70 + 15 x 500 = 10500 + 210 + 7500 = 18210;
            // lost 0.03 x (1 - 0.8) x 30 x 20000 x 3 = 10800;
            // quality 0.2 x 3 x (45000^2 - 15000^2) / 200000 = 0.6 x 1800000000 / 200000 = 5400.
            (course(2, 10, 200_000, 0), 10_000, 40_000, 0.261 - 0.02835 - 0.01821 - 0.0108 + 0.0054),
            // Nothing was asked yet: E = 8, L = 5, R = 40, 4000 tokens a request; H = 1000.
            // saved 39 x 0.3 x 1000 = 11700; cold 1500 x 2.7 = 4050; request 0.3 x 6000 + 210 + 7500 = 9510;
            // lost 0.03 x 0.2 x 40 x 4000 x 3 = 2880; quality 0.6 x (7000^2 - 6000^2) / 200000 = 39.
            (course(0, 0, 0, 0), 1000, 2000, (11_700.0 - 4050.0 - 9510.0 - 2880.0 + 39.0) / 1e6),
            // Late, after four summaries: E = 4, L = 1, R = 4; r_t = max(0.8^5, 0.37) = 0.37; H = 90000.
            // saved 3 x 0.3 x 90000 = 81000; cold 10500 x 2.7 = 28350; request 0.3 x 95000 + 210 + 7500 = 36210;
            // lost 0.03 x 0.63 x 4 x 50000 x 3 = 11340; quality 0.6 x (105000^2 - 15000^2) / 200000 = 32400.
            (
                course(20, 20, 1_000_000, 4),
                10_000,
                100_000,
                (81_000.0 - 28_350.0 - 36_210.0 - 11_340.0 + 32_400.0) / 1e6,
            ),
        ] {
            let benefit = course.benefit(&sonnet(), kept, total);
            assert!((benefit - expect).abs() < 1e-9, "{benefit} {expect}");
        }
    }

    #[test]
    fn what_pays_is_kept_from_where_a_person_spoke() {
        let begun = Course { turns: 2, requests: 10, sent: 200_000, ..Course::new(Some(sonnet()), 200_000, 5000) };
        let short = "u100 a100 r100 a100 u100 a100";
        let long = "u100 a20000 r20000 a100 u100 a100 r100 a100 u100 a100";
        let one_turn = "u100 a9000 r9000 a9000 r9000 a9000 r9000 a100 r100 a100 r100 a100";
        for (text, course, expect) in [
            (short, begun, None),
            (long, begun, Some(6)),
            (one_turn, begun, Some(3)),
            (long, Course { prices: None, ..begun }, None),
            (long, Course { prices: Some(Prices::new(0.0, 0.0)), ..begun }, None),
            ("u90000 a100", begun, None),
            ("", begun, None),
        ] {
            assert_eq!(worthwhile(&lines(text), &course), expect, "{text}");
        }
    }

    #[test]
    fn what_must_be_shorter_never_begins_with_results() {
        for (text, expect) in [
            ("u10 a10 u10 a10 u10 a10 u10 a10", 2),
            ("u10 a500 r500 a500 r10 a10 r10", 2),
            ("u10 a10 r5000", 0),
            ("u10 a10 r9000 a10 r10", 2),
            ("u10", 0),
            ("", 0),
        ] {
            assert_eq!(necessary(&lines(text)), expect, "{text}");
        }
    }

    #[test]
    fn it_is_due_when_the_setting_says_so() {
        let course = Course::new(None, 1000, 10);
        let text = "u10 a10 u10 a10 u10 a10 u10 a10";
        for (used, compact, expect) in [
            (899, Compact::Auto, None),
            (901, Compact::Auto, Some(2)),
            (901, Compact::Off, None),
            (499, Compact::At(50), None),
            (501, Compact::At(50), Some(2)),
        ] {
            assert_eq!(due(&lines(text), used, compact, &course), expect, "{used} {compact:?}");
        }
        // A busy turn makes nearly every summary pay.
        let busy = Course { turns: 1, requests: 50, sent: 500_000, ..Course::new(Some(sonnet()), 200_000, 5000) };
        let text = "u100 a20000 r20000 a100 u100 a100 r100 a100 u100 a100";
        for (used, expect) in [(45_000, None), (51_000, Some(6))] {
            assert_eq!(due(&lines(text), used, Compact::Auto, &busy), expect, "{used}");
        }
    }
}
