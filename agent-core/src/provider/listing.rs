//! Which models a server says it has.

use serde_json::Value;

use super::ProviderError;
use super::http::{Endpoint, Server, base, below, query};
use super::models::Form;
use crate::settings::nearest_of;

/// Asks a server which models it has. Many have no such list; that one answers with an error shows that it is there.
///
/// # Errors
/// What went wrong, as for a request.
pub async fn listed(form: Form, model: &str, endpoint: Endpoint) -> Result<Vec<String>, ProviderError> {
    let url = match form {
        Form::OpenaiChat | Form::Responses => below(&endpoint.base_url, "/models"),
        Form::Anthropic => {
            let base_url = &endpoint.base_url;
            let base = base(base_url).0;
            format!("{}/v1/models{}", base.strip_suffix("/v1").unwrap_or(base), query(base_url))
        }
    };
    let server = Server::new(endpoint, url, model);
    let bearer = server.bearer();
    let key = match form {
        Form::OpenaiChat | Form::Responses => bearer.as_deref().map(|bearer| ("authorization", bearer)),
        Form::Anthropic => server.key().map(|key| ("x-api-key", key.reveal())),
    };
    let headers: Vec<_> = key
        .into_iter()
        .chain([("accept", "application/json"), ("anthropic-version", super::anthropic::VERSION)])
        .collect();
    let body = server.get(&headers).await?;
    let list = serde_json::from_slice(&body).ok().and_then(|value: Value| names(&value));
    list.ok_or_else(|| server.asking().no_answer(&String::from_utf8_lossy(&body)))
}

/// The names in a list, however it is wrapped.
fn names(value: &Value) -> Option<Vec<String>> {
    let list = ["data", "models"].iter().find_map(|field| value.get(field)).unwrap_or(value).as_array()?;
    let name = |model: &Value| ["id", "name"].iter().find_map(|field| model.get(field)?.as_str().map(str::to_owned));
    // Gemini lists resources.
    Some(list.iter().filter_map(name).map(|name| name.strip_prefix("models/").unwrap_or(&name).to_owned()).collect())
}

/// The few of these models that somebody may have meant who wrote this.
pub fn near<'a>(wanted: &str, models: &'a [String]) -> Vec<&'a str> {
    const FEW: usize = 5;
    let wanted = wanted.to_lowercase();
    let names = || models.iter().map(String::as_str);
    let part = |name: &&str| {
        let name = name.to_lowercase();
        name.contains(&wanted) || wanted.contains(&name)
    };
    let best = nearest_of(&wanted, names());
    best.into_iter().chain(names().filter(part).filter(|name| Some(*name) != best)).take(FEW).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn near_models_are_found() {
        let models = ["qwen3-coder:30b", "qwen3:8b", "llama3.3:latest", "nomic-embed"].map(str::to_owned);
        for (wanted, expect) in [
            ("qwen3", &["qwen3:8b", "qwen3-coder:30b"][..]),
            ("llama3.3", &["llama3.3:latest"]),
            ("Qwen3:8B", &["qwen3:8b"]),
            ("gpt-5.5", &[]),
        ] {
            assert_eq!(near(wanted, &models), expect, "{wanted}");
        }
    }

    #[test]
    fn lists_are_read_however_they_are_wrapped() {
        for (value, expect) in [
            (json!({"data": [{"id": "a"}, {"id": "b", "name": "B"}]}), Some(vec!["a", "b"])),
            (json!({"models": [{"name": "models/gemini-x"}]}), Some(vec!["gemini-x"])),
            (json!([{"id": "a"}, {}, 5]), Some(vec!["a"])),
            (json!({"data": []}), Some(vec![])),
            (json!({"error": "no"}), None),
            (json!("text"), None),
        ] {
            let expect = expect.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(names(&value), expect, "{value}");
        }
    }
}
