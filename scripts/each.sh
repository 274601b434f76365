#!/bin/sh
# Runs a command in the directory of each published module. It runs in all of them,
# even if it fails in one, and fails if one did.
#
#	scripts/each.sh go test -race ./...
set -eu
cd "$(dirname "$0")/.."
unset GOWORK
modules=$(sh scripts/modules.sh)
status=0
for module in $modules; do
	echo "== $module: $*"
	(cd "$module" && "$@") || status=1
done
exit $status
