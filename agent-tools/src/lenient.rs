//! Mends near-miss arguments by the schema before they are decoded: small models mistype.
//!
//! `"3"` and `3.0` for 3, `"true"` for true, null for a value that may be left out, one object or a JSON text for a list.
//! What cannot be mended is answered with the name of the field.

use serde_json::{Map, Number, Value};

use crate::error::ToolError;

/// Reads the arguments of a call, mends them, fills in defaults and sorts the keys.
///
/// # Errors
/// The text is no JSON object, a required field is missing, a field has a wrong type.
pub(crate) fn mend(tool: &str, schema: &Value, arguments: &str) -> Result<Value, ToolError> {
    let object = parse(tool, arguments)?;
    let mended = object_by(schema, object).map_err(|problem| {
        ToolError::new(format!(
            "invalid arguments for {tool}: {problem}. Send the call again with corrected arguments."
        ))
    })?;
    Ok(Value::Object(mended))
}

fn parse(tool: &str, arguments: &str) -> Result<Map<String, Value>, ToolError> {
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(Value::String(inner)) if inner.trim_start().starts_with('{') => parse(tool, &inner),
        Ok(other) => {
            Err(ToolError::new(format!("invalid arguments for {tool}: expected a JSON object, got {}", kind(&other))))
        }
        Err(e) => Err(ToolError::new(format!(
            "invalid arguments for {tool}: not valid JSON ({e}). Nothing was done. Send the call again with complete, valid JSON."
        ))
        .because(e)),
    }
}

fn object_by(schema: &Value, mut object: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required: Vec<&str> =
        schema["required"].as_array().map(|names| names.iter().filter_map(Value::as_str).collect()).unwrap_or_default();
    let mut mended = Map::new();
    let mut names: Vec<&String> = properties.keys().collect();
    names.sort_unstable();
    for name in names {
        let property = &properties[name];
        let given = object.remove(name).filter(|v| !v.is_null() || takes(property, "null"));
        match given {
            Some(value) => {
                mended
                    .insert(name.clone(), value_by(property, value).map_err(|problem| format!("`{name}` {problem}"))?);
            }
            None if required.contains(&name.as_str()) => {
                let least = if property["minItems"].as_u64() > Some(0) { ": at least one is needed" } else { "" };
                return Err(format!("`{name}` is missing; it is required{least}"));
            }
            None => {
                if let Some(default) = property.get("default") {
                    mended.insert(name.clone(), default.clone());
                }
            }
        }
    }
    // What the schema does not know is kept where it lets itself be extended, and else of no effect.
    if properties.is_empty() {
        mended.extend(object);
        mended.sort_keys();
    }
    Ok(mended)
}

fn value_by(schema: &Value, value: Value) -> Result<Value, String> {
    let fits = |name| takes(schema, name);
    match value {
        Value::String(text) if !fits("string") => from_text(schema, text),
        Value::Number(number) if fits("integer") => integer(schema, &number),
        Value::Number(number) if !fits("number") && fits("string") => Ok(Value::String(number.to_string())),
        Value::Bool(flag) if !fits("boolean") && fits("string") => Ok(Value::String(flag.to_string())),
        Value::Array(items) if fits("array") => items
            .into_iter()
            .enumerate()
            .map(|(i, item)| value_by(&schema["items"], item).map_err(|problem| format!("[{i}] {problem}")))
            .collect::<Result<_, _>>()
            .map(Value::Array),
        Value::Object(object) if fits("object") => object_by(schema, object).map(Value::Object),
        single @ Value::Object(_) if fits("array") => value_by(schema, Value::Array(vec![single])),
        value if fits(kind(&value)) || value.is_number() && fits("number") => Ok(value),
        value => Err(wrong(schema, &value)),
    }
}

fn from_text(schema: &Value, text: String) -> Result<Value, String> {
    let trimmed = text.trim();
    let read = |name| takes(schema, name);
    let mended = match trimmed {
        "true" | "True" if read("boolean") => Some(Value::Bool(true)),
        "false" | "False" if read("boolean") => Some(Value::Bool(false)),
        "" if read("integer") || read("number") || read("boolean") => schema.get("default").cloned(),
        _ if read("integer") || read("number") => trimmed.parse::<Number>().ok().map(Value::Number),
        _ if read("array") || read("object") => serde_json::from_str::<Value>(trimmed).ok().filter(|v| !v.is_string()),
        _ => None,
    };
    match mended {
        Some(value) => value_by(schema, value),
        None => Err(wrong(schema, &Value::String(text))),
    }
}

