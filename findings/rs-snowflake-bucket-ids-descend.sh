#!/bin/sh
# rs-snowflake: the IDs of a SnowflakeIdBucket come in descending order, with
# the time at which the bucket was made.
#
# Package: rs-snowflake 0.6.0 (crates.io).
# Guess: get_id() makes IDs like the generator, only faster: each is larger
#   than the one before, and has the time of about now.
# Behaviour: a bucket is filled with 4,091 IDs in ascending order, and get_id()
#   takes the last one first. The time is that of SnowflakeIdBucket::new, plus
#   1 ms for each 4,096 IDs: the clock is not read again.
# Seen 2026-11-30: all 4,090 steps between 4,091 IDs of a bucket go down, none
#   of the generator. An ID that is taken a second later is from 1 ms later.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

mkdir src
cat >Cargo.toml <<'EOF'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"

[dependencies]
rs-snowflake = "=0.6.0"
EOF

cat >src/main.rs <<'EOF'
use snowflake::{SnowflakeIdBucket, SnowflakeIdGenerator};
use std::{thread, time::Duration};

fn main() {
    let mut generator = SnowflakeIdGenerator::new(1, 1);
    let ids: Vec<i64> = (0..4091).map(|_| generator.real_time_generate()).collect();
    println!("generator: {} of {} steps go down", ids.windows(2).filter(|w| w[1] < w[0]).count(), ids.len() - 1);

    let mut bucket = SnowflakeIdBucket::new(1, 1);
    let ids: Vec<i64> = (0..4091).map(|_| bucket.get_id()).collect();
    println!("bucket: {} of {} steps go down", ids.windows(2).filter(|w| w[1] < w[0]).count(), ids.len() - 1);

    let start = (ids[0] >> 22) as u64;
    thread::sleep(Duration::from_secs(1));
    println!("bucket after a second: {} ms later", (bucket.get_id() >> 22) as u64 - start);
    let later = (generator.real_time_generate() >> 22) as u64 - start;
    println!("generator after a second: at least 1000 ms later: {}", later >= 1000);
}
EOF
cat >want <<'EOF'
generator: 0 of 4090 steps go down
bucket: 4090 of 4090 steps go down
bucket after a second: 1 ms later
generator after a second: at least 1000 ms later: true
EOF

cargo run -q 2>cargo.log >got
cat got
diff want got >&2 || { echo "rs-snowflake-bucket-ids-descend: no longer holds" >&2; exit 1; }
