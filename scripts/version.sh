#!/bin/sh
# Prints the version for the binary: the output of git describe for the tags of
# the root module, or "devel" without git or without a commit. Tags of other
# modules (server/v1.2.3) are ignored.
set -eu
cd "$(dirname "$0")/.."
git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null || echo devel
