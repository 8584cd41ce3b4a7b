//! Logs as they are found, and logs that were damaged at random.

use agent_tools::Call;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::message::{Block, CallResult};

/// A message in short form: `user x`, `says x`, `calls a b`, `results a b`.
fn short_message(kind: &str, words: &str) -> Option<Message> {
    let ids = words.split_whitespace();
    let result =
        |id: &str| CallResult { id: id.into(), name: "bash".into(), failed: false, parts: vec![Part::text("whole")] };
    Some(match kind {
        "user" => Message::user(words),
        "says" => Message::Assistant(vec![Block::text(words)]),
        "calls" => Message::Assistant(ids.map(|id| Block::call(Call::new(id, "bash", "{}"))).collect()),
        "results" => Message::Results(ids.map(result).collect()),
        _ => return None,
    })
}

/// A record in short form: that of a message, `input x`, `line a` for the line of a result, `compact N x`, `rewind S`,
/// `torn`, or JSON.
fn record(short: &str) -> Value {
    let (kind, words) = short.split_once(' ').unwrap_or((short, ""));
    if let Some(message) = short_message(kind, words) {
        let mut record = json!({"type": "message"});
        let message = serde_json::to_value(&message).unwrap();
        record.as_object_mut().unwrap().extend(message.as_object().unwrap().clone());
        return record;
    }
    match kind {
        "input" => json!({"type": "user_input", "content": words}),
        "line" => json!({"type": "tool_result", "tool_use_id": words, "content": "line", "status": "ok"}),
        "compact" => {
            let (kept, text) = words.split_once(' ').unwrap();
            json!({"type": "context_update", "kept": kept.parse::<u64>().unwrap(), "content": [{"type": "text", "text": text}]})
        }
        "rewind" => json!({"type": "rewind", "turn": 1, "to_seq": words.parse::<u64>().unwrap()}),
        _ => serde_json::from_str(short).unwrap(),
    }
}

/// The line of a record, as the journal writes it.
pub(super) fn line(short: &str, seq: u64) -> String {
    if short == "torn" {
        return r#"{"type":"message","role":"assist"#.into();
    }
    let mut record = record(short);
    record["ts"] = "2026-11-30T20:18:03Z".into();
    record["seq"] = seq.into();
    record.to_string()
}

pub(super) fn log(lines: &[&str]) -> String {
    (1..).zip(lines).map(|(seq, short)| line(short, seq) + "\n").collect()
}

fn shown(message: &Message) -> String {
    match message {
        Message::User(parts) if *parts == [Part::text(conversation::LOST)] => "lost".into(),
        Message::User(parts) => format!("user {}", parts.iter().map(Part::as_text).collect::<String>()),
        Message::Assistant(_) if message.calls().next().is_some() => {
            message.calls().fold("calls".into(), |all, call| all + " " + &call.id)
        }
        Message::Assistant(blocks) => {
            let text = |block: &Block| match block {
                Block::Text { text } => text.clone(),
                Block::Call { .. } | Block::Opaque { .. } => "?".into(),
            };
            format!("says {}", blocks.iter().map(text).collect::<String>())
        }
        Message::Results(results) => {
            let text = |r: &CallResult| if r.failed { "cut off".to_owned() } else { r.text() };
            results.iter().fold("results".into(), |all, r| all + " " + &r.id + "=" + &text(r))
        }
    }
}

fn all(loaded: &Loaded) -> String {
    loaded.messages.iter().map(shown).collect::<Vec<_>>().join("|")
}

