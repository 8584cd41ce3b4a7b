//! Servers of tools (Model Context Protocol): how they are named in settings.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// A server of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSpec {
    /// Its name: its tools are called `mcp__name__tool`.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// A person put it into their own settings: what it says only reads is taken to.
    pub trusted: bool,
    /// Its only tools; none: all.
    pub tools: Option<Vec<String>>,
    /// Tools of it that are left out.
    pub exclude: Vec<String>,
}

/// How a server of tools is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that is started, over its stdin and stdout.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// What it finds in its environment besides what commands find there.
        env: Vec<(String, String)>,
        /// Where it works; none: where the session does.
        cwd: Option<PathBuf>,
    },
    /// An address: streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of each request.
        headers: Vec<(String, String)>,
    },
}

impl ServerSpec {
    /// A server with all its tools, that nobody vouches for.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self { name: name.into(), transport, trusted: false, tools: None, exclude: Vec::new() }
    }
}

/// A server as a settings file has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: serde_json::Map<String, Value>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: serde_json::Map<String, Value>,
    #[serde(default)]
    disabled: bool,
    tools: Option<Vec<String>>,
    #[serde(default)]
    exclude_tools: Vec<String>,
}

/// Reads one server of the setting `mcpServers`; none where it is switched off. `${NAME}` in values of `env` and
/// `headers` is the variable of that name.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(
    name: &str,
    value: &Value,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<ServerSpec>, String> {
    let wrong = |why: String| format!("`mcpServers`: `{name}` {why}");
    let written: Written =
        serde_json::from_value(value.clone()).map_err(|e| wrong(format!("is not understood: {e}")))?;
    if written.disabled {
        return Ok(None);
    }
    let filled = |map: serde_json::Map<String, Value>| {
        let one = |(name, value): (String, Value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Ok((name, fill(&text, lookup)?))
        };
        map.into_iter().map(one).collect::<Result<Vec<_>, String>>().map_err(wrong)
    };
    let transport = match (written.command, written.url) {
        (Some(command), None) => {
            Transport::Stdio { command, args: written.args, env: filled(written.env)?, cwd: written.cwd }
        }
        (None, Some(url)) => Transport::Http { url, headers: filled(written.headers)? },
        (Some(_), Some(_)) => return Err(wrong("has both `command` and `url`; it takes one of them".into())),
        (None, None) => return Err(wrong("has neither `command` nor `url`".into())),
    };
    let spec = ServerSpec {
        trusted: true,
        tools: written.tools,
        exclude: written.exclude_tools,
        ..ServerSpec::new(name, transport)
    };
    Ok(Some(spec))
}

/// Puts variables in.
fn fill(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        let value = lookup(name).ok_or_else(|| format!("needs the variable {name}, which is not set"))?;
        filled.push_str(before);
        filled.push_str(&value);
        rest = behind;
    }
    Ok(filled + rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: &Value) -> Result<Option<ServerSpec>, String> {
        read("s", value, &|name| (name == "TOKEN").then(|| "secret".to_owned()))
    }

    #[test]
    fn servers_are_programs_or_addresses() {
        let program =
            of(&json!({"command": "srv", "args": ["-v"], "env": {"T": "x${TOKEN}y", "N": 3}})).unwrap().unwrap();
        let env = vec![("T".into(), "xsecrety".into()), ("N".into(), "3".into())];
        let stdio = Transport::Stdio { command: "srv".into(), args: vec!["-v".into()], env, cwd: None };
        assert_eq!(program, ServerSpec { trusted: true, ..ServerSpec::new("s", stdio) });
        let address = of(&json!({"url": "http://h", "headers": {"A": "b"}, "tools": ["t"], "excludeTools": ["u"]}));
        let address = address.unwrap().unwrap();
        assert_eq!(
            address.transport,
            Transport::Http { url: "http://h".into(), headers: vec![("A".into(), "b".into())] }
        );
        assert_eq!((address.tools, address.exclude), (Some(vec!["t".into()]), vec!["u".into()]));
        assert_eq!(of(&json!({"command": "x", "disabled": true})), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (value, expect) in [
            (json!({}), "`mcpServers`: `s` has neither `command` nor `url`"),
            (json!({"command": "a", "url": "b"}), "`mcpServers`: `s` has both"),
            (
                json!({"command": "a", "env": {"A": "${NO}"}}),
                "`mcpServers`: `s` needs the variable NO, which is not set",
            ),
            (json!({"comand": "a"}), "`mcpServers`: `s` is not understood: unknown field `comand`"),
            (json!("a"), "`mcpServers`: `s` is not understood"),
        ] {
            assert!(of(&value).unwrap_err().starts_with(expect), "{value}: {:?}", of(&value));
        }
    }
}
