#!/bin/sh
# pino-pretty: the pretty log line shows an ID that the log line does not
# hold.
#
# Packages: pino 10.4.0, pino-pretty 13.2.0 (npm).
# Guess: pino refuses a bigint as JSON.stringify does, or writes a string;
#   what pino-pretty shows is what pino wrote.
# Behaviour: pino writes a bigint as bare digits, all of them. pino-pretty
#   parses the line and prints the rounded number: who searches for the ID
#   that the terminal shows finds nothing.
# Seen 2026-11-28: line 1179183313482456071, pretty 1179183313482456000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	pino@10.4.0 pino-pretty@13.2.0 >npm.log

cat >main.cjs <<'EOF'
const pino = require('pino')
const { prettyFactory } = require('pino-pretty')
let line = ''
const log = pino({ base: null, timestamp: false }, { write: (s) => { line += s } })
log.info({ order: 1179183313482456071n }, 'paid')
console.log(line.trim())
console.log(prettyFactory({ colorize: false })(line).trim())
EOF
cat >want <<'EOF'
{"level":30,"order":1179183313482456071,"msg":"paid"}
INFO: paid
    order: 1179183313482456000
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "pino-pretty-shows-another-id: no longer holds" >&2; exit 1; }
