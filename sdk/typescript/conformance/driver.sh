#!/bin/sh
# Builds the package if necessary, and runs driver.mjs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../prepare.sh" >&2
exec node "$here/../../../build/typescript/conformance/driver.mjs" "$@"
