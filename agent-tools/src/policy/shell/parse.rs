//! Reads the text of a command: the only file that knows the parser behind it.

use rable::{ListItem, ListOperator, Node as Raw, NodeKind};

/// A command as it was written, words still in their quotes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// Assignments, words and redirects.
    Simple(Simple),
    /// Each of them in a shell of its own.
    Pipeline(Vec<Node>),
    /// One after the other.
    List(Vec<(Node, Join)>),
    /// `( … )`, or `{ …; }` where it is not a shell of its own.
    Group { body: Box<Node>, own_shell: bool, redirects: Vec<Redirect> },
    /// Parts of which any may run or not, the first at least once: `if`.
    Branches { parts: Vec<Node>, redirects: Vec<Redirect> },
    /// `while`, `until`: condition and body, again and again.
    Loop { parts: Vec<Node>, redirects: Vec<Redirect> },
    /// `for`, `select`: the words are missing where it goes over the arguments.
    For { var: String, words: Option<Vec<String>>, body: Box<Node>, redirects: Vec<Redirect> },
    /// `case`: the word, all patterns, all bodies.
    Case { words: Vec<String>, bodies: Vec<Node>, redirects: Vec<Redirect> },
    /// `[[ … ]]`: operators with their operands.
    Test { terms: Vec<(String, String)>, redirects: Vec<Redirect> },
    /// `(( … ))` or a part of `for (( … ))`, as text.
    Arithmetic { texts: Vec<String>, body: Option<Box<Node>>, redirects: Vec<Redirect> },
    /// A function is defined.
    Function { name: String, body: Box<Node> },
    /// Nothing.
    Empty,
}

/// A simple command.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Simple {
    pub(super) assignments: Vec<String>,
    pub(super) words: Vec<String>,
    pub(super) redirects: Vec<Redirect>,
}

/// A redirect.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Redirect {
    /// To or from a file: the operator and the raw word.
    File { op: String, target: String },
    /// A heredoc or a here-string: what the command reads; the word of a here-string is raw.
    Text { text: String, expands: bool, word: bool },
}

/// What stands behind a command in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;`, a newline, the end
    Then,
    /// `&`
    Background,
}

/// Why a text is not read.
pub(super) type Unread = String;

const BYTES: usize = 16 * 1024;
const LEVELS: usize = 16;
const COMMANDS: usize = 2_000;
/// The parser's time grows with the cube of what is nested, and quotes can hide from a simple count how deep that is.
const SUBSTITUTIONS: usize = 64;
/// Groups, conditions and loops within each other.
const BLOCKS: usize = 40;

/// Reads a text. What is too long, too deep or no valid shell is an error, in plain words.
pub(super) fn parse(text: &str) -> Result<Node, Unread> {
    within_limits(text)?;
    with_room(text, || {
        let nodes = rable::parse(text, false).map_err(|e| format!("it is no valid shell command ({})", e.message()))?;
        let items = nodes.iter().map(|node| Ok((lower(node, 0)?, Join::Then))).collect::<Result<_, Unread>>()?;
        let list = Node::List(items);
        if list.is_whole(text) { Ok(list) } else { Err("a part of it is not understood".into()) }
    })
    .unwrap_or_else(|| Err("there is no room to read it".into()))
}

/// How often something opens in a text that runs commands.
fn substitutions(text: &str) -> usize {
    let quotes = text.matches('`').count();
    quotes + ["$(", "<(", ">("].iter().map(|open| text.matches(open).count()).sum::<usize>()
}

