#!/bin/sh
# Prints the version that goes into the binary: what git describe says of the
# root module's tags, or "devel" where there is no git or no commit.
# The other modules' tags (server/v1.2.3) are not looked at.
set -eu
cd "$(dirname "$0")/.."
git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null || echo devel
