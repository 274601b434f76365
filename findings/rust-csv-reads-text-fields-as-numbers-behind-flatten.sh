#!/bin/sh
# csv (Rust): a text ID of digits cannot be read into a String behind
# serde(flatten).
#
# Packages: csv 1.4.0, serde 1.0.229, serde_json 1.0.154 (crates.io).
# Guess: CSV has no types, so a field that is declared String takes every
#   text, and a map of JSON values gets strings.
# Behaviour: where serde does not tell the type, the reader guesses one for
#   each field. Behind flatten "0012" is an integer and refused for a String,
#   "x12" is accepted; as serde_json::Value "0012" is 12, the hex ID
#   "12345e67" is 1.2345e71, and "NaN" is null.
# Seen 2026-11-28: plain struct Ok for both rows; flatten: error in row 1, Ok
#   in row 2.
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
csv = "=1.4.0"
serde = { version = "=1.0.229", features = ["derive"] }
serde_json = "=1.0.154"
EOF

cat >src/main.rs <<'EOF'
use serde::{de::DeserializeOwned, Deserialize};
use std::{collections::BTreeMap, fmt::Debug};

#[derive(Deserialize, Debug)]
#[allow(dead_code)]
struct Key {
    id: String,
}

#[derive(Deserialize, Debug)]
#[allow(dead_code)]
struct Row {
    #[serde(flatten)]
    key: Key,
}

fn read<T: DeserializeOwned + Debug>(name: &str) {
    for row in csv::Reader::from_reader("id\n0012\nx12\n12345e67\n".as_bytes()).deserialize::<T>() {
        match row {
            Ok(row) => println!("{name}: {row:?}"),
            Err(e) => println!("{name}: {e}"),
        }
    }
}

fn main() {
    read::<Key>("struct");
    read::<Row>("flatten");
    read::<BTreeMap<String, serde_json::Value>>("value");
}
EOF
cat >want <<'EOF'
struct: Key { id: "0012" }
struct: Key { id: "x12" }
struct: Key { id: "12345e67" }
flatten: CSV deserialize error: record 1 (line: 2, byte: 3): invalid type: integer `12`, expected a string
flatten: Row { key: Key { id: "x12" } }
flatten: CSV deserialize error: record 3 (line: 4, byte: 12): invalid type: floating point `123450000000000000000000000000000000000000000000000000000000000000000000.0`, expected a string
value: {"id": Number(12)}
value: {"id": String("x12")}
value: {"id": Number(1.2345e+71)}
EOF

cargo run -q 2>cargo.log >got
cat got
diff want got >&2 || { echo "rust-csv-reads-text-fields-as-numbers-behind-flatten: no longer holds" >&2; exit 1; }
