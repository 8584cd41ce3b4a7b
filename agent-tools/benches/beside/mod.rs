//! Measures work beside a floor: both in turn, sample by sample, so that a busy machine slows both.

use std::cell::RefCell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;

/// Few and short samples: all benchmarks together take a few minutes. Ratios, not times, are what to go by.
pub fn quick() -> Criterion {
    let quick = Criterion::default().without_plots().sample_size(15);
    quick.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_millis(800)).configure_from_args()
}

/// Reports `ours` as criterion does, and prints the median of its ratios to `floor`, the least that the same work could
/// take.
pub fn beside<A, B>(c: &mut Criterion, name: &str, mut ours: impl FnMut() -> A, mut floor: impl FnMut() -> B) {
    pairs(c, name, |times| (timed(times, &mut ours), timed(times, &mut floor)));
}

/// The same for work that measures itself and its floor, each so many times.
pub fn pairs(c: &mut Criterion, name: &str, mut measure: impl FnMut(u64) -> (Duration, Duration)) {
    let pairs = RefCell::new(Vec::new());
    c.bench_function(name, |b| {
        b.iter_custom(|times| {
            let (took, least) = measure(times);
            #[expect(clippy::cast_precision_loss, reason = "a number of iterations")]
            let each = |whole: Duration| whole.as_secs_f64() / times as f64;
            pairs.borrow_mut().push((each(took), each(least)));
            took
        });
    });
    tell(name, &pairs.into_inner());
}

fn timed<T>(times: u64, work: &mut impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    for _ in 0..times {
        black_box(work());
    }
    start.elapsed()
}

fn tell(name: &str, pairs: &[(f64, f64)]) {
    if pairs.is_empty() {
        return;
    }
    let by = |value: fn(&(f64, f64)) -> f64| median(pairs.iter().map(value).collect());
    let (took, least, ratio) = (by(|p| p.0), by(|p| p.1), by(|p| p.0 / p.1));
    println!("{name}: {ratio:.2} times the floor ({} beside {})\n", shown(took), shown(least));
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn shown(seconds: f64) -> String {
    format!("{:.3?}", Duration::from_secs_f64(seconds))
}
