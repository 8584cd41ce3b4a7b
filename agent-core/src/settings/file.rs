//! Reads settings from YAML: files, and the values of `--set`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_saphyr::{Error, Options, Spanned};

use super::{Given, Key, Kind, Layer, SettingsError, Source, Unknown, key};

/// How long a settings file may be, in bytes.
const LONGEST: u64 = 1 << 20;

/// Reads the file of a source; none where there is no such file, or where the source is no file.
///
/// # Errors
/// The file cannot be read, is no YAML, or has a value of a wrong type. It is never written to.
pub fn load(source: Source) -> Result<Option<Layer>, SettingsError> {
    let path = match &source {
        Source::User(path) | Source::Project(path) => path,
        Source::Default | Source::Env(_) | Source::Flag(_) => return Ok(None),
    };
    let head = match head(path, LONGEST) {
        Ok(head) => head,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
        Err(e) => return Err(SettingsError::new(&source, None, format!("it cannot be read: {e}"))),
    };
    if head.longer {
        return Err(SettingsError::new(&source, None, format!("it is longer than {LONGEST} bytes")));
    }
    layer(source, &head.bytes).map(Some)
}

/// The first bytes of a file.
pub(crate) struct Head {
    /// At most as many as were asked for.
    pub(crate) bytes: Vec<u8>,
    /// There are more.
    pub(crate) longer: bool,
}

/// Reads the first bytes of a regular file, and never waits for another process as a pipe would.
pub(crate) fn head(path: &Path, most: u64) -> io::Result<Head> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    let longer = bytes.len() as u64 > most;
    bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok(Head { bytes, longer })
}

/// Reads the text of a settings file.
///
/// # Errors
/// It is no YAML, or has a value of a wrong type: with line and key.
pub fn layer(source: Source, bytes: &[u8]) -> Result<Layer, SettingsError> {
    let text = str::from_utf8(bytes).map_err(|e| {
        let line = 1 + bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() as u64;
        SettingsError::new(&source, Some(line), "it is not UTF-8 text")
    })?;
    let mut layer = Layer::new(source);
    let mut current = None;
    let document = Document { layer: &mut layer, current: &mut current };
    let read =
        serde_saphyr::with_deserializer_from_str_with_options(text, options(), |yaml| document.deserialize(yaml));
    match read {
        Ok(()) => Ok(layer),
        Err(error) => Err(wrong(&layer.source, current, &error)),
    }
}

/// Reads the value of a setting from a line of YAML; none where it is empty or null. Texts are taken as they are.
pub(super) fn value(source: &Source, key: &'static Key, text: &str) -> Result<Option<Value>, SettingsError> {
    if matches!(key.kind, Kind::Text | Kind::Words(_) | Kind::Share(_) | Kind::Mode) {
        return Ok(Some(text.into()));
    }
    serde_saphyr::with_deserializer_from_str_with_options(text, options(), |yaml| OfKind(key.kind).deserialize(yaml))
        .map_err(|_| SettingsError::of(source, key, None, &key.expects()))
}

fn wrong(source: &Source, current: Option<(&'static Key, Option<u64>)>, error: &Error) -> SettingsError {
    let plain = error.without_snippet();
    let message = plain.to_string();
    let message = message.lines().next().unwrap_or_default();
    let line = plain.location().map(|at| at.line()).filter(|line| *line > 0);
    match current {
        Some((key, at)) => SettingsError::of(source, key, line.or(at), &format!("{} ({message})", key.expects())),
        None => SettingsError::new(source, line, format!("it is not a map of settings in YAML ({message})")),
    }
}

/// Settings are small: whoever needs more than this wants to keep us busy.
fn options() -> Options {
    serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_nodes: 5_000,
            max_events: 20_000,
            max_aliases: 200,
            max_anchors: 200,
            max_depth: 64,
            max_documents: 1,
        },
    }
}

/// The whole file: a map, or nothing.
struct Document<'a> {
    layer: &'a mut Layer,
    /// The setting whose value is being read.
    current: &'a mut Option<(&'static Key, Option<u64>)>,
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of settings")
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Spanned<String>>()? {
            let line = Some(name.referenced.line()).filter(|line| *line > 0);
            let Some(key) = key(&name.value) else {
                map.next_value::<IgnoredAny>()?;
                self.layer.unknown.push(Unknown { name: name.value, line });
                continue;
            };
            *self.current = Some((key, line));
            if let Some(value) = map.next_value_seed(OfKind(key.kind))? {
                self.layer.values.push(Given { key, value, line });
            }
            *self.current = None;
        }
        Ok(())
    }
}

/// A value of a kind; none for null.
#[derive(Clone, Copy)]
struct OfKind(Kind);

impl<'de> DeserializeSeed<'de> for OfKind {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, yaml: D) -> Result<Option<Value>, D::Error> {
        Ok(match self.0 {
            Kind::Switch => Option::<bool>::deserialize(yaml)?.map(Value::from),
            Kind::Count(..) => Option::<u64>::deserialize(yaml)?.map(Value::from),
            Kind::Amount => Option::<f64>::deserialize(yaml)?.map(finite).transpose()?,
            Kind::Words(_) | Kind::Share(_) | Kind::Text | Kind::Mode => {
                Option::<String>::deserialize(yaml)?.map(Value::from)
            }
            Kind::Texts => Option::<Texts>::deserialize(yaml)?.map(|texts| texts.0.into()),
            Kind::Map => Option::<Value>::deserialize(yaml)?,
        })
    }
}

fn finite<E: serde::de::Error>(number: f64) -> Result<Value, E> {
    Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("it is not finite"))
}

/// A text, or a list of texts.
struct Texts(Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts(vec![text.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element::<String>()? {
            texts.push(text);
        }
        Ok(Texts(texts))
    }
}
