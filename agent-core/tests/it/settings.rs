//! Settings: what each source may say, who wins, and how a mistake is told.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too")]

use std::path::PathBuf;
use std::time::Duration;

use agent_core::settings::{Layer, Settings, Source, Warning, env, file, flags, gather, keys};
use agent_tools::policy::{Mode, Permissions};
use proptest::prelude::*;
use serde_json::{Value, json};

fn user() -> Source {
    Source::User("/u/config.yaml".into())
}

fn project() -> Source {
    Source::Project("/p/agent.yaml".into())
}

fn layer(source: Source, yaml: &str) -> Layer {
    file::layer(source, yaml.as_bytes()).unwrap()
}

fn given(options: &[(&str, &str)]) -> Result<Vec<Layer>, String> {
    let pairs: Vec<_> = options.iter().map(|(long, value)| ((*long).into(), (*value).into())).collect();
    flags::layers(&pairs).map_err(|e| e.to_string())
}

fn resolve(layers: Vec<Layer>) -> Result<(Settings, Vec<String>), String> {
    let (settings, warnings) = Settings::resolve(layers).map_err(|e| e.to_string())?;
    Ok((settings, warnings.iter().map(Warning::to_string).collect()))
}

fn shown(settings: &Settings, key: &str) -> Value {
    settings.entries().into_iter().find(|e| e.key.name == key).unwrap().value
}

/// What a user's file of this text says.
fn read(yaml: &[u8]) -> Result<(Settings, Vec<String>), String> {
    file::layer(user(), yaml).map_err(|e| e.to_string()).and_then(|layer| resolve(vec![layer]))
}

