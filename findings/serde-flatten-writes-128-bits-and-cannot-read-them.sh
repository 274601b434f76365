#!/bin/sh
# serde: a struct with a flattened or tagged u128 is written as JSON and
# cannot be read again.
#
# Packages: serde 1.0.229, serde_json 1.0.154 (crates.io).
# Guess: what a derived type writes it reads; u128 works in a plain struct, so
#   it does behind flatten, untagged and tag too.
# Behaviour: flatten and the enum representations keep values in a buffer that
#   has no 128-bit integers. Writing works, reading fails even for the value 5
#   when the type asks for u128. The move of an ID field into a shared,
#   flattened struct compiles, and breaks all readers.
# Seen 2026-11-28: plain: Ok; flatten and tag: "u128 is not supported";
#   untagged: "data did not match any variant". All three are written without
#   an error.
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
serde = { version = "=1.0.229", features = ["derive"] }
serde_json = "=1.0.154"
EOF

cat >src/main.rs <<'EOF'
use serde::{de::DeserializeOwned, Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Key {
    id: u128,
}

#[derive(Serialize, Deserialize)]
struct Flat {
    #[serde(flatten)]
    key: Key,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type")]
enum Tagged {
    Order { id: u128 },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Order { id: u128 },
}

fn round<T: Serialize + DeserializeOwned>(name: &str, value: T) {
    let json = serde_json::to_string(&value).unwrap();
    match serde_json::from_str::<T>(&json) {
        Ok(_) => println!("{name}: {json} Ok"),
        Err(e) => println!("{name}: {json} {e}"),
    }
}

fn main() {
    for id in [5, 2133333333333333333333333333333333333] {
        round("plain", Key { id });
        round("flatten", Flat { key: Key { id } });
        round("tag", Tagged::Order { id });
        round("untagged", Untagged::Order { id });
    }
}
EOF
cat >want <<'EOF'
plain: {"id":5} Ok
flatten: {"id":5} u128 is not supported at line 1 column 8
tag: {"type":"Order","id":5} u128 is not supported
untagged: {"id":5} data did not match any variant of untagged enum Untagged
plain: {"id":2133333333333333333333333333333333333} Ok
flatten: {"id":2133333333333333333333333333333333333} u128 is not supported at line 1 column 44
tag: {"type":"Order","id":2133333333333333333333333333333333333} u128 is not supported
untagged: {"id":2133333333333333333333333333333333333} data did not match any variant of untagged enum Untagged
EOF

cargo run -q 2>cargo.log >got
cat got
diff want got >&2 || { echo "serde-flatten-writes-128-bits-and-cannot-read-them: no longer holds" >&2; exit 1; }
