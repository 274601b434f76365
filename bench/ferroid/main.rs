//! ferroid's AtomicSnowflakeGenerator beside an atomic add. Prints the time of an ID in times that of the add, with
//! one thread and with two, and the milliseconds by which the last ID is ahead of the clock after a second flat out.

use ferroid::{define_snowflake_id, generator::AtomicSnowflakeGenerator, id::SnowflakeTwitterId};
use ferroid::time::{MonotonicClock, TWITTER_EPOCH};
use std::hint::{black_box, spin_loop};
use std::sync::{atomic::{AtomicU64, Ordering}, Barrier};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

// So wide a sequence that it need not wait.
define_snowflake_id!(Wide, u64, reserved: 1, timestamp: 41, machine_id: 5, sequence: 17);

const SLICE: u32 = 200_000;

/// The time of the slowest thread for its share of a slice.
fn measure(threads: u32, work: impl Fn() + Sync) -> f64 {
    let begin = Barrier::new(threads as usize);
    let one = || {
        begin.wait();
        let begin = Instant::now();
        (0..SLICE / threads).for_each(|_| work());
        begin.elapsed().as_secs_f64()
    };
    std::thread::scope(|s| {
        let all: Vec<_> = (0..threads).map(|_| s.spawn(one)).collect();
        all.into_iter().map(|t| t.join().unwrap()).fold(0.0, f64::max)
    })
}

fn main() {
    let wide = AtomicSnowflakeGenerator::<Wide, _>::new(1, MonotonicClock::<1>::default());
    let counter = AtomicU64::new(0);
    for threads in [1, 2] {
        let mut ratios: Vec<f64> = (0..100)
            .map(|_| {
                let own = measure(threads, || { black_box(wide.next_id(|_| spin_loop())); });
                own / measure(threads, || { black_box(counter.fetch_add(1, Ordering::SeqCst)); })
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        print!("{} ", ratios[50]);
    }
    let usual = AtomicSnowflakeGenerator::<SnowflakeTwitterId, _>::new(1, MonotonicClock::<1>::with_epoch(TWITTER_EPOCH));
    let begin = Instant::now();
    let mut last = usual.next_id(|_| spin_loop());
    while begin.elapsed() < Duration::from_secs(1) {
        last = usual.next_id(|_| spin_loop());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    println!("{}", last.timestamp() as i128 + TWITTER_EPOCH.as_millis() as i128 - now.as_millis() as i128);
}