impl Node {
    /// Shows each word and each redirect, at any depth.
    fn visit(&self, word: &mut dyn FnMut(&str), redirect: &mut dyn FnMut(&Redirect)) {
        let mut all = |words: &[String]| words.iter().for_each(|text| word(text));
        let (nodes, redirects): (Vec<&Self>, &[Redirect]) = match self {
            Self::Simple(simple) => {
                all(&simple.assignments);
                all(&simple.words);
                (Vec::new(), &simple.redirects)
            }
            Self::Pipeline(stages) => (stages.iter().collect(), &[]),
            Self::List(items) => (items.iter().map(|(node, _)| node).collect(), &[]),
            Self::Group { body, redirects, .. } => (vec![&**body], redirects),
            Self::Branches { parts, redirects } | Self::Loop { parts, redirects } => {
                (parts.iter().collect(), redirects)
            }
            Self::For { words, body, redirects, .. } => {
                all(words.as_deref().unwrap_or_default());
                (vec![&**body], redirects)
            }
            Self::Case { words, bodies, redirects } => {
                all(words);
                (bodies.iter().collect(), redirects)
            }
            Self::Test { terms, redirects } => {
                terms.iter().for_each(|(_, term)| word(term));
                (Vec::new(), redirects)
            }
            Self::Arithmetic { texts, body, redirects } => {
                all(texts);
                (body.iter().map(|body| &**body).collect(), redirects)
            }
            Self::Function { body, .. } => (vec![&**body], &[]),
            Self::Empty => (Vec::new(), &[]),
        };
        redirects.iter().for_each(&mut *redirect);
        nodes.into_iter().for_each(|node| node.visit(word, redirect));
    }

    /// The redirects of a construct that holds others.
    pub(super) fn redirects(&self) -> &[Redirect] {
        match self {
            Self::Group { redirects, .. }
            | Self::Branches { redirects, .. }
            | Self::Loop { redirects, .. }
            | Self::For { redirects, .. }
            | Self::Case { redirects, .. }
            | Self::Test { redirects, .. }
            | Self::Arithmetic { redirects, .. } => redirects,
            Self::Simple(_) | Self::Pipeline(_) | Self::List(_) | Self::Function { .. } | Self::Empty => &[],
        }
    }

    /// Whether all of a text is here: what the parser left out nobody would judge.
    fn is_whole(&self, text: &str) -> bool {
        let (mut found, mut found_in_redirects, mut empty) = (0, 0, false);
        self.visit(&mut |word| found += substitutions(word), &mut |redirect| match redirect {
            Redirect::File { target, .. } => found_in_redirects += substitutions(target),
            Redirect::Text { text, word, .. } => {
                found_in_redirects += substitutions(text);
                empty |= text.is_empty() && !word;
            }
        });
        // The text of a heredoc stands on lines of its own.
        substitutions(text) <= found + found_in_redirects && !(empty && text.trim_end().contains('\n'))
    }
}

/// Reads with room for what may be nested deeply: the parser gives up at a thousand levels, and a usual stack before
/// that. None where there is no such room.
fn with_room<T: Send>(text: &str, read: impl FnOnce() -> T + Send) -> Option<T> {
    const ROOM: usize = 64 << 20;
    const OPENERS: usize = 24;
    if openers(text) <= OPENERS {
        return Some(read());
    }
    // A thread for its stack alone; it is waited for at once.
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().stack_size(ROOM).spawn_scoped(scope, read).ok()?;
        reader.join().ok()
    })
}

/// How often something opens that may hold more of its kind, quoted or not.
fn openers(text: &str) -> usize {
    const WORDS: [&str; 7] = ["if", "while", "until", "for", "select", "case", "function"];
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| WORDS.contains(word)).count();
    words + text.bytes().filter(|b| matches!(b, b'{' | b'(' | b'`')).count()
}

fn within_limits(text: &str) -> Result<(), Unread> {
    if text.len() > BYTES {
        return Err("it is longer than 16 KiB".into());
    }
    if let Some(c) = text.chars().find(|c| is_odd(*c)) {
        return Err(format!("it holds the control character U+{:04X}", u32::from(c)));
    }
    let (mut level, mut deepest, mut substitutions, mut joints, mut blocks) = (0usize, 0, 0, 0, 0);
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '(' => {
                level += 1;
                deepest = deepest.max(level);
                substitutions += usize::from(matches!(before, '$' | '<' | '>' | '('));
            }
            ')' => level = level.saturating_sub(1),
            '`' => substitutions += 1,
            '{' if before == '$' => substitutions += 1,
            '{' => blocks += 1,
            ';' | '&' | '|' | '\n' => joints += 1,
            _ => {}
        }
        before = c;
    }
    if deepest > LEVELS || substitutions > SUBSTITUTIONS || blocks > 4 * SUBSTITUTIONS {
        return Err("it is nested more than 16 levels deep, or has too many substitutions".into());
    }
    if joints > COMMANDS { Err("it has more than 2,000 commands".into()) } else { Ok(()) }
}

