//! What a person sends: the blocks of a prompt as parts for the model.

use crate::problem::invalid_params;
use agent_client_protocol_schema::v1::{
    BlobResourceContents, ContentBlock, EmbeddedResourceResource, Error, ImageContent, ResourceLink,
};
use agent_core::Prompt;
use agent_tools::Part;

/// The largest picture, in bytes of base64: what the strictest provider takes.
const LARGEST: usize = (5 << 20) * 4 / 3;

/// A prompt of these blocks; `sees`: the model takes pictures. Texts that follow each other are one.
///
/// # Errors
/// A block that was not offered to the client.
pub fn prompt(blocks: Vec<ContentBlock>, sees: bool) -> Result<Prompt, Error> {
    let mut parts: Vec<Part> = Vec::new();
    for block in blocks {
        match (parts.last_mut(), part(block, sees)?) {
            (Some(Part::Text { text }), Part::Text { text: more }) => text.push_str(&more),
            (_, part) => parts.push(part),
        }
    }
    if parts.iter().all(|part| matches!(part, Part::Text { text } if text.trim().is_empty())) {
        return Err(invalid_params("the prompt is empty"));
    }
    Ok(Prompt { parts })
}

fn part(block: ContentBlock, sees: bool) -> Result<Part, Error> {
    Ok(match block {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::ResourceLink(link) => Part::text(mention(&link)),
        ContentBlock::Image(ImageContent { data, mime_type, uri, .. }) => {
            picture(data, &mime_type, uri.as_deref(), sees)
        }
        ContentBlock::Resource(embedded) => match embedded.resource {
            EmbeddedResourceResource::TextResourceContents(resource) => {
                Part::text(inlined(&resource.uri, &resource.text))
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => bytes(blob, sees),
            _ => return Err(unknown("resource")),
        },
        ContentBlock::Audio(_) => return Err(unknown("audio")),
        _ => return Err(unknown("unknown")),
    })
}

fn unknown(what: &str) -> Error {
    let message = format!("a prompt of this agent has no {what} content; promptCapabilities says what it has");
    invalid_params(message)
}

/// A file that is mentioned: the model reads it if it wants.
fn mention(link: &ResourceLink) -> String {
    let place = link.uri.strip_prefix("file://").map_or_else(|| link.uri.clone(), decoded);
    format!("[{}]({place})", link.title.as_deref().unwrap_or(&link.name))
}

/// A text that comes along, with its address.
fn inlined(uri: &str, text: &str) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("\n<resource uri=\"{uri}\">\n{text}{end}</resource>\n")
}

fn bytes(blob: BlobResourceContents, sees: bool) -> Part {
    match blob.mime_type.as_deref() {
        Some(kind) if kind.starts_with("image/") => picture(blob.blob, kind, Some(&blob.uri), sees),
        kind => left_out(&format!("the file {} ({})", blob.uri, kind.unwrap_or("of unknown kind")), "is no text"),
    }
}

fn picture(data: String, kind: &str, uri: Option<&str>, sees: bool) -> Part {
    let what = format!("a picture ({kind}){}", uri.map(|uri| format!(" from {uri}")).unwrap_or_default());
    let known = matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    match (known, sees) {
        (true, true) if data.len() <= LARGEST => Part::Image { media_type: kind.to_owned(), data },
        (true, true) => left_out(&what, "has more than 5 MiB"),
        (true, false) => left_out(&what, "cannot be seen by this model"),
        (false, _) => left_out(&what, "is no PNG, JPEG, GIF or WebP"),
    }
}

/// What the model is told where something cannot be shown to it, so that it can say so.
fn left_out(what: &str, why: &str) -> Part {
    Part::text(format!("\n[{what} came with the prompt and {why}]\n"))
}

/// A path of an address: `%20` is a blank.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (first, behind) {
            (b'%', [high, low, after @ ..]) if hex(high).is_some() && hex(low).is_some() => {
                bytes.push(hex(high).unwrap_or_default() * 16 + hex(low).unwrap_or_default());
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What was typed, where a prompt is text alone or begins with it: a command may stand there.
pub fn typed(blocks: &[ContentBlock]) -> Option<&str> {
    match blocks.first()? {
        ContentBlock::Text(text) => Some(&text.text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(blocks: Value, sees: bool) -> Result<Vec<String>, String> {
        let blocks = serde_json::from_value(blocks).unwrap();
        let told = |part: &Part| match part {
            Part::Image { media_type, .. } => format!("<{media_type}>"),
            part => part.as_text().to_owned(),
        };
        prompt(blocks, sees).map(|prompt| prompt.parts.iter().map(told).collect()).map_err(|e| e.message)
    }

    #[test]
    fn blocks_become_parts() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png", "uri": "file:///x.png"});
        let bitmap = json!({"type": "image", "data": "AA==", "mimeType": "image/bmp"});
        let link = json!({"type": "resource_link", "name": "a b.rs", "uri": "file:///w/a%20b.rs"});
        let web = json!({"type": "resource_link", "name": "n", "title": "Page", "uri": "https://e.org/%20"});
        let resource = json!({"type": "resource", "resource": {"uri": "file:///w/x", "text": "body"}});
        let blob = |kind: &str| json!({"type": "resource", "resource": {"uri": "u", "blob": "AA==", "mimeType": kind}});
        for (blocks, sees, expect) in [
            (json!([text("a"), text("b")]), false, vec!["ab"]),
            (json!([text("see "), link]), false, vec!["see [a b.rs](/w/a b.rs)"]),
            (json!([web]), false, vec!["[Page](https://e.org/%20)"]),
            (json!([resource]), false, vec!["\n<resource uri=\"file:///w/x\">\nbody\n</resource>\n"]),
            (json!([text("a"), image]), true, vec!["a", "<image/png>"]),
            (
                json!([image]),
                false,
                vec![
                    "\n[a picture (image/png) from file:///x.png came with the prompt and cannot be seen by this model]\n",
                ],
            ),
            (
                json!([bitmap]),
                true,
                vec!["\n[a picture (image/bmp) came with the prompt and is no PNG, JPEG, GIF or WebP]\n"],
            ),
            (json!([blob("image/png")]), true, vec!["<image/png>"]),
            (json!([blob("a/b")]), true, vec!["\n[the file u (a/b) came with the prompt and is no text]\n"]),
        ] {
            assert_eq!(of(blocks.clone(), sees), Ok(expect.into_iter().map(str::to_owned).collect()), "{blocks}");
        }
    }

    #[test]
    fn what_is_no_prompt_is_refused() {
        for (blocks, expect) in [
            (json!([]), "the prompt is empty"),
            (json!([{"type": "text", "text": " \n"}]), "the prompt is empty"),
            (
                json!([{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}]),
                "a prompt of this agent has no audio",
            ),
        ] {
            assert!(of(blocks, true).unwrap_err().starts_with(expect));
        }
    }
}