#[test]
fn values_of_a_file() {
    for (yaml, key, expect) in [
        ("maxTurns: 5", "maxTurns", json!(5)),
        ("\u{feff}maxTurns: 5\r\nmodel: x\r\n", "model", json!("x")),
        ("bashMode: 0467", "bashMode", json!("0467")),
        ("bashMode: 0444", "bashMode", json!("0444")),
        ("bashMode: '0000'", "bashMode", json!("0000")),
        ("bashMode: 7777", "bashMode", json!("7777")),
        ("bashMode:", "bashMode", json!("0467")),
        ("model: 4", "model", json!("4")),
        ("model: gpt:4", "model", json!("gpt:4")),
        ("skillsDir: a b", "skillsDir", json!(["a b"])),
        ("skillsDir: [a, b]", "skillsDir", json!(["a", "b"])),
        ("skillsDir:\n- a\n- 7\n", "skillsDir", json!(["a", "7"])),
        ("skillsDir: []", "skillsDir", json!([])),
        ("passEnv: X", "passEnv", json!(["X"])),
        ("notify: off", "notify", json!(false)),
        ("notify: no", "notify", json!(false)),
        ("compact: off", "compact", json!("off")),
        ("compact: 80", "compact", json!("80")),
        ("compact: 80%", "compact", json!("80")),
        ("fallback: m", "fallback", json!(["m"])),
        ("fallback: [m, openai/gpt-5.5]", "fallback", json!(["m", "openai/gpt-5.5"])),
        ("models: {x: {context: 9, sees: true}}", "models", json!({"x": {"context": 9, "sees": true}})),
        (
            "models:\n  x-1:\n    cost: {input: 1, output: 2.5, cacheRead: 0.1}\n",
            "models",
            json!({"x-1": {"cost": {"input": 1.0, "output": 2.5, "cacheRead": 0.1, "cacheWrite": 1.0}}}),
        ),
        ("models: {}", "models", json!({})),
        ("sandbox: off", "sandbox", json!("off")),
        ("editTools: true", "editTools", json!(true)),
        ("provider: local", "editTools", json!(true)),
        ("provider: local\neditTools: false", "editTools", json!(false)),
        ("maxCost: 1.5", "maxCost", json!(1.5)),
        ("maxCost: 2", "maxCost", json!(2.0)),
        ("maxCost: null", "maxCost", json!(null)),
        ("effort: xhigh", "effort", json!("xhigh")),
        ("theme: dark", "theme", json!("dark")),
        ("caCert: /a b/c.pem", "caCert", json!("/a b/c.pem")),
        ("# nothing\n", "maxTurns", json!(1000)),
        ("", "maxTurns", json!(1000)),
        ("---\nmaxTurns: 7\n", "maxTurns", json!(7)),
        ("{maxTurns: 7, model: m}", "maxTurns", json!(7)),
        (r#"{"maxTurns": 7}"#, "maxTurns", json!(7)),
        ("mcpServers:\n  a: {command: x, env: {K: secret}}\n  b: {}\n", "mcpServers", json!(["a", "b"])),
    ] {
        let (settings, warnings) = read(yaml.as_bytes()).unwrap_or_else(|e| panic!("{yaml:?}: {e}"));
        assert_eq!(shown(&settings, key), expect, "{yaml:?}");
        assert_eq!(warnings, [""; 0], "{yaml:?}");
    }
}

#[test]
fn mistakes_in_a_file_name_file_line_and_key() {
    for (yaml, parts) in [
        ("model: x\nmaxTurns: many\n", &["/u/config.yaml, line 2: `maxTurns` takes a whole number from 1 to"][..]),
        ("maxTurns: 0", &["line 1: `maxTurns` takes a whole number"]),
        ("maxTurns: -1", &["line 1: `maxTurns`"]),
        ("maxTurns: 1.5", &["line 1: `maxTurns`"]),
        ("maxTurns: [1]", &["line 1: `maxTurns`"]),
        ("maxTurns: 99999999999999999999999", &["line 1: `maxTurns`"]),
        ("toolTimeout: 18446744073709551615", &["`toolTimeout` takes a whole number from 1 to 31536000"]),
        ("\n\nbashTool: perhaps\n", &["line 3: `bashTool` takes true or false"]),
        ("permissions: all", &["line 1: `permissions` takes one of ask, auto, allow"]),
        ("toolset: fat", &["line 1: `toolset` takes one of lean"]),
        ("effort: huge", &["`effort` takes one of low, medium, high, xhigh, max"]),
        ("skillsDir: {a: b}", &["line 1: `skillsDir` takes a text or a list of texts"]),
        ("skillsDir:\n- a\n- [b]\n", &["line 3: `skillsDir`"]),
        ("passEnv: 5", &["`passEnv`"]),
        ("mcpServers: [a]", &["`mcpServers` takes a map"]),
        ("model: ''", &["`model` takes a text that is not empty"]),
        ("model: {a: b}", &["line 1: `model`"]),
        ("baseUrl: example.com", &["`baseUrl` takes an address that begins with http:// or https://"]),
        ("maxCost: -1", &["`maxCost` takes a number that is not negative"]),
        ("maxCost: .inf", &["`maxCost`"]),
        ("maxCost: .nan", &["`maxCost`"]),
        ("bashMode: [0]", &["line 1: `bashMode`"]),
        ("compact: perhaps", &["line 1: `compact` takes auto, off or a percentage from 1 to 99"]),
        ("compact: 100", &["`compact` takes auto, off or a percentage from 1 to 99"]),
        ("compact: 0", &["`compact` takes"]),
        ("compact: -5", &["`compact` takes"]),
        ("compact: [1]", &["`compact` takes auto, off or a percentage"]),
        ("models: 5", &["`models` takes a map"]),
        ("models: {x: 5}", &["`models` takes a map of {context, output", "what it says of `x` is wrong"]),
        ("models: {x: {contxt: 5}}", &["of `x` is wrong: unknown field `contxt`"]),
        ("models: {x: {context: 0}}", &["no room for 0 tokens"]),
        ("models: {x: {context: -1}}", &["of `x` is wrong"]),
        ("models: {x: {sees: 3}}", &["of `x` is wrong"]),
        ("models: {x: {cost: 3}}", &["of `x` is wrong"]),
        ("models: {x: {cost: {input: 3}}}", &["of `x` is wrong: missing field `output`"]),
        ("models: {x: {cost: {input: -3, output: 1}}}", &["of `x` is wrong: a price is never negative"]),
        ("fallback: {a: b}", &["`fallback` takes a text or a list of texts"]),
        ("fallback: ['']", &["`fallback` takes names of models"]),
        ("fallback: [openai/]", &["`fallback` takes names of models, MODEL or PROVIDER/MODEL"]),
        ("model: a\nmodel: b\n", &["line 2"]),
        ("model: 'a\n", &["/u/config.yaml, line"]),
        ("model: a: b\n", &["/u/config.yaml, line 1"]),
        ("{ \"a\": 1, ", &["/u/config.yaml, line 1"]),
        ("just words", &["/u/config.yaml, line 1: it is not a map of settings"]),
        ("- a\n- b\n", &["/u/config.yaml, line 1: it is not a map of settings"]),
        ("model: a\n---\nmodel: b\n", &["/u/config.yaml"]),
        ("? [a]\n: b\n", &["/u/config.yaml"]),
    ] {
        let error = read(yaml.as_bytes()).map(|_| ()).expect_err(yaml);
        for part in parts {
            assert!(error.contains(part), "{yaml:?}: {error}");
        }
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn bytes_that_are_no_text_are_told_with_their_line() {
    let error = read(b"model: a\ntheme: \xff\n").map(|_| ()).unwrap_err();
    assert_eq!(error, "cannot use the settings of /u/config.yaml, line 2: it is not UTF-8 text");
}

#[test]
fn a_bomb_of_aliases_is_an_error_and_soon() {
    let mut yaml = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let refs = vec![format!("*a{}", level - 1); 9].join(", ");
        yaml += &format!("a{level}: &a{level} [{refs}]\n");
    }
    let deep = format!("model: {}", "[".repeat(100_000));
    let wide = format!("mcpServers: {{a: [{}]}}", "1, ".repeat(100_000));
    for text in [yaml, deep, wide] {
        assert!(read(text.as_bytes()).is_err());
    }
}

#[test]
fn a_key_in_the_wrong_place_is_not_repeated() {
    let error = read(b"apiKeyEnv: sk-ant-very-secret").map(|_| ()).unwrap_err();
    assert!(error.contains("`apiKeyEnv` takes the name of a variable"), "{error}");
    assert!(!error.contains("very-secret"), "{error}");
}

#[test]
fn secrets_are_not_among_the_entries() {
    let yaml = "apiKeyCommand: echo SECRET\nbaseUrl: https://u:SECRET@x.com/v1?k=SECRET\nproxy: http://u:SECRET@p:1\n\
                mcpServers: {a: {env: {T: SECRET}, headers: {A: SECRET}}}\n";
    let (settings, _) = read(yaml.as_bytes()).unwrap();
    let all: Vec<String> = settings.entries().iter().map(|e| format!("{} {}", e.key.name, e.value)).collect();
    assert!(all.iter().all(|line| !line.contains("SECRET")), "{all:#?}");
    assert_eq!(settings.api_key_command.as_deref(), Some("echo SECRET"));
}

#[test]
fn an_unknown_key_is_a_warning_that_names_the_nearest() {
    let (_, warnings) = read(b"maxTurn: 5\nhooks: {a: [1]}\nmodel: m\n").unwrap();
    assert_eq!(
        warnings,
        [
            "/u/config.yaml, line 1: there is no setting `maxTurn`; did you mean `maxTurns`?",
            "/u/config.yaml, line 2: there is no setting `hooks`",
        ]
    );
    let (_, warnings) = read(b"\"\\e[2Jx\": 1\nbashMode: \"\\e]0;x\\a\"").unwrap();
    assert_eq!(warnings.len(), 2);
    assert!(!warnings.concat().contains(char::is_control), "{warnings:?}");
}

#[test]
fn the_nearest_source_wins_and_is_remembered() {
    let variables = |name: &str| (name == "BASH_AGENT_BASH_MODE").then(|| "0444".to_owned());
    let all = || {
        let mut layers = given(&[("mode", "0400")]).unwrap();
        layers.extend(env::layers(&variables));
        layers.push(layer(project(), "bashMode: 0460"));
        layers.push(layer(user(), "bashMode: 0466\nmaxTurns: 3"));
        layers
    };
    let flag = Source::Flag("--mode".into());
    let variable = Source::Env("BASH_AGENT_BASH_MODE".into());
    for (without, mode, source) in [
        (vec![], "0400", flag.clone()),
        (vec![flag.clone()], "0444", variable.clone()),
        (vec![flag.clone(), variable.clone()], "0460", project()),
        (vec![flag.clone(), variable.clone(), project()], "0466", user()),
        (vec![flag, variable, project(), user()], "0467", Source::Default),
    ] {
        let layers = all().into_iter().filter(|layer| !without.contains(&layer.source)).collect();
        let (settings, warnings) = resolve(layers).unwrap();
        assert_eq!((settings.mode.to_string().as_str(), settings.source("bashMode")), (mode, &source));
        assert_eq!(warnings, [""; 0]);
    }
}

#[test]
fn a_project_may_tighten_and_not_widen() {
    for (user_yaml, project_yaml, key, expect, fine) in [
        ("", "bashMode: 0400", "bashMode", json!("0400"), true),
        ("", "bashMode: 0477", "bashMode", json!("0467"), false),
        ("bashMode: 7777", "bashMode: 0477", "bashMode", json!("0477"), true),
        ("bashMode: 0004", "bashMode: 0467", "bashMode", json!("0004"), false),
        ("bashMode: 0007", "bashMode: 0070", "bashMode", json!("0007"), false),
        ("", "permissions: ask", "permissions", json!("ask"), true),
        ("", "permissions: auto", "permissions", json!(null), false),
        ("", "permissions: allow", "permissions", json!(null), false),
        ("permissions: allow", "permissions: auto", "permissions", json!("auto"), true),
        ("permissions: auto", "permissions: allow", "permissions", json!("auto"), false),
        ("", "bashTool: false", "bashTool", json!(false), true),
        ("bashTool: false", "bashTool: true", "bashTool", json!(false), false),
        ("", "baseUrl: http://127.0.0.1:9/", "baseUrl", json!(null), false),
        ("", "provider: openrouter", "provider", json!(null), false),
        ("", "apiKeyEnv: AWS_SECRET", "apiKeyEnv", json!(null), false),
        ("", "apiKeyCommand: touch x", "apiKeyCommand", json!(null), false),
        ("", "caCert: ca.pem", "caCert", json!(null), false),
        ("", "mcpServers: {a: {command: x}}", "mcpServers", json!([]), false),
        ("", "passEnv: [OPENAI_API_KEY]", "passEnv", json!([]), false),
        ("", "proxy: http://evil", "proxy", json!(null), false),
        ("", "models: {x: {context: 1}}", "models", json!({}), false),
        ("", "fallback: openrouter/m", "fallback", json!([]), false),
        ("", "noProxy: x", "noProxy", json!([]), false),
        ("", "maskSecrets: false", "maskSecrets", json!(true), false),
        ("maskSecrets: false", "maskSecrets: true", "maskSecrets", json!(true), true),
        ("", "sandbox: off", "sandbox", json!("auto"), false),
        ("", "sandbox: require", "sandbox", json!("require"), true),
        ("sandbox: require", "sandbox: auto", "sandbox", json!("require"), false),
        ("", "loginShell: true", "loginShell", json!(false), false),
        ("", "maxCost: 1", "maxCost", json!(1.0), true),
        ("maxCost: 1", "maxCost: 2", "maxCost", json!(1.0), false),
        ("", "maxTurns: 10", "maxTurns", json!(10), true),
        ("", "maxTurns: 2000", "maxTurns", json!(1000), false),
        ("", "maxSubAgents: 9", "maxSubAgents", json!(8), false),
        ("", "loopLimit: 0", "loopLimit", json!(10), false),
        ("loopLimit: 0", "loopLimit: 5", "loopLimit", json!(5), true),
        ("", "additionalDirectories: [sub/dir]", "additionalDirectories", json!(["sub/dir"]), true),
        ("", "additionalDirectories: [/]", "additionalDirectories", json!([]), false),
        ("", "additionalDirectories: [a, ../b]", "additionalDirectories", json!([]), false),
        ("", "additionalDirectories: ~/x", "additionalDirectories", json!([]), false),
        ("", "skillsDir: /home/x/skills", "skillsDir", json!(null), false),
        ("", "skillsDir: ./tools/skills", "skillsDir", json!(["./tools/skills"]), true),
        ("", "model: m", "model", json!("m"), true),
        ("", "editTools: true", "editTools", json!(true), true),
        ("", "toolTimeout: 600", "toolTimeout", json!(600), true),
    ] {
        let case = format!("{user_yaml:?} {project_yaml:?}");
        let layers = vec![layer(user(), user_yaml), layer(project(), project_yaml)];
        let (settings, warnings) = resolve(layers).unwrap();
        assert_eq!(shown(&settings, key), expect, "{case}");
        assert_eq!(warnings.is_empty(), fine, "{case}: {warnings:?}");
        let told = format!("/p/agent.yaml, line 1: `{key}` is ignored");
        assert!(warnings.iter().all(|w| w.starts_with(&told)), "{case}: {warnings:?}");
        assert_eq!(matches!(settings.source(key), Source::Project(_)), fine, "{case}");
    }
}

#[test]
fn a_malformed_mode_allows_nothing() {
    let variable = |text: &'static str| env::layers(&move |name| (name == "BASH_AGENT_BASH_MODE").then(|| text.into()));
    for (layers, mode, permissions, told) in [
        (vec![layer(user(), "bashMode: bad1")], "0000", None, 1),
        (vec![layer(user(), "bashMode: 467")], "0000", None, 1),
        (vec![layer(user(), "bashMode: 0487\npermissions: allow")], "0000", Some(Permissions::Auto), 2),
        (vec![layer(user(), "bashMode: ''")], "0000", None, 1),
        (vec![layer(project(), "bashMode: x")], "0000", None, 1),
        (variable("07777"), "0000", None, 1),
        (variable(""), "0467", None, 0),
        (variable("0447"), "0447", None, 0),
        (
            [vec![layer(user(), "bashMode: bad\npermissions: allow")], variable("0467")].concat(),
            "0467",
            Some(Permissions::Allow),
            1,
        ),
        ([variable("bad"), given(&[("permissions", "allow")]).unwrap()].concat(), "0000", Some(Permissions::Auto), 2),
        ([variable("bad"), given(&[("mode", "0007")]).unwrap()].concat(), "0007", None, 1),
    ] {
        let case = format!("{layers:?}");
        let (settings, warnings) = resolve(layers).unwrap();
        assert_eq!((settings.mode.to_string().as_str(), settings.permissions), (mode, permissions), "{case}");
        assert_eq!(settings.mode_malformed, mode == "0000", "{case}");
        assert_eq!(warnings.len(), told, "{case}: {warnings:?}");
    }
    for flag in [("mode", "bad"), ("mode", "08"), ("set", "bashMode=7")] {
        let error = given(&[flag]).and_then(resolve).map(|_| ()).unwrap_err();
        assert!(error.contains("is not a mode"), "{error}");
    }
}

#[test]
fn what_is_not_built_yet_is_told() {
    for (yaml, expect) in
        [("maxTurns: 3", ""), ("theme: dark", "`theme` has no effect in this version"), ("sandbox: require", "")]
    {
        let (settings, _) = resolve(vec![layer(user(), yaml)]).unwrap();
        let told: String = settings.missing().iter().map(ToString::to_string).collect();
        assert_eq!(told.is_empty(), expect.is_empty(), "{yaml}: {told}");
        assert!(told.contains(expect), "{yaml}: {told}");
    }
}

#[test]
fn flags_give_settings() {
    for (options, key, expect) in [
        (&[("max-turns", "3")][..], "maxTurns", json!(3)),
        (&[("set", "maxTurns=3")], "maxTurns", json!(3)),
        (&[("max-turns", "3"), ("set", "maxTurns=4")], "maxTurns", json!(4)),
        (&[("set", "maxTurns=4"), ("max-turns", "3")], "maxTurns", json!(3)),
        (&[("max-turns", "3"), ("max-turns", "5")], "maxTurns", json!(5)),
        (&[("set", "maxTurns=4"), ("set", "maxTurns=5")], "maxTurns", json!(5)),
        (&[("local", "")], "provider", json!("local")),
        (&[("local", ""), ("provider", "openai")], "provider", json!("openai")),
        (&[("model", "a: b # c")], "model", json!("a: b # c")),
        (&[("set", "model=a: b=c # d")], "model", json!("a: b=c # d")),
        (&[("model", "null")], "model", json!("null")),
        (&[("mode", "0467")], "bashMode", json!("0467")),
        (&[("add-dir", "a: b"), ("add-dir", "c")], "additionalDirectories", json!(["a: b", "c"])),
        (&[("skills-dir", "x")], "skillsDir", json!(["x"])),
        (&[("set", "passEnv=[A, B]")], "passEnv", json!(["A", "B"])),
        (&[("set", "passEnv=A")], "passEnv", json!(["A"])),
        (&[("set", "passEnv=[A]"), ("set", "passEnv=[B]")], "passEnv", json!(["B"])),
        (&[("set", "mcpServers={a: {command: x}}")], "mcpServers", json!(["a"])),
        (&[("set", "editTools=true")], "editTools", json!(true)),
        (&[("max-cost", "0.5")], "maxCost", json!(0.5)),
        (&[("cwd", "/x"), ("no-session", "")], "maxTurns", json!(1000)),
    ] {
        let (settings, _) = given(options).and_then(resolve).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        assert_eq!(shown(&settings, key), expect, "{options:?}");
    }
}

#[test]
fn mistakes_in_flags_name_the_flag() {
    for (option, parts) in [
        (("max-turns", "many"), "--max-turns: `maxTurns` takes a whole number"),
        (("max-turns", ""), "--max-turns: `maxTurns` takes a whole number"),
        (("set", "maxTurns"), "lacks a `=`"),
        (("set", "maxturn=3"), "there is no setting `maxturn`; did you mean `maxTurns`?"),
        (("set", "maxTurns=x"), "--set maxTurns: `maxTurns` takes a whole number"),
        (("set", "notify=perhaps"), "`notify` takes true or false"),
        (("set", "foo=1"), "--set: there is no setting `foo`; `agent config` lists all settings"),
        (("set", "permissions=maybe"), "--set permissions: `permissions` takes one of ask, auto, allow"),
        (("permissions", "maybe"), "--permissions: \"maybe\" is none of ask, auto, allow"),
        (("model", ""), "--model: `model` takes a text that is not empty"),
        (("nonsense", "x"), "--nonsense: there is no such option"),
    ] {
        let error = given(&[option]).and_then(resolve).map(|_| ()).unwrap_err();
        assert!(error.contains(parts) && error.starts_with("--"), "{option:?}: {error}");
    }
}

#[test]
fn options_name_settings_that_exist() {
    for option in flags::OPTIONS {
        assert!(option.key.is_none_or(|name| keys().iter().any(|k| k.name == name)), "{}", option.long);
        assert!(option.implies.is_none() || option.value.is_none(), "{}", option.long);
    }
}

#[test]
fn the_proxy_comes_from_its_variables() {
    for (set, proxy) in [
        (&[("HTTPS_PROXY", "http://a:1"), ("HTTP_PROXY", "http://b:1")][..], Some("http://a:1")),
        (&[("HTTP_PROXY", "http://b:1")], Some("http://b:1")),
        (&[("ALL_PROXY", "http://c:1"), ("HTTP_PROXY", "http://b:1")], Some("http://c:1")),
        (&[("HTTPS_PROXY", "")], None),
        (&[], None),
    ] {
        let lookup = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        let (settings, _) = resolve(env::layers(&lookup)).unwrap();
        assert_eq!(settings.proxy.as_deref(), proxy, "{set:?}");
    }
    let hosts = |name: &str| (name == "NO_PROXY").then(|| "a, .b.com,,".to_owned());
    assert_eq!(resolve(env::layers(&hosts)).unwrap().0.no_proxy, ["a", ".b.com"]);
}

#[test]
fn files_are_found_read_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.yaml");
    let nothing = |_: &str| None;
    assert_eq!(gather(&config, dir.path(), &nothing).unwrap().len(), 0);
    std::fs::write(&config, "maxTurns: 5\n").unwrap();
    std::fs::write(dir.path().join("agent.yaml"), "previewLines: 3\n").unwrap();
    let (settings, _) = resolve(gather(&config, dir.path(), &nothing).unwrap()).unwrap();
    assert_eq!((settings.max_turns, settings.preview_lines), (5, 3));
    std::fs::write(&config, "{ \"a\": 1, ").unwrap();
    let error = gather(&config, dir.path(), &nothing).unwrap_err().to_string();
    assert!(error.contains("config.yaml, line 1"), "{error}");
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "{ \"a\": 1, ");
}