#[test]
fn each_call_has_one_result_right_after_it() {
    for (lines, expect, repairs) in [
        (
            &["user u", "calls a b", "results a b", "says t"][..],
            "user u|calls a b|results a=whole b=whole|says t",
            &[][..],
        ),
        (
            &["user u", "calls a b", "results b", "says t"],
            "user u|calls a b|results a=cut off b=whole|says t",
            &["1 call was without"],
        ),
        (&["user u", "calls a a", "results a a"], "user u|calls a a|results a=whole a=whole", &[]),
        (&["user u", "calls a b", "line b"], "user u|calls a b|results a=cut off b=line", &["2 calls were without"]),
        (&["user u", "calls a", "line a", "user v"], "user u|calls a|results a=line|user v", &["1 call was without"]),
        (&["line a", "user u", "calls a"], "user u|calls a|results a=cut off", &["1 call was without"]),
        (
            &["user u", "torn", "results a", "says t"],
            "user u|says t",
            &["1 damaged line was skipped (line 2)", "1 result was without"],
        ),
        (&["user u", "results a", "says t"], "user u|says t", &["1 result was without"]),
        (&["user u", "calls a", "results a", "results a"], "user u|calls a|results a=whole", &["1 result was without"]),
        (
            &["user u", "calls a", "results z"],
            "user u|calls a|results a=cut off",
            &["1 call was without", "1 result was without"],
        ),
        (&["user u", "says t", "results a", "user v"], "user u|says t|user v", &["1 result was without"]),
        (&["results a"], "", &["1 result was without"]),
    ] {
        check(log(lines), expect, repairs);
    }
}

/// What the log comes to, and how each repair begins.
#[track_caller]
fn check(log: impl AsRef<[u8]>, expect: &str, repairs: &[&str]) {
    let loaded = load(log.as_ref());
    let log = String::from_utf8_lossy(log.as_ref());
    assert_eq!(all(&loaded), expect, "{log} {:?}", loaded.repairs);
    let told = &loaded.repairs;
    let same = told.len() == repairs.len() && told.iter().zip(repairs).all(|(told, begin)| told.starts_with(begin));
    assert!(same, "{log} {told:?}");
}

#[test]
fn what_is_lost_has_something_in_its_place() {
    for (lines, expect, repairs) in [
        (&["input u", "torn", "says t"][..], "user u|says t", &["1 damaged line", "1 prompt was taken"][..]),
        (&["input u", "user u", "says t"], "user u|says t", &[]),
        (&["input u"], "user u", &["1 prompt was taken"]),
        (&["input u", "input u", "user u"], "user u|user u", &["1 prompt was taken"]),
        (&["input u", "input v", "user u\n\nv"], "user u\n\nv", &[]),
        (
            &["torn", "calls a", "results a", "user u", "says t"],
            "lost|calls a|results a=whole|user u|says t",
            &["1 damaged line", "1 answer was without"],
        ),
        (&["user u", "says s", "torn", "says t"], "user u|says s|lost|says t", &["1 damaged line", "1 answer was"]),
        (&["torn", "torn", "user u"], "user u", &["2 damaged lines were skipped (the first is line 1)"]),
    ] {
        check(log(lines), expect, repairs);
    }
}

#[test]
fn what_stands_in_a_line_besides_a_record_is_taken_out() {
    let (user, says) = (line("user u", 1), line("says t", 2));
    let broken = says.replace("\"t\"", "\"t\u{2028}\ru\"");
    let end = "the last line was torn off";
    for (log, expect, repairs) in [
        (format!("{user}\n{says}"), "user u|says t", &[][..]),
        (format!("{user}\r\n{says}\r\n"), "user u|says t", &[]),
        (format!("\u{feff}{user}\n\n{says}\n"), "user u|says t", &[]),
        (format!("{user}\n{says}\n\0\0\0\0"), "user u|says t", &[]),
        (format!("{user}\n\0\0\0\0{says}\n"), "user u|says t", &[]),
        (format!("{user}\n{}\n", says.replace("\"t\"", "\"t\0\0\"")), "user u|says t", &["1 damaged line was mended"]),
        (format!("{user}\n{broken}\n"), "user u|says t\u{2028}\ru", &["1 damaged line was mended"]),
        (format!("{user}\r{says}\n"), "user u|says t", &["1 damaged line was mended"]),
        (
            format!("{user}\n{{\"type\":\"text\",\"conte{says}\n"),
            "user u|says t",
            &["1 damaged line was skipped", "1 damaged line was mended"],
        ),
        (format!("{user}\n{}", &says[..says.len() - 5]), "user u", &[end]),
        (format!("{user}\n{user}\n{says}\n{user}\n{says}\n"), "user u|says t", &["3 repeated lines were"]),
        (format!("{user}\n{}\n", line("says s", 1)), "user u|says s", &[]),
        (
            format!(
                "{user}\n{{\"seq\":2,\"content\":[{{\"type\":\"text\",\"text\":\"t\"}}],\"role\":\"assistant\",\"type\":\"message\"}}\n"
            ),
            "user u|says t",
            &[],
        ),
    ] {
        check(log, expect, repairs);
    }
    let bad = [user.as_bytes(), b"\n", &says.replace("\"t\"", "\"#\"").into_bytes()].concat();
    let bad: Vec<u8> = bad.into_iter().map(|b| if b == b'#' { 0xff } else { b }).collect();
    check(bad, "user u|says \u{fffd}", &["1 damaged line was mended"]);
}

