//! What is tried with the model: which it is, its key, its address, an answer, a call.

use agent_core::agent::{connect, doubts, listed};
use agent_core::discover::{Choice, KeyFrom, Remote, discover, fallbacks};
use agent_core::provider::{ErrorKind, Model, Provider, ProviderError, models};
use agent_core::setup::key;

use super::hint::{Server, hint};
use super::{Check, Report, tried};
use crate::error::CliError;
use crate::setup::Setup;
use crate::weights;

/// Tries the model that the settings and the environment lead to.
pub async fn model(setup: &Setup, report: &mut Report) -> Result<(), CliError> {
    let lookup = |name: &str| setup.world.lookup(name);
    let outside = setup.outside(&lookup);
    let remote = match discover(&setup.settings, &outside).await {
        Err(why) => return report.add(Check::fail("model", why.to_string())),
        Ok(Choice::Local { .. }) => return report.add(embedded(setup)),
        Ok(Choice::Remote(remote)) => remote,
    };
    report
        .add(Check::ok("model", format!("{} {} (the name: {})", remote.model, remote.why, named_by(setup, &remote))))?;
    let (_, left_out) = fallbacks(&setup.settings, &remote, &outside).await;
    for doubt in doubts(&remote, &setup.settings).into_iter().chain(left_out) {
        report.add(Check::warn("model", doubt))?;
    }
    match key(setup, &remote) {
        Err(error) => report.add(Check::fail("key", error.message)),
        Ok(key) => {
            report.add(key_check(&remote, key.as_deref()))?;
            reach(setup, &remote, key.as_deref(), report).await
        }
    }
}

fn embedded(setup: &Setup) -> Check {
    match weights::found(setup) {
        Some(path) => Check::ok("model", format!("the embedded one, in {}", path.display())),
        None => {
            Check::fail("model", "the embedded one, whose weights are not here").hint("fetch them: agent model fetch")
        }
    }
}

fn named_by(setup: &Setup, remote: &Remote) -> String {
    let default = models::provider(&remote.provider).map(|entry| entry.model);
    match setup.settings.is_set("model") {
        true => setup.settings.source("model").to_string(),
        false if default == Some(remote.model.as_str()) => format!("the default of {}", models::made()),
        false => "the first that the server lists".into(),
    }
}

fn key_check(remote: &Remote, key: Option<&str>) -> Check {
    match (&remote.key, key) {
        (KeyFrom::Nowhere, _) => Check::ok("key", "none, as for a server of one's own"),
        (KeyFrom::Variable(name), Some(_)) => Check::ok("key", format!("{name} is set")),
        (KeyFrom::Variable(name), None) => Check::fail("key", format!("{name} is not set")),
        (KeyFrom::Command(_), _) => Check::ok("key", "apiKeyCommand printed one"),
    }
}

/// Goes on as far as the server lets us.
async fn reach(setup: &Setup, remote: &Remote, key: Option<&str>, report: &mut Report) -> Result<(), CliError> {
    let listed = listed(remote, key, &setup.settings).await;
    if let Err(error) = &listed
        && matches!(error.kind, ErrorKind::Network | ErrorKind::Idle)
    {
        return report.add(Check::fail("address", error.message.clone()).hint(proxied(setup)));
    }
    report.add(address(remote, &listed))?;
    let server = Server { remote, key, settings: &setup.settings, models: listed.as_deref().ok() };
    let provider = connect(remote, key, &setup.settings).map_err(CliError::failed)?;
    answers(&*provider, &server, report).await?;
    known(setup, provider.model()).into_iter().try_for_each(|check| report.add(check))
}

fn proxied(setup: &Setup) -> String {
    let through = |_| format!("it is asked through the proxy of {}", setup.settings.source("proxy"));
    setup.settings.proxy.as_ref().map(through).unwrap_or_default()
}

fn address(remote: &Remote, listed: &Result<Vec<String>, ProviderError>) -> Check {
    let way = if remote.base_url.starts_with("https:") { "is reached, encrypted" } else { "is reached" };
    match listed {
        Ok(models) => Check::ok("address", format!("it {way}, and lists {} models", models.len())),
        Err(_) => Check::ok("address", format!("it {way}; it does not list its models")),
    }
}

/// Words, a call, and what they cost.
async fn answers(provider: &dyn Provider, server: &Server<'_>, report: &mut Report) -> Result<(), CliError> {
    let failed = async |name, error: ProviderError| {
        let hint = hint(&error, server).await;
        Check::fail(name, error.message).hint(hint)
    };
    let words = match tried::words(provider).await {
        Ok(words) => words,
        Err(error) => return report.add(failed("streaming", error).await),
    };
    report.add(tried::streaming(&words))?;
    let mut usages = vec![words.usage];
    match tried::call(provider).await {
        Err(error) => report.add(failed("tool call", error).await)?,
        Ok((heard, messages)) => {
            usages.push(heard.usage);
            match tried::called(&heard) {
                Err(check) => report.add(check)?,
                Ok(call) => match tried::result(provider, messages, call).await {
                    Err(error) => report.add(failed("tool call", error).await)?,
                    Ok(last) => {
                        usages.push(last.usage);
                        report.add(Check::ok("tool call", "a tool was called, and its result taken"))?;
                    }
                },
            }
        }
    }
    let (requests, counted) = (usages.len(), usages.into_iter().flatten().collect::<Vec<_>>());
    tried::usage(&counted, requests).into_iter().try_for_each(|check| report.add(check))
}

/// What is known of the model without asking it.
fn known(setup: &Setup, model: &Model) -> [Check; 2] {
    let told = setup.settings.facts(&model.name).is_some_and(|facts| facts.context.is_some());
    let text = format!("{} tokens", model.context);
    let context = if told || setup.settings.is_set("maxContext") || models::is_known(&model.name) {
        Check::ok("context", text)
    } else {
        Check::warn("context", format!("not known; {text} are taken for granted"))
            .hint(format!("say it in the settings: models: {{{}: {{context: N}}}}", model.name))
    };
    let prices = match model.prices {
        Some(prices) if prices == agent_core::provider::Prices::FREE => Check::ok("prices", "it costs nothing"),
        Some(prices) => Check::ok(
            "prices",
            format!(
                "{} and {} dollars a million tokens sent and received ({})",
                prices.input,
                prices.output,
                models::made()
            ),
        ),
        None => Check::warn("prices", "not known: costs are not told, and maxCost cannot hold")
            .hint(format!("say them in the settings: models: {{{}: {{cost: {{input: X, output: Y}}}}}}", model.name)),
    };
    [context, prices]
}
