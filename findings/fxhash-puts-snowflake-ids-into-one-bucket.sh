#!/bin/sh
# fxhash, rustc-hash 1: IDs shifted left by 22 bits have hashes with equal
# low bits.
#
# Packages: fxhash 0.2.1, rustc-hash 1.1.0 and, for comparison, 2.1.3
#   (crates.io).
# Guess: a hash function spreads 10,000 different keys over about 9,300 of
#   65,536 places.
# Behaviour: the hash is one multiplication, which never moves bits down: the
#   low 22 bits are 0 for each ID of one worker with sequence 0. The standard
#   HashMap takes the place from the low bits, so all keys of a map of up to 4
#   million places start at one place, and each access walks past the others.
#   Tests with the keys 1, 2, 3 behave well. rustc-hash 2 rotates the result
#   and is right.
# Seen 2026-11-28: 10,000 keys have 1 value of the low 16 bits with fxhash and
#   rustc-hash 1, more than 9,000 with rustc-hash 2.
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
fxhash = "=0.2.1"
rustc-hash = "=2.1.3"
rustc-hash-1 = { package = "rustc-hash", version = "=1.1.0" }
EOF

cat >src/main.rs <<'EOF'
use std::{collections::HashSet, hash::Hasher};

fn places<H: Hasher + Default>(shift: u32) -> usize {
    let low = |key: u64| {
        let mut hasher = H::default();
        hasher.write_u64(key);
        hasher.finish() & 0xffff
    };
    (1..=10000u64).map(|n| low(n << shift)).collect::<HashSet<_>>().len()
}

fn main() {
    for shift in [0, 12, 22] {
        println!(
            "n << {shift}: fxhash {}, rustc-hash 1 {}, rustc-hash 2 {}",
            places::<fxhash::FxHasher>(shift),
            places::<rustc_hash_1::FxHasher>(shift),
            places::<rustc_hash::FxHasher>(shift)
        );
    }
}
EOF
cat >want <<'EOF'
n << 0: fxhash 10000, rustc-hash 1 10000, rustc-hash 2 10000
n << 12: fxhash 16, rustc-hash 1 16, rustc-hash 2 10000
n << 22: fxhash 1, rustc-hash 1 1, rustc-hash 2 9911
EOF

cargo run -q 2>cargo.log >got
cat got
diff want got >&2 || { echo "fxhash-puts-snowflake-ids-into-one-bucket: no longer holds" >&2; exit 1; }