#[test]
fn compaction_and_rewinds_change_what_the_conversation_is() {
    let two = ["input u", "user u", "says s", "input v", "user v", "says t"];
    for (more, expect, turns) in [
        (&["compact 2 sum"][..], "user sum|user v|says t", "u v"),
        (&["compact 0 sum"], "user sum", "u v"),
        (&["compact 9 sum"], "user sum|user u|says s|user v|says t", "u v"),
        (&[r#"{"type":"context_update","kept":0}"#], "user u|says s|user v|says t", "u v"),
        (&["rewind 4"], "user u|says s", "u"),
        (&["rewind 1"], "", ""),
        (&["compact 0 sum", "rewind 4"], "user u|says s", "u"),
        (&["compact 0 sum", "input w", "user w", "rewind 8", "input x", "user x"], "user sum|user x", "u v x"),
        (&["rewind 4", "input w", "user w", "rewind 1", "input x", "user x"], "user x", "x"),
        (&["rewind 4", "rewind 4"], "user u|says s", "u"),
    ] {
        let loaded = load(log(&[&two[..], more].concat()).as_bytes());
        assert_eq!(all(&loaded), expect, "{more:?}");
        let starts: Vec<_> = loaded.turn_starts.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!((starts.join(" "), loaded.turns), (turns.into(), starts.len() as u64), "{more:?}");
        assert_eq!(loaded.repairs, [""; 0], "{more:?}");
    }
    check(log(&["user u", "calls a", "results a", "compact 1 sum"]), "user sum", &["1 result was without"]);
    check(log(&["user u", "calls a", "compact 1 sum", "results a"]), "user sum|calls a|results a=whole", &[]);
}

#[test]
fn all_that_was_said_is_there_for_who_wants_it() {
    let lines = ["user u", "calls a", "compact 1 sum", "results a", "says s", "user v"];
    let all_of_it = read_all(Cursor::new(log(&lines))).unwrap();
    assert_eq!(all(&all_of_it), "user u|calls a|results a=whole|user sum|says s|user v");
    assert_eq!(all_of_it.repairs, [""; 0]);
}

#[test]
fn the_rest_of_a_session_is_loaded_too() {
    let usage = r#"{"type":"usage","kind":"agent","input_tokens":5,"output_tokens":2,"cache_read_input_tokens":3,"total_input_tokens":50,"total_output_tokens":20,"agent_request_count":4}"#;
    let newer = r#"{"type":"usage","kind":"compact","input_tokens":9,"total_input_tokens":59,"total_cache_read_tokens":30,"total_cache_creation_tokens":7,"total_cost":0.5}"#;
    let long = format!("input {}", "é".repeat(300));
    let loaded = load(
        log(&[
            r#"{"type":"session_start","version":1,"cwd":"here"}"#,
            r#"{"type":"session_name","name":"one"}"#,
            &long,
            usage,
            newer,
            r#"{"type":"session_name","name":"two"}"#,
            r#"{"type":"from_the_future","seq":3}"#,
        ])
        .as_bytes(),
    );
    assert_eq!((loaded.name.as_deref(), loaded.cwd.as_deref(), loaded.seq), (Some("two"), Some("here"), 7));
    let Usage { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens } =
        loaded.usage.total;
    assert_eq!((input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens), (59, 20, 30, 7));
    assert_eq!((loaded.usage.last.input_tokens, loaded.usage.requests, loaded.usage.cost), (5, 4, Some(0.5)));
    assert_eq!(loaded.turn_starts, [(3, "é".repeat(200))]);
    let earlier = load(log(&["user u", usage, usage]).as_bytes());
    assert_eq!((earlier.usage.total.cache_read_input_tokens, earlier.usage.cost), (6, None));
}

#[test]
fn what_is_no_session_of_ours_is_refused() {
    let refused = |log: &str| read(Cursor::new(log)).unwrap_err().to_string();
    assert!(refused(&log(&[r#"{"type":"session_start","version":999}"#, "user u"])).contains("version 999"));
    for none in ["", "roses are red\n", "{\"type\":\"message\",\"role\":\"user\"}\n", "\0\0\0"] {
        assert_eq!(refused(none), "it has no line of a log", "{none:?}");
    }
}

#[test]
fn much_damage_is_told_in_few_lines() {
    let log = (0..5000).map(|n| format!("{{broken {n}\n")).collect::<String>() + &log(&["user u"]);
    let loaded = load(log.as_bytes());
    assert_eq!(loaded.repairs, ["5000 damaged lines were skipped (the first is line 1)"]);
}

/// A turn: its prompt, the numbers of calls in its answers, its last words.
type Turn = (String, Vec<usize>, String);

fn turn() -> impl Strategy<Value = Turn> {
    let text = || "[a-z\"\\\\{}\u{2028}é\n ]{1,12}";
    (text(), prop::collection::vec(1..4usize, 0..3), text())
}

/// The lines of turns as the journal writes them, in short form.
fn written(turns: &[Turn], first_call: &mut usize) -> Vec<String> {
    let mut lines = vec![r#"{"type":"session_start","version":1,"session_id":"s","cwd":"c"}"#.to_owned()];
    for (prompt, answers, last) in turns {
        lines.extend([format!("input {prompt}"), format!("user {prompt}")]);
        for calls in answers {
            let ids: Vec<String> = (0..*calls).map(|n| format!("c{}", *first_call + n)).collect();
            *first_call += calls;
            lines.extend([r#"{"type":"text","content":"w"}"#.to_owned(), format!("calls {}", ids.join(" "))]);
            lines.extend(ids.iter().map(|id| format!("line {id}")));
            lines.push(format!("results {}", ids.join(" ")));
        }
        lines.extend([format!("says {last}"), r#"{"type":"stop","reason":"end_turn"}"#.to_owned()]);
    }
    lines
}

fn numbered(lines: &[String], after: u64) -> Vec<Vec<u8>> {
    (after + 1..).zip(lines).map(|(seq, short)| (line(short, seq) + "\n").into_bytes()).collect()
}

#[derive(Debug, Clone)]
enum Harm {
    Cut(prop::sample::Index),
    Remove(prop::sample::Index),
    Repeat(prop::sample::Index),
    Garble(prop::sample::Index, Vec<u8>),
    Nuls(prop::sample::Index, usize),
    Glue(prop::sample::Index),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        at().prop_map(Harm::Cut),
        at().prop_map(Harm::Remove),
        at().prop_map(Harm::Repeat),
        (at(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Harm::Garble(at, bytes)),
        (at(), 1..50usize).prop_map(|(at, length)| Harm::Nuls(at, length)),
        at().prop_map(Harm::Glue),
    ]
}

/// The damaged log, and how many of its lines stand whole before the damage.
fn harmed(mut lines: Vec<Vec<u8>>, harm: &Harm) -> (Vec<u8>, usize) {
    let within = |lines: &[Vec<u8>], at: &prop::sample::Index| {
        let at = at.index(lines.concat().len());
        let ends = lines.iter().scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        });
        (at, ends.take_while(|end| *end <= at).count())
    };
    let whole = match harm {
        Harm::Remove(at) | Harm::Repeat(at) | Harm::Glue(at) => at.index(lines.len()),
        Harm::Cut(at) | Harm::Garble(at, _) | Harm::Nuls(at, _) => {
            let (at, whole) = within(&lines, at);
            let mut log = lines.concat();
            match harm {
                Harm::Garble(_, bytes) => log.iter_mut().skip(at).zip(bytes).for_each(|(old, new)| *old = *new),
                Harm::Nuls(_, length) => log.iter_mut().skip(at).take(*length).for_each(|old| *old = 0),
                _ => log.truncate(at),
            }
            return (log, whole);
        }
    };
    match harm {
        Harm::Remove(_) => drop(lines.remove(whole)),
        Harm::Repeat(_) => lines.insert(whole, lines[whole].clone()),
        _ => drop(lines[whole].pop()),
    }
    (lines.concat(), whole)
}

/// What servers of all kinds want of a conversation; neighbours of one role are joined by those who speak to them.
pub(super) fn strict(messages: &[Message]) -> Result<(), String> {
    for (at, message) in messages.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &messages[before]);
        let fits = match (before, message) {
            (None, _) | (Some(Message::User(_)), Message::User(_)) => matches!(message, Message::User(_)),
            (Some(before), Message::Results(results)) => {
                let calls = before.calls().map(|call| &call.id);
                !results.is_empty() && calls.eq(results.iter().map(|result| &result.id))
            }
            (Some(before), Message::User(_)) => before.calls().next().is_none(),
            (Some(before), Message::Assistant(_)) => matches!(before, Message::User(_) | Message::Results(_)),
        };
        if !fits {
            return Err(format!("message {at}: {}", shown(message)));
        }
    }
    let open = messages.last().is_some_and(|last| last.calls().next().is_some());
    if open { Err("the last calls are open".into()) } else { Ok(()) }
}

pub(super) fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| serde_json::to_string(message).unwrap()).collect()
}

/// The messages of these lines.
fn messages_of(lines: &[String]) -> Vec<String> {
    let message = |short: &String| {
        let (kind, words) = short.split_once(' ')?;
        short_message(kind, words)
    };
    texts(&lines.iter().filter_map(message).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn a_whole_log_is_what_was_said(turns in prop::collection::vec(turn(), 1..5)) {
        let lines = written(&turns, &mut 0);
        let loaded = load(&numbered(&lines, 0).concat());
        prop_assert_eq!(texts(&loaded.messages), messages_of(&lines));
        prop_assert_eq!(loaded.repairs, Vec::<String>::new());
        prop_assert_eq!((loaded.seq, loaded.turns), (lines.len() as u64, turns.len() as u64));
    }

    #[test]
    fn a_damaged_log_keeps_what_was_whole(
        turns in prop::collection::vec(turn(), 1..4),
        harms in prop::collection::vec(harm(), 1..4),
        next in turn(),
    ) {
        let mut calls = 0;
        let lines = written(&turns, &mut calls);
        let (mut log, mut whole) = harmed(numbered(&lines, 0), &harms[0]);
        for harm in &harms[1..] {
            let lines = log.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
            if lines.is_empty() {
                break;
            }
            let again = harmed(lines, harm);
            (log, whole) = (again.0, whole.min(again.1));
        }
        let loaded = load(&log);
        prop_assert_eq!(strict(&loaded.messages), Ok(()));
        let (kept, before) = (texts(&loaded.messages), messages_of(&lines[..whole]));
        prop_assert!(kept.starts_with(&before), "{kept:#?}\nlacks some of\n{before:#?}");
        prop_assert!(loaded.repairs.len() < 10);

        if !log.ends_with(b"\n") {
            log.push(b'\n');
        }
        // Numbers end somewhere: what garbling made of one may be the last there is.
        let seq = loaded.seq.min(u64::MAX - 1000);
        log.extend(numbered(&written(&[next], &mut calls), seq).concat());
        let later = load(&log);
        prop_assert_eq!(strict(&later.messages), Ok(()));
        prop_assert!(texts(&later.messages).starts_with(&kept), "{:#?}\nlacks some of\n{kept:#?}", texts(&later.messages));
    }

    #[test]
    fn any_bytes_are_loaded(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        prop_assert_eq!(strict(&load(&bytes).messages), Ok(()));
    }
}
