//! What the model has read of the opening, kept on disk: half a minute of work on a slow machine, read back in a blink.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use candle_core::{Device, Result, Tensor, safetensors};
use sha2::{Digest, Sha256};

use super::engine::Look;

/// How many openings are kept: one a set of tools and skills. Each takes some 25 MB.
const KEPT: usize = 8;
/// How much of the weights file's head and tail tells it from another.
const SAMPLE: u64 = 64 * 1024;

/// The openings on disk. Without a directory nothing is kept.
pub(super) struct Shelf {
    directory: Option<PathBuf>,
}

impl Shelf {
    /// Those below this cache directory.
    pub(super) fn below(cache: Option<&Path>) -> Self {
        Self { directory: cache.map(|c| c.join("prefix")) }
    }

    /// What was kept under this key. A damaged file is as good as none.
    pub(super) fn find(&self, key: &str) -> Option<Vec<Look>> {
        let bytes = fs::read(self.path(key)?).ok()?;
        let (tensors, digest) = bytes.split_at_checked(bytes.len().checked_sub(Sha256::output_size())?)?;
        if Sha256::digest(tensors).as_slice() != digest {
            return None;
        }
        let mut named = safetensors::load_buffer(tensors, &Device::Cpu).ok()?;
        let layers = named.len() / 2;
        let mut take = |what: &str, i: usize| named.remove(&format!("{what}.{i}"));
        (0..layers).map(|i| Some(Look { keys: take("keys", i)?, values: take("values", i)? })).collect()
    }

    /// Keeps it, whole or not at all.
    ///
    /// # Errors
    /// The disk said no.
    pub(super) fn keep(&self, key: &str, layers: &[Look]) -> Result<()> {
        let (Some(directory), Some(path)) = (&self.directory, self.path(key)) else { return Ok(()) };
        fs::create_dir_all(directory)?;
        let file = tempfile::NamedTempFile::new_in(directory)?;
        let named: HashMap<String, Tensor> = layers
            .iter()
            .enumerate()
            .flat_map(|(i, l)| [(format!("keys.{i}"), l.keys.clone()), (format!("values.{i}"), l.values.clone())])
            .collect();
        safetensors::save(&named, file.path())?;
        let digest = Sha256::digest(fs::read(file.path())?);
        OpenOptions::new().append(true).open(file.path())?.write_all(&digest)?;
        file.persist(path).map_err(|e| e.error)?;
        Self::sweep(directory);
        Ok(())
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        self.directory.as_ref().map(|d| d.join(format!("{key}.bin")))
    }

    /// Lets the oldest go. What cannot be removed stays: it does no harm.
    fn sweep(directory: &Path) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        let age = |path: &PathBuf| path.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let is_ours = |path: &PathBuf| path.extension().is_some_and(|e| e == "bin");
        let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(is_ours).collect();
        files.sort_by_key(|path| std::cmp::Reverse(age(path)));
        for path in files.iter().skip(KEPT) {
            let _ = fs::remove_file(path);
        }
    }
}

/// The key of an opening: of which model, and which tokens.
pub(super) fn key(model: &[u8], tokens: &[u32]) -> String {
    let mut hash = Sha256::new_with_prefix(b"agent prefix 1");
    hash.update(model);
    for token in tokens {
        hash.update(token.to_le_bytes());
    }
    hex(&hash.finalize())
}

/// What tells a weights file from another: its length, its head and its tail.
///
/// # Errors
/// Those of the disk.
pub(super) fn mark(file: &mut File) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len();
    let mut hash = Sha256::new_with_prefix(len.to_le_bytes());
    for from in [0, len.saturating_sub(SAMPLE)] {
        let mut sample = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.take(SAMPLE).read_to_end(&mut sample)?;
        hash.update(&sample);
    }
    file.rewind()?;
    Ok(hash.finalize().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(tokens: usize) -> Vec<Look> {
        let tensor = |start: f32| {
            let numbers: Vec<f32> = (0u8..).take(tokens * 4).map(|i| start + f32::from(i)).collect();
            Tensor::from_vec(numbers, (1, tokens, 2, 2), &Device::Cpu)
                .unwrap()
                .to_dtype(candle_core::DType::F16)
                .unwrap()
        };
        (0u8..3).map(|i| Look { keys: tensor(f32::from(i)), values: tensor(-f32::from(i)) }).collect()
    }

    fn numbers(looks: &[Look]) -> Vec<f32> {
        let flat =
            |t: &Tensor| t.to_dtype(candle_core::DType::F32).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        looks.iter().flat_map(|l| [flat(&l.keys), flat(&l.values)]).flatten().collect()
    }

    #[test]
    fn what_is_kept_is_found_and_what_is_damaged_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::below(Some(directory.path()));
        assert!(shelf.find("a").is_none());
        shelf.keep("a", &looks(5)).unwrap();
        assert_eq!(numbers(&shelf.find("a").unwrap()), numbers(&looks(5)));
        let path = shelf.path("a").unwrap();
        let good = fs::read(&path).unwrap();
        for cut in [0, 10, good.len() / 2, good.len() - 1] {
            fs::write(&path, &good[..cut]).unwrap();
            assert!(shelf.find("a").is_none(), "cut at {cut}");
        }
        for at in [0, 8, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, bad).unwrap();
            assert!(shelf.find("a").is_none(), "flipped at {at}");
        }
        shelf.keep("a", &looks(6)).unwrap();
        assert_eq!(numbers(&shelf.find("a").unwrap()), numbers(&looks(6)));
    }

    #[test]
    fn only_the_latest_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::below(Some(directory.path()));
        let now = SystemTime::now();
        for i in 0..u32::try_from(KEPT).unwrap() + 2 {
            let key = format!("k{i}");
            shelf.keep(&key, &looks(1)).unwrap();
            let age = std::time::Duration::from_secs(u64::from(100 - i));
            File::open(shelf.path(&key).unwrap()).unwrap().set_modified(now - age).unwrap();
        }
        shelf.keep("last", &looks(1)).unwrap();
        let found = |key: &str| shelf.find(key).is_some();
        assert!(found("last") && found("k9") && found("k3"));
        assert!(!found("k0") && !found("k1") && !found("k2"));
        assert_eq!(fs::read_dir(directory.path().join("prefix")).unwrap().count(), KEPT);
    }

    #[test]
    fn without_a_directory_nothing_is_kept() {
        let shelf = Shelf::below(None);
        shelf.keep("a", &looks(1)).unwrap();
        assert!(shelf.find("a").is_none());
    }

    #[test]
    fn keys_differ_where_model_or_tokens_do() {
        let all = [key(b"m", &[1, 2]), key(b"m", &[2, 1]), key(b"m", &[1]), key(b"n", &[1, 2])];
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].contains(one));
        }
        assert_eq!(key(b"m", &[1, 2]), all[0]);
    }
}
