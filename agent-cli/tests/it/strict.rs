//! What strict servers demand of a request: those of OpenAI's chat form, and Anthropic's.

use std::collections::HashSet;

use serde_json::Value;

/// Checks a request in the chat form: a system prompt first, each call answered once and right behind it, nothing empty.
///
/// # Errors
/// What is wrong, and where.
pub fn chat(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("no messages")?;
    let mut open: HashSet<String> = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        let wrong = |what: &str| Err(format!("message {at}: {what}"));
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !open.is_empty() {
            return wrong(&format!("the calls {open:?} have no result before it"));
        }
        match role {
            "system" | "developer" if at == 0 => {}
            "user" if !is_empty(&message["content"]) => {}
            "assistant" => {
                let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                if calls.is_empty() && is_empty(&message["content"]) {
                    return wrong("an empty answer");
                }
                for call in calls {
                    object(call["function"]["arguments"].as_str().unwrap_or_default())?;
                    if !open.insert(text(&call["id"])) {
                        return wrong("two calls of the same id");
                    }
                }
            }
            "tool" if open.remove(&text(&message["tool_call_id"])) => {}
            _ => return wrong(&format!("a message of `{role}` has no place here: {message}")),
        }
    }
    match messages.last().map(|last| text(&last["role"])).as_deref() {
        Some("user" | "tool") if open.is_empty() => Ok(()),
        _ => Err(format!("the last message asks for nothing, or calls are open: {open:?}")),
    }
}

/// Checks a request in Anthropic's form: turns alternate, each call is answered at the beginning of the next message,
/// nothing is empty, at most four marks of the cache.
///
/// # Errors
/// What is wrong, and where.
pub fn messages(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("no messages")?;
    let mut open: HashSet<String> = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        let wrong = |what: &str| Err(format!("message {at}: {what} in {message}"));
        if message["role"] != ["user", "assistant"][at % 2] {
            return wrong("the turns do not alternate, or the first is not the user's");
        }
        let blocks = message["content"].as_array().ok_or_else(|| format!("message {at}: no blocks"))?;
        if blocks.is_empty() {
            return wrong("no blocks");
        }
        let mut answered = false;
        for block in blocks {
            match block["type"].as_str().unwrap_or_default() {
                "text" if text(&block["text"]).trim().is_empty() => return wrong("an empty text"),
                "tool_use" if !block["input"].is_object() => return wrong("an input that is no object"),
                "tool_use" if !open.insert(text(&block["id"])) => return wrong("two calls of the same id"),
                "tool_result" if answered => return wrong("a result behind a text"),
                "tool_result" if !open.remove(&text(&block["tool_use_id"])) => return wrong("a result without a call"),
                "tool_use" | "tool_result" => {}
                _ => answered = true,
            }
        }
        if message["role"] == "user" && !open.is_empty() {
            return wrong(&format!("the calls {open:?} have no result"));
        }
    }
    if messages.last().is_none_or(|last| last["role"] != "user") {
        return Err("the last message is not the user's".into());
    }
    let marks = body.to_string().matches("cache_control").count();
    if marks <= 4 { Ok(()) } else { Err(format!("{marks} marks of the cache")) }
}

fn object(arguments: &str) -> Result<(), String> {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(_)) => Ok(()),
        _ => Err(format!("arguments that are no object: {arguments}")),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn is_empty(content: &Value) -> bool {
    match content {
        Value::String(text) => text.is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => true,
    }
}

#[test]
fn what_servers_refuse_is_refused() {
    use serde_json::json;
    let user = json!({"role": "user", "content": "go"});
    let call =
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": ""});
    for (list, fine) in [
        (vec![&user, &call, &result], true),
        (vec![&user, &call, &result, &user], true),
        (vec![&user, &call], false),
        (vec![&user, &call, &user], false),
        (vec![&user, &result], false),
        (vec![&user, &call, &result, &result], false),
        (vec![&json!({"role": "user", "content": ""})], false),
        (vec![&user, &json!({"role": "assistant", "content": ""}), &user], false),
    ] {
        assert_eq!(chat(&json!({"messages": list})).is_ok(), fine, "{list:?}");
    }
    let user = json!({"role": "user", "content": [{"type": "text", "text": "go"}]});
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": {}}]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]});
    let late = json!({"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "tool_result", "tool_use_id": "a"}]});
    for (list, fine) in [
        (vec![&user, &call, &result], true),
        (vec![&user, &call, &late], false),
        (vec![&user, &call, &user], false),
        (vec![&user, &call], false),
        (vec![&user, &user], false),
        (vec![&result], false),
        (vec![&user, &json!({"role": "assistant", "content": [{"type": "text", "text": " "}]}), &user], false),
    ] {
        assert_eq!(messages(&json!({"messages": list})).is_ok(), fine, "{list:?}");
    }
}
