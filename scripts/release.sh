#!/bin/sh
# Makes the release VERSION of the commit that is checked out, in
# build/release/VERSION. See docs/release.md.
#
#	[TARGETS=linux/amd64,…] [KEY=FILE] scripts/release.sh v1.2.3
set -eu
cd "$(dirname "$0")/.."
if [ -z "${1:-}" ]; then
	echo 'usage: make release VERSION=v1.2.3' >&2
	exit 2
fi
mkdir -p bin
(cd tools/release && GOWORK=off go build -buildvcs=false -o ../../bin/release .)
exec bin/release -version "$1" -targets "${TARGETS:-}" -key "${KEY:-}"