/// Control characters that no honest command has, and what hides text from a reader.
fn is_odd(c: char) -> bool {
    let hides = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    hides || (c.is_control() && !matches!(c, '\t' | '\n'))
}

fn lower(node: &Raw, depth: usize) -> Result<Node, Unread> {
    if depth > BLOCKS {
        return Err("it is nested too deeply".into());
    }
    let block = |node: &Raw| lower(node, depth + 1).map(Box::new);
    Ok(match &node.kind {
        NodeKind::Command { assignments, words, redirects } => Node::Simple(Simple {
            assignments: raw_words(assignments)?,
            words: raw_words(words)?,
            redirects: lower_redirects(redirects)?,
        }),
        NodeKind::Pipeline { commands, .. } => {
            Node::Pipeline(commands.iter().map(|c| lower(c, depth + 1)).collect::<Result<_, _>>()?)
        }
        NodeKind::List { items } => lower_list(items, depth)?,
        NodeKind::Negation { pipeline } | NodeKind::Time { pipeline, .. } => lower(pipeline, depth + 1)?,
        NodeKind::Coproc { name: Some(_), .. } => return Err("a coprocess sets a variable".into()),
        NodeKind::Coproc { command, .. } => Node::List(vec![(lower(command, depth + 1)?, Join::Background)]),
        NodeKind::Subshell { body, redirects } => {
            Node::Group { body: block(body)?, own_shell: true, redirects: lower_redirects(redirects)? }
        }
        NodeKind::BraceGroup { body, redirects } => {
            Node::Group { body: block(body)?, own_shell: false, redirects: lower_redirects(redirects)? }
        }
        NodeKind::Function { name, body } => Node::Function { name: name.clone(), body: block(body)? },
        NodeKind::Empty | NodeKind::Comment { .. } => Node::Empty,
        _ => lower_compound(node, depth)?,
    })
}

fn lower_compound(node: &Raw, depth: usize) -> Result<Node, Unread> {
    let block = |node: &Raw| lower(node, depth + 1);
    Ok(match &node.kind {
        NodeKind::If { condition, then_body, else_body, redirects } => {
            let mut parts = vec![block(condition)?, block(then_body)?];
            if let Some(other) = else_body {
                parts.push(block(other)?);
            }
            Node::Branches { parts, redirects: lower_redirects(redirects)? }
        }
        NodeKind::While { condition, body, redirects } | NodeKind::Until { condition, body, redirects } => {
            Node::Loop { parts: vec![block(condition)?, block(body)?], redirects: lower_redirects(redirects)? }
        }
        NodeKind::For { var, words, body, redirects } | NodeKind::Select { var, words, body, redirects } => Node::For {
            var: var.clone(),
            words: words.as_deref().map(raw_words).transpose()?,
            body: Box::new(block(body)?),
            redirects: lower_redirects(redirects)?,
        },
        NodeKind::Case { word, patterns, redirects } => {
            let mut words = vec![raw_word(word)?];
            let mut bodies = Vec::new();
            for pattern in patterns {
                words.extend(raw_words(&pattern.patterns)?);
                bodies.extend(pattern.body.as_ref().map(block).transpose()?);
            }
            Node::Case { words, bodies, redirects: lower_redirects(redirects)? }
        }
        NodeKind::ConditionalExpr { body, redirects } => {
            let mut terms = Vec::new();
            lower_test(body, depth, &mut terms)?;
            Node::Test { terms, redirects: lower_redirects(redirects)? }
        }
        NodeKind::ForArith { init, cond, incr, body, redirects } => Node::Arithmetic {
            texts: vec![init.clone(), cond.clone(), incr.clone()],
            body: Some(Box::new(block(body)?)),
            redirects: lower_redirects(redirects)?,
        },
        NodeKind::ArithmeticCommand { redirects, raw_content, .. } => {
            Node::Arithmetic { texts: vec![raw_content.clone()], body: None, redirects: lower_redirects(redirects)? }
        }
        _ => return Err("it has a construct that is not known here".into()),
    })
}

