//! `--prompts`: many prompts, one result each, also where a run is cut off.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::model::{Answer, bash, conversation, says};
use crate::run::{Test, until};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn kept(test: &Test) -> Vec<Value> {
    let text = fs::read_to_string(test.work().join("prompts.results.jsonl")).unwrap_or_default();
    // The last line may be in the making.
    lines(&text[..text.rfind('\n').map_or(0, |end| end + 1)])
}

fn finished(kept: &[Value]) -> Vec<&Value> {
    kept.iter().filter(|line| !["started", "cancelled"].contains(&line["status"].as_str().unwrap())).collect()
}

fn prompts(texts: impl IntoIterator<Item = Value>) -> String {
    texts.into_iter().map(|text| text.to_string() + "\n").collect()
}

const BATCH: [&str; 2] = ["--prompts", "prompts"];

#[test]
fn each_prompt_has_one_result_although_the_run_is_killed() {
    let answers = (0..7).map(|n| says(&format!("Answer {n}."))).chain((0..4).map(|_| Answer::Stalls("Half".into())));
    let test = Test::new(answers).file("prompts", prompts((1..=20).map(|n| json!(format!("task {n}")))));
    let test = test.args(BATCH);
    let mut run = test.start();
    until("four are stuck", || finished(&kept(&test)).len() == 7 && test.model.asked().len() == 11);
    run.child.kill().unwrap();
    run.wait();

    let test = test.answers((0..13).map(|_| says("Done.")));
    let out = test.run().code(0);
    let kept = kept(&test);
    let mut ids: Vec<&str> = finished(&kept).iter().map(|line| line["id"].as_str().unwrap()).collect();
    ids.sort_by_key(|id| id.parse::<u32>().unwrap());
    let expect: Vec<String> = (1..=20).map(|n| n.to_string()).collect();
    assert_eq!(ids, expect);
    assert!(finished(&kept).iter().all(|line| line["status"] == "ok"));
    assert_eq!(lines(&out.stdout).len(), 13, "what has a result is not run again");

    // Those that were cut off went on in their sessions.
    let mut sessions = BTreeMap::<&str, Vec<&str>>::new();
    for line in kept.iter().filter(|line| line["status"] == "started") {
        sessions.entry(line["id"].as_str().unwrap()).or_default().push(line["session"].as_str().unwrap());
    }
    let again: Vec<_> = sessions.values().filter(|all| all.len() == 2).collect();
    assert!(again.len() == 4 && again.iter().all(|all| all[0] == all[1]), "{sessions:?}");
    let asked = test.model.asked();
    let told: Vec<String> = asked[11..].iter().map(|request| conversation(request)[0].1.clone()).collect();
    assert!(told.iter().all(|text| text.starts_with("task ")), "{told:?}");
    assert_eq!(asked[11..].iter().filter(|request| conversation(request).len() > 1).count(), 4);
    test.run().code(0).stdout("");
}

#[test]
fn what_goes_wrong_is_a_result() {
    let refused = Answer::Http("401 Unauthorized", "application/json", r#"{"error":{"message":"bad key"}}"#.into());
    let test = Test::new([bash("echo made > made"), says("Made."), refused, bash("cat /etc/hostname"), says("No.")]);
    let file = [
        json!({"prompt": "one", "id": "a", "cwd": "sub"}).to_string(),
        "not a prompt".into(),
        json!({"prompt": "two", "id": 2}).to_string(),
        json!({"prompt": "nowhere", "id": "b", "cwd": "nope"}).to_string(),
        json!("three").to_string(),
    ];
    let test = test.file("prompts", file.join("\n")).file("sub/x", "").args(BATCH).args(["--jobs", "1"]);
    let out = test.run().code(1);
    let results = lines(&out.stdout);
    let told: Vec<String> = results.iter().map(|r| format!("{} {} {}", r["id"], r["status"], r["exit"])).collect();
    // A bad line has its result at once, whatever runs.
    let mut sorted = told.clone();
    sorted.sort();
    let expect =
        [r#""2" "failed" 1"#, r#""5" "blocked" 4"#, r#""a" "ok" 0"#, r#""b" "failed" 1"#, r#""line 2" "failed" 1"#];
    assert_eq!(sorted, expect, "{out:#?}");
    let by_id = |id: &str| results.iter().find(|r| r["id"] == id).unwrap();
    assert_eq!(by_id("a")["answer"], "Made.");
    assert_eq!(by_id("a")["usage"]["agent_request_count"], 2);
    assert!(test.work().join("sub/made").exists());
    assert!(by_id("line 2")["error"].as_str().unwrap().contains("line 2: it is no JSON"));
    assert!(by_id("2")["error"].as_str().unwrap().contains("bad key"));
    assert!(by_id("b")["error"].as_str().unwrap().contains("nope"));
    // Nothing is left to do, and it is still not all well.
    test.run().code(1).stdout("");
    assert_eq!(test.model.asked().len(), 5);
}

#[test]
fn an_interrupt_stops_in_order_and_the_next_run_goes_on() {
    let test = Test::new([Answer::Stalls("Half".into())]).file("prompts", prompts([json!("one"), json!("two")]));
    let test = test.args(BATCH).args(["--jobs", "1"]);
    let run = test.start();
    until("it works", || test.model.asked().len() == 1);
    kill_process(Pid::from_child(&run.child), Signal::INT).unwrap();
    let out = run.wait().code(130);
    let results = lines(&out.stdout);
    assert_eq!((results.len(), &results[0]["status"]), (1, &json!("cancelled")));
    let test = test.answers([says("One."), says("Two.")]);
    let answers: Vec<Value> = lines(&test.run().code(0).stdout).into_iter().map(|mut r| r["answer"].take()).collect();
    assert_eq!(answers, ["One.", "Two."]);
}

#[test]
fn prompts_come_through_a_pipe_with_a_model_of_their_own() {
    let test = Test::new([says("One.")]).args(["--prompts", "-", "--results", "kept"]);
    let test = test.stdin(prompts([json!({"prompt": "one", "id": "x", "model": "another"})]));
    let out = test.run().code(0);
    assert_eq!(lines(&out.stdout)[0]["id"], "x");
    assert_eq!(test.model.asked()[0]["model"], "another");
    assert_eq!(lines(&fs::read_to_string(test.work().join("kept")).unwrap()).len(), 2);
    Test::new([]).args(["--prompts", "nope"]).run().code(2).tells(&["nope"]);
    Test::new([]).args(["--prompts", "f", "and a prompt"]).run().code(2);
}
