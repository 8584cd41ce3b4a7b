//! Ctrl-C, Ctrl-D and signals at a terminal: what they stop, and what they leave behind.

use rustix::process::Signal;

use crate::model::{Answer, bash, conversation, says};
use crate::pty::{CTRL_C, CTRL_D, PROMPT, lives};
use crate::run::{Test, until};

#[test]
fn ctrl_c_clears_what_was_typed_and_twice_at_an_empty_prompt_quits() {
    let test = Test::new([]);
    let mut terminal = test.terminal();
    terminal.drafts("half a thought");
    terminal.types(CTRL_C);
    assert!(!terminal.sees(PROMPT).contains("quits"));
    terminal.types(CTRL_C);
    terminal.sees("Ctrl-C again or Ctrl-D quits");
    terminal.sees(PROMPT);
    terminal.types(CTRL_C);
    terminal.ends(130);
    assert!(test.model.asked().is_empty());
}

#[test]
fn a_line_between_two_ctrl_c_keeps_the_program() {
    let test = Test::new([says("Still here.")]);
    let mut terminal = test.terminal();
    terminal.sees(PROMPT);
    terminal.types(CTRL_C);
    terminal.sees("Ctrl-C again");
    terminal.enters("are you there");
    terminal.sees("Still here.");
    terminal.sees(PROMPT);
    terminal.types(CTRL_C);
    terminal.sees("Ctrl-C again");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
}

#[test]
fn ctrl_c_stops_a_running_turn_and_its_command() {
    let test = Test::new([bash("sleep 98.201"), says("Next turn.")]).args(["--permissions", "auto"]);
    let mut terminal = test.terminal();
    terminal.enters("go");
    until("the command runs", || lives("sleep 98.201"));
    terminal.types(CTRL_C);
    terminal.sees("stopped");
    terminal.sees(PROMPT);
    assert!(!lives("sleep 98.201"));
    terminal.types("again\r");
    terminal.sees("Next turn.");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
}

#[test]
fn ctrl_c_stops_a_model_that_does_not_answer() {
    let test = Test::new([Answer::Stalls("Half an answer".into()), says("Next turn.")]);
    let mut terminal = test.terminal();
    terminal.enters("go");
    terminal.sees("Half an answer");
    terminal.types(CTRL_C);
    terminal.sees("stopped");
    terminal.enters("again");
    terminal.sees("Next turn.");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
}

#[test]
fn ctrl_d_quits() {
    let test = Test::new([]).args(["--plain"]);
    let mut terminal = test.terminal();
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
}

#[test]
fn a_signal_at_the_prompt_ends_the_program() {
    for signal in [Signal::TERM, Signal::HUP] {
        let test = Test::new([]);
        let mut terminal = test.terminal();
        terminal.drafts("half a thought");
        terminal.signal(signal);
        terminal.ends(130);
    }
}

#[test]
fn an_interrupt_from_outside_at_the_prompt_counts_as_ctrl_c() {
    let test = Test::new([]);
    let mut terminal = test.terminal();
    terminal.sees(PROMPT);
    terminal.signal(Signal::INT);
    terminal.sees("Ctrl-C again or Ctrl-D quits");
    terminal.signal(Signal::INT);
    terminal.ends(130);
}

#[test]
fn another_size_of_the_window_does_no_harm() {
    let test = Test::new([says("Still here.")]);
    let mut terminal = test.terminal();
    terminal.drafts("are you");
    terminal.resizes(10, 40);
    terminal.types(" there\r");
    terminal.sees("Still here.");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
    assert_eq!(conversation(&test.model.asked()[0])[0].1, "are you there");
}

#[test]
fn ctrl_c_again_and_again_quits_whatever_runs() {
    let test = Test::new([bash("trap '' INT TERM; sleep 98.205")]).args(["--permissions", "allow"]);
    let mut terminal = test.terminal();
    terminal.enters("go");
    until("the command runs", || lives("sleep 98.205"));
    until("the program ends", || {
        terminal.types(CTRL_C);
        terminal.has_ended()
    });
    terminal.ends(130);
    until("the command is gone", || !lives("sleep 98.205"));
}

#[test]
fn a_signal_during_a_turn_ends_the_program_and_its_command() {
    for (signal, sleep) in [(Signal::TERM, "sleep 98.202"), (Signal::HUP, "sleep 98.203")] {
        let test = Test::new([bash(sleep)]).args(["--permissions", "auto"]);
        let mut terminal = test.terminal();
        terminal.enters("go");
        until("the command runs", || lives(sleep));
        terminal.signal(signal);
        terminal.ends(130);
        assert!(!lives(sleep), "{sleep} lives on");
    }
}

#[test]
fn a_signal_at_a_question_ends_the_program_and_runs_nothing() {
    let test = Test::new([bash("touch f"), says("Next.")]);
    let mut terminal = test.terminal();
    terminal.enters("go");
    terminal.sees("[a/s/r] ");
    terminal.signal(Signal::TERM);
    terminal.ends(130);
    assert!(!test.work().join("f").exists());
    assert_eq!(test.model.asked().len(), 1);
}

#[test]
fn what_a_command_left_behind_ends_with_the_program() {
    let test = Test::new([bash("sleep 98.204 & echo begun"), says("Done.")]).args(["--permissions", "auto"]);
    let mut terminal = test.terminal();
    terminal.enters("go");
    terminal.sees("Done.");
    terminal.sees(PROMPT);
    assert!(lives("sleep 98.204"));
    terminal.types(CTRL_D);
    terminal.ends(0);
    until("the command is gone", || !lives("sleep 98.204"));
}

#[test]
fn a_signal_during_the_first_prompt_ends_the_program_as_well() {
    let test = Test::new([bash("sleep 98.206")]).args(["-i", "go", "--permissions", "auto"]);
    let terminal = test.terminal();
    until("the command runs", || lives("sleep 98.206"));
    terminal.signal(Signal::TERM);
    terminal.ends(130);
    assert!(!lives("sleep 98.206"));
    let test = Test::new([bash("touch f")]).args(["-i", "go", "--permissions", "ask"]);
    let mut terminal = test.terminal();
    terminal.sees("[a/s/r] ");
    terminal.signal(Signal::TERM);
    terminal.ends(130);
    assert!(!test.work().join("f").exists());
}