/// Lists lean to the left, as deep as they are long: unrolled without recursion.
fn lower_list(items: &[ListItem], depth: usize) -> Result<Node, Unread> {
    let mut flat = Vec::new();
    let mut stack: Vec<(&Raw, Join)> = items.iter().rev().map(|i| (&i.command, join(i.operator))).collect();
    while let Some((node, after)) = stack.pop() {
        match &node.kind {
            NodeKind::List { items } => {
                let last = items.len().saturating_sub(1);
                let inner = items.iter().enumerate();
                // What stands behind a list stands behind its last command.
                let inner = inner.map(|(i, item)| (&item.command, if i == last { after } else { join(item.operator) }));
                stack.extend(inner.rev());
            }
            _ => flat.push((lower(node, depth + 1)?, after)),
        }
    }
    Ok(Node::List(flat))
}

fn join(operator: Option<ListOperator>) -> Join {
    match operator {
        Some(ListOperator::And) => Join::And,
        Some(ListOperator::Or) => Join::Or,
        Some(ListOperator::Background) => Join::Background,
        Some(ListOperator::Semi) | None => Join::Then,
    }
}

fn lower_redirects(nodes: &[Raw]) -> Result<Vec<Redirect>, Unread> {
    nodes.iter().map(lower_redirect).collect()
}

fn lower_redirect(node: &Raw) -> Result<Redirect, Unread> {
    match &node.kind {
        NodeKind::Redirect { op, target, .. } if op == "<<<" => {
            Ok(Redirect::Text { text: raw_word(target)?, expands: true, word: true })
        }
        NodeKind::Redirect { varfd: Some(_), .. } => Err("a redirection sets a variable".into()),
        NodeKind::Redirect { op, target, .. } => Ok(Redirect::File { op: op.clone(), target: raw_word(target)? }),
        NodeKind::HereDoc { content, quoted, .. } => {
            Ok(Redirect::Text { text: content.clone(), expands: !quoted, word: false })
        }
        _ => Err("it has a redirection that is not known here".into()),
    }
}

fn lower_test(node: &Raw, depth: usize, terms: &mut Vec<(String, String)>) -> Result<(), Unread> {
    if depth > BLOCKS {
        return Err("it is nested too deeply".into());
    }
    let deeper = depth + 1;
    match &node.kind {
        NodeKind::UnaryTest { op, operand } => terms.push((op.clone(), raw_word(operand)?)),
        NodeKind::BinaryTest { op, left, right } => {
            terms.push((op.clone(), raw_word(left)?));
            terms.push((op.clone(), raw_word(right)?));
        }
        NodeKind::CondAnd { left, right } | NodeKind::CondOr { left, right } => {
            lower_test(left, deeper, terms)?;
            lower_test(right, deeper, terms)?;
        }
        NodeKind::CondNot { operand } => lower_test(operand, deeper, terms)?,
        NodeKind::CondParen { inner } => lower_test(inner, deeper, terms)?,
        _ => terms.push((String::new(), raw_word(node)?)),
    }
    Ok(())
}

fn raw_words(nodes: &[Raw]) -> Result<Vec<String>, Unread> {
    nodes.iter().map(raw_word).collect()
}

fn raw_word(node: &Raw) -> Result<String, Unread> {
    match &node.kind {
        NodeKind::Word { value, .. } | NodeKind::CondTerm { value, .. } => Ok(value.clone()),
        _ => Err("it has a word that is not known here".into()),
    }
}