#[test]
fn what_is_no_regular_file_is_an_error_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [fifo, dir.path().to_owned(), PathBuf::from("/dev/zero")] {
        let error = file::load(Source::User(path)).unwrap_err().to_string();
        assert!(error.contains("it is not a regular file"), "{error}");
    }
    let long = dir.path().join("long");
    std::fs::write(&long, "#".repeat(2 << 20)).unwrap();
    assert!(file::load(Source::User(long)).unwrap_err().to_string().contains("longer than"));
}

#[test]
fn maps_are_merged_and_lists_replaced() {
    let layers = vec![
        layer(user(), "mcpServers: {a: {command: x}, b: {command: y}}\npassEnv: [A]"),
        given(&[("set", "mcpServers={b: {command: z}}"), ("set", "passEnv=[B]")]).unwrap().remove(0),
    ];
    let (settings, _) = resolve(layers).unwrap();
    assert_eq!(json!(settings.mcp_servers), json!({"a": {"command": "x"}, "b": {"command": "z"}}));
}

#[test]
fn what_a_person_knows_of_a_model_is_found_by_the_longest_beginning() {
    let (settings, _) = read(b"models: {qwen: {context: 1}, qwen3.5: {context: 2}, org/other: {context: 3}}").unwrap();
    for (name, context) in
        [("qwen2", Some(1)), ("Qwen/Qwen3.5-9B", Some(2)), ("qwen3-5", Some(2)), ("other-7b", Some(3)), ("x", None)]
    {
        assert_eq!(settings.facts(name).and_then(|facts| facts.context), context, "{name}");
    }
    assert!(settings.missing().is_empty());
}

