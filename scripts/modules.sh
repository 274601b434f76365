#!/bin/sh
# Prints the directory of each module in go.work, one per line, relative to the
# repository's root: the modules that are published and that every check covers.
# bench/ and tools/ are not among them.
set -eu
cd "$(dirname "$0")/.."
dirs=$(GOWORK='' go list -m -f '{{.Dir}}')
echo "$dirs" | while read -r dir; do
	case $dir in
	"$PWD") echo . ;;
	"$PWD"/*) echo "${dir#"$PWD"/}" ;;
	*) echo "$dir" ;;
	esac
done