fn integer(schema: &Value, number: &Number) -> Result<Value, String> {
    if number.is_i64() {
        return Ok(Value::Number(number.clone()));
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    if float.fract() != 0.0 {
        return Err(format!("must be a whole number, got {number}"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole and within range")]
    if float.abs() < 2f64.powi(63) {
        return Ok(Value::from(float as i64));
    }
    let least = schema["minimum"].as_i64().unwrap_or(i64::MIN);
    let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
    Err(format!("must be between {least} and {most}, got {number}"))
}

/// Whether a schema takes values of this type; one without a type takes all.
fn takes(schema: &Value, name: &str) -> bool {
    match &schema["type"] {
        Value::String(one) => one == name,
        Value::Array(several) => several.iter().any(|t| t == name),
        _ => true,
    }
}

fn wrong(schema: &Value, value: &Value) -> String {
    let wanted = match &schema["type"] {
        Value::String(one) => one.clone(),
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "something else".into(),
    };
    format!("must be of type {wanted}, got {}", kind(value))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"},
            "start": {"type": "integer", "default": 0},
            "deep": {"type": "boolean", "default": false},
            "edits": {"type": "array", "items": {"type": "object", "required": ["old"], "properties": {"old": {"type": "string"}}}},
        }})
    }

    #[test]
    fn near_misses_are_mended_and_others_named() {
        for (given, expect) in [
            (r#"{"path":"a","start":"3"}"#, r#"{"deep":false,"path":"a","start":3}"#),
            (r#"{"start":3.0,"path":"a","deep":"true"}"#, r#"{"deep":true,"path":"a","start":3}"#),
            (r#"{"path":"a","start":null,"deep":null}"#, r#"{"deep":false,"path":"a","start":0}"#),
            (r#"{"path":7}"#, r#"{"deep":false,"path":"7","start":0}"#),
            (
                r#"{"path":"a","edits":"[{\"old\":\"x\"}]"}"#,
                r#"{"deep":false,"edits":[{"old":"x"}],"path":"a","start":0}"#,
            ),
            (r#"{"path":"a","edits":{"old":"x"}}"#, r#"{"deep":false,"edits":[{"old":"x"}],"path":"a","start":0}"#),
            (r#"{"path":"a","unknown":1}"#, r#"{"deep":false,"path":"a","start":0}"#),
            (r#"{"path":"a","start":-1}"#, r#"{"deep":false,"path":"a","start":-1}"#),
            (r#""{\"path\":\"a\"}""#, r#"{"deep":false,"path":"a","start":0}"#),
            ("", "`path` is missing; it is required"),
            ("{}", "`path` is missing; it is required"),
            (r#"{"path":["a"]}"#, "`path` must be of type string, got array"),
            (r#"{"path":"a","start":"x"}"#, "`start` must be of type integer, got string"),
            (r#"{"path":"a","start":1.5}"#, "`start` must be a whole number, got 1.5"),
            (
                r#"{"path":"a","start":18446744073709551615}"#,
                "`start` must be between -9223372036854775808 and 9223372036854775807, got 18446744073709551615",
            ),
            (r#"{"path":"a","start":"9223372036854775808"}"#, "`start` must be between"),
            (r#"{"path":"a","start":1e30}"#, "`start` must be between"),
            (r#"{"path":"a","edits":[{"old":{}}]}"#, "`edits` [0] `old` must be of type string, got object"),
            (r#"{"path":"a"#, "not valid JSON"),
            ("[1]", "expected a JSON object, got array"),
        ] {
            let got = mend("t", &schema(), given).map(|v| v.to_string()).unwrap_or_else(|e| e.to_string());
            assert!(got == expect || got.contains(expect) && !expect.starts_with('{'), "{given}\n  {got}\n  {expect}");
        }
    }

    #[test]
    fn mending_twice_changes_nothing() {
        let once = mend("t", &schema(), r#"{"start":"3","path":"a"}"#).unwrap().to_string();
        assert_eq!(mend("t", &schema(), &once).unwrap().to_string(), once);
    }
}
