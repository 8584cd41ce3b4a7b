//! Writes logs like those of long sessions, of any size.

use std::io::{self, Write};

/// A line of words that differ from each other.
fn words(seed: usize, count: usize) -> String {
    (0..count).map(|n| format!("word{} ", (seed * 31 + n * 7) % 1009)).collect()
}

/// The lines of one turn with this many calls, without their numbers.
fn turn(number: usize, calls: usize) -> Vec<String> {
    let prompt = format!("Please look at part {number}. {}", words(number, 30));
    let mut lines = vec![
        format!(r#"{{"type":"user_input","content":"{prompt}""#),
        format!(r#"{{"type":"message","role":"user","content":[{{"type":"text","text":"{prompt}"}}]"#),
    ];
    for call in 0..calls {
        let id = format!("call_{number}_{call}");
        let (said, read) = (words(call, 40), words(number + call, 400).replace("word1", "\\n\\\"é"));
        lines.extend(
            said.as_bytes()
                .chunks(100)
                .map(|piece| format!(r#"{{"type":"text","content":"{}""#, String::from_utf8_lossy(piece))),
        );
        lines.extend([
            format!(r#"{{"type":"usage","kind":"agent","input_tokens":{call},"output_tokens":9,"cache_read_input_tokens":7,"cache_creation_input_tokens":0,"total_input_tokens":{number},"total_output_tokens":{call},"agent_request_count":{number}"#),
            format!(r#"{{"type":"message","role":"assistant","content":[{{"type":"text","text":"{said}"}},{{"type":"call","id":"{id}","name":"Read","arguments":"{{\"path\":\"src/{call}.rs\"}}"}}]"#),
            format!(r#"{{"type":"tool_call","name":"Read","id":"{id}","input":{{"path":"src/{call}.rs"}}"#),
            format!(r#"{{"type":"tool_result","tool_use_id":"{id}","name":"Read","content":"{read}","status":"ok""#),
            format!(r#"{{"type":"message","role":"results","content":[{{"id":"{id}","name":"Read","failed":false,"parts":[{{"type":"text","text":"{read}"}}]}}]"#),
        ]);
    }
    lines.push(r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"done"}]"#.into());
    lines.push(r#"{"type":"stop","reason":"end_turn""#.into());
    lines
}

/// Writes a log of at least this many bytes. `compacted`: in its middle the conversation became a summary.
///
/// # Errors
/// Those of the target.
pub fn write(target: &mut impl Write, size: usize, compacted: bool) -> io::Result<()> {
    let (mut written, mut seq) = (0, 0);
    let mut line = |target: &mut dyn Write, line: &str| -> io::Result<usize> {
        seq += 1;
        let line = format!("{line},\"ts\":\"2026-11-30T20:18:03.123456789Z\",\"seq\":{seq}}}\n");
        target.write_all(line.as_bytes())?;
        Ok(line.len())
    };
    written += line(target, r#"{"type":"session_start","session_id":"s","version":1,"cwd":"/w""#)?;
    let mut due = compacted;
    for number in 0.. {
        if written >= size {
            break;
        }
        for text in turn(number, 20) {
            written += line(target, &text)?;
        }
        if due && written >= size / 2 {
            due = false;
            let update = r#"{"type":"context_update","kind":"compact","trigger":"auto","kept":1,"content":[{"type":"text","text":"The summary."}]"#;
            written += line(target, update)?;
        }
    }
    Ok(())
}