#[test]
fn the_defaults_are_those_of_the_page() {
    let (settings, warnings) = resolve(vec![]).unwrap();
    assert_eq!(warnings, [""; 0]);
    assert_eq!(settings.mode, Mode::DEFAULT);
    assert_eq!(settings.parts(true).timeout, Duration::from_secs(30));
    assert_eq!(settings.parts(false).timeout, Duration::from_secs(600));
    assert_eq!(settings.idle_timeout, Duration::from_secs(120));
    assert!(!settings.edit_tools(false) && settings.edit_tools(true));
    assert!(settings.entries().iter().all(|e| e.source == Source::Default));
    assert_eq!(settings.entries().len(), keys().len());
}

#[test]
fn a_start_without_files_is_quick() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.yaml");
    let start = std::time::Instant::now();
    for _ in 0..100 {
        let layers = gather(&config, dir.path(), &|_| None).unwrap();
        assert_eq!(resolve(layers).unwrap().0.max_turns, 1000);
        assert!(agent_core::prompt::instructions(dir.path(), dir.path()).is_empty());
    }
    let each = start.elapsed() / 100;
    // A millisecond is the limit of a release build on an idle machine.
    assert!(each < Duration::from_millis(10), "{each:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn any_bytes_are_settings_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for source in [user(), project()] {
            let _ = file::layer(source, &bytes).map(|layer| Settings::resolve(vec![layer]));
        }
    }

    #[test]
    fn any_text_that_looks_like_yaml_is_settings_or_an_error(
        lines in prop::collection::vec((0..keys().len(), "[-0-9a-z:,'\"&*!|>#%@~{}\\[\\] \\n\\t]{0,24}"), 0..6)
    ) {
        let text: String = lines.iter().map(|(at, value)| format!("{}: {value}\n", keys()[*at].name)).collect();
        for source in [user(), project()] {
            let _ = file::layer(source, text.as_bytes()).map(|layer| Settings::resolve(vec![layer]));
        }
    }

    #[test]
    fn a_project_never_widens_the_mode(before in "[0-7]{4}", after in "[0-7]{4}") {
        let layers = vec![layer(user(), &format!("bashMode: {before}")), layer(project(), &format!("bashMode: {after}"))];
        let (settings, _) = resolve(layers).unwrap();
        prop_assert!(before.parse::<Mode>().unwrap().covers(settings.mode));
    }
}
