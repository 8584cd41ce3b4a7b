//! `agent PROMPT` on pipes: what goes where, the forms of the output, and the exit codes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::model::{Answer, all, bash, calls, conversation, last_content, says};
use crate::pty::lives;
use crate::run::{Test, ended, until};

#[test]
fn the_answer_alone_is_on_stdout() {
    let words =
        Answer::SaysAndCalls("I look first.".into(), vec![("bash".into(), r#"{"command":"echo seen"}"#.into())]);
    let out = Test::new([words, says("All is well.")]).args(["look around"]).run().code(0);
    let out = out.tells(&["I look first.", "🛠️  bash: echo seen\n    seen\n", "⚙ 1 command(s)", "Using "]);
    out.conceals(&["\u{1b}", "All is well"]).stdout("All is well.\n");
}

#[test]
fn the_prompt_comes_from_the_command_line_and_from_a_pipe() {
    for (args, stdin, expect) in [
        (vec!["say hi"], "", "say hi"),
        (vec![], "from the pipe\n", "from the pipe\n"),
        (vec!["sum this up"], "a\nb\n", "sum this up\n\na\nb\n"),
        (vec!["two", "words"], " \n", "two words"),
    ] {
        let test = Test::new([says("hi")]).args(args).stdin(stdin);
        test.run().code(0).stdout("hi\n");
        assert_eq!(conversation(&test.model.asked()[0]), [("user".to_owned(), expect.to_owned())]);
    }
}

#[test]
fn json_is_one_object_on_stdout() {
    let write = calls("write_file", &json!({"path": "new.txt", "content": "x"}));
    let answers = [write, bash("true"), says("Written.")];
    let test = Test::new(answers).args(["go", "--output", "json", "--set", "editTools=true"]);
    let object = test.run().code(0).json();
    assert_eq!(object["answer"], "Written.");
    assert_eq!(object["stop_reason"], "end_turn");
    assert_eq!(object["error"], Value::Null);
    assert_eq!(object["counters"], json!({"commands": 1, "file_ops": 1, "skills": 0}));
    assert_eq!(object["files_changed"], json!([test.work().join("new.txt")]));
    let usage = &object["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(33), &json!(21)));
    assert_eq!(usage["agent_request_count"], 3);
    let log = test.log();
    let id = log.parent().unwrap().file_name().unwrap().to_str().unwrap();
    assert_eq!(object["session_id"], id);
}

#[test]
fn json_tells_a_failure_too() {
    let refused = Answer::Http("401 Unauthorized", "application/json", r#"{"error":{"message":"bad key"}}"#.into());
    let object = Test::new([refused]).args(["go", "--output", "json"]).run().code(1).json();
    assert_eq!((&object["answer"], &object["stop_reason"]), (&json!(""), &json!("error")));
    assert!(object["error"].as_str().unwrap().contains("bad key"), "{object}");
    let blocked = [bash("cat /etc/hostname"), says("no")];
    let object = Test::new(blocked).args(["go", "--output", "json"]).run().code(4).json();
    assert_eq!((&object["answer"], &object["stop_reason"]), (&json!("no"), &json!("blocked")));
}

#[test]
fn stream_json_is_the_log() {
    let test = Test::new([bash("echo ü; exit 3"), says("Done now.")]).args(["go", "--output", "stream-json"]);
    let out = test.run().code(0);
    assert_eq!(out.stdout.as_bytes(), fs::read(test.log()).unwrap());
    let lines: Vec<Value> = out.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (line, seq) in lines.iter().zip(1..) {
        assert_eq!(line["seq"], seq, "{line}");
        assert!(line["type"].is_string(), "{line}");
        let ts = line["ts"].as_str().unwrap();
        assert!(ts.ends_with('Z') && ts.parse::<jiff::Timestamp>().is_ok(), "{line}");
    }
    let types: Vec<&str> = lines.iter().filter_map(|l| l["type"].as_str()).filter(|t| *t != "message").collect();
    for wanted in ["session_start", "user_input", "text", "tool_call", "tool_result", "usage", "stop"] {
        assert!(types.contains(&wanted), "{wanted} is not among {types:?}");
    }
    let said: String = lines.iter().filter(|l| l["type"] == "text").filter_map(|l| l["content"].as_str()).collect();
    assert_eq!(said, "Done now.");
}

#[test]
fn exit_codes_tell_how_it_ended() {
    let again = || std::iter::repeat_with(|| bash("echo again")).take(12);
    let refuse = || Answer::Http("401 Unauthorized", "application/json", r#"{"error":{"message":"bad key"}}"#.into());
    for (answers, args, code, told) in [
        (vec![says("ok")], vec![], 0, ""),
        (vec![refuse()], vec![], 1, "OPENAI_API_KEY"),
        (vec![], vec!["--no-such-option"], 2, "--no-such-option"),
        (vec![], vec!["--set", "nope=1"], 2, "nope"),
        (again().collect(), vec!["--max-turns", "2"], 3, "maxTurns"),
        (again().collect(), vec!["--set", "loopLimit=4"], 3, "loopLimit"),
        (
            vec![bash("cat /etc/hostname"), says("no")],
            vec![],
            4,
            "blocked by bash safety policy (required=4000 allowed=0467;",
        ),
        (vec![bash("echo x"), says("no")], vec!["--permissions", "ask"], 4, "[command rejected by the user]"),
        (vec![bash("cat /etc/hostname"), bash("echo fine"), says("ok")], vec![], 0, "blocked"),
    ] {
        let out = Test::new(answers).args(["go"]).args(args.clone()).run();
        assert_eq!(out.code, Some(code), "{args:?} {out:#?}");
        out.tells(&[told]);
    }
}

#[test]
fn turns_and_equal_calls_are_counted_as_told() {
    let test = Test::new((0..9).map(|_| bash("echo again"))).args(["go", "--set", "loopLimit=4"]);
    test.run().code(3);
    assert_eq!(test.model.asked().len(), 4);
    let test = Test::new((0..9).map(|n| bash(&format!("echo {n}")))).args(["go", "--max-turns", "2"]);
    test.run().code(3);
    assert_eq!(test.model.asked().len(), 2);
}

#[test]
fn an_interrupt_ends_the_turn_and_what_it_started() {
    for (signal, sleep) in
        [(Signal::INT, "sleep 98.101"), (Signal::TERM, "sleep 98.102"), (Signal::HUP, "sleep 98.103")]
    {
        let test = Test::new([bash(&format!("echo begun; {sleep}; echo over"))]).args(["go"]);
        let run = test.start();
        until("the command runs", || lives(sleep));
        kill_process(Pid::from_child(&run.child), signal).unwrap();
        let out = run.wait().code(130).stdout("");
        assert!(!lives(sleep), "{sleep} lives on");
        out.conceals(&["panicked"]);
        let log = fs::read_to_string(test.log()).unwrap();
        assert!(log.contains(r#""reason":"cancelled""#), "{log}");
    }
}

#[test]
fn an_interrupt_while_the_model_speaks_keeps_what_was_said() {
    let test = Test::new([Answer::Stalls("Half an answer".into())]).args(["go", "--output", "stream-json"]);
    let mut command = test.command();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().contains("Half an answer")));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(lines.any(|line| line.unwrap().contains("cancelled")));
    assert_eq!(ended(&mut child), Some(130));
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    for form in ["text", "json", "stream-json"] {
        let test = Test::new([bash("sleep 0.2"), says("one\ntwo\nthree\n")]).args(["go", "--output", form]);
        let mut child =
            test.command().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        ended(&mut child);
        let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
        assert!(!said.contains("panicked") && !said.contains("error"), "{form}: {said}");
    }
}

#[test]
fn several_calls_of_one_answer_are_answered_in_their_order() {
    let answers = [all(&[("bash", json!({"command": "echo 1"})), ("bash", json!({"command": "echo 2"}))]), says("ok")];
    let test = Test::new(answers).args(["go"]);
    test.run().code(0);
    let told: Vec<String> =
        conversation(&test.model.asked()[1]).into_iter().filter(|m| m.0 == "tool").map(|m| m.1).collect();
    assert_eq!(told, ["1\n", "2\n"]);
}

#[test]
fn a_command_gets_neither_the_keys_nor_a_terminal() {
    let command = r#"echo "[$OPENAI_API_KEY]"; cat; tty"#;
    let test = Test::new([bash(command), says("ok")]).args(["go"]).stdin("piped");
    test.run().code(0);
    assert_eq!(last_content(&test.model.asked()[1]).lines().next(), Some("[]"));
    assert!(last_content(&test.model.asked()[1]).contains("not a tty"));
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    for form in ["text", "json", "stream-json"] {
        let test = Test::new([says("The answer.")]).args(["go", "--output", form]);
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let out = test.command().stdin(Stdio::null()).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{form}: {said}");
        assert!(said.contains("error: writing ") && said.contains("No space left"), "{form}: {said}");
    }
}

#[test]
fn a_silent_pipe_is_told_and_can_be_left() {
    let test = Test::new([]).args(["go"]);
    let mut child = test.command().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let _open = child.stdin.take();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "reading the prompt from stdin…");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(ended(&mut child), Some(130));
    assert!(test.model.asked().is_empty());
}

#[test]
fn a_prompt_without_end_is_refused() {
    let test = Test::new([]).args(["go"]).stdin(vec![b'x'; (16 << 20) + 1]);
    test.run().code(2).stdout("").tells(&["longer than 16 MiB"]);
    assert!(test.model.asked().is_empty() && test.logs().is_empty());
}

#[test]
fn money_is_counted_limited_and_not_guessed() {
    let prices = "models: {m: {cost: {input: 1000, output: 1000}}}\n";
    // Each answer has 11 tokens sent and 7 received: 18 tenths of a cent.
    let test = Test::new([bash("echo 1"), bash("echo 2"), says("done")]).settings(prices);
    let test = test.args(["--model", "m", "--output", "json", "--max-cost", "0.03", "--permissions", "allow", "go"]);
    let told = test.run().code(3).json();
    assert_eq!((told["stop_reason"].as_str(), test.model.asked().len()), (Some("max_cost"), 2), "{told:#}");
    assert!((told["usage"]["total_cost"].as_f64().unwrap() - 0.036).abs() < 1e-9, "{told:#}");

    let test = test.again(["--model", "other", "--max-cost", "1", "go"]);
    test.run().code(2).tells(&["maxCost cannot be held: the prices of other are not known", "models: {other: {cost:"]);

    let test = test.again(["--model", "other", "--output", "json", "go"]);
    let told = test.run().code(0).json();
    assert!(told["usage"]["total_cost"].is_null(), "unknown is not 0: {told:#}");
}
