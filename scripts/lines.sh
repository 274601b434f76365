#!/bin/sh
# Counts the source lines of the root module and server/, without tests, test data
# and generated code, and lists functions of more than 100 lines and files of more
# than 700.
#
#	scripts/lines.sh [REVISION]    REVISION defaults to the working tree
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	git archive "$1" | tar -x -C "$tmp"
	cd "$tmp"
fi
others=$(find . -mindepth 2 -name go.mod ! -path ./server/go.mod | sed 's,/go.mod$,,')
prune=
for dir in $others; do prune="$prune -path $dir -prune -o"; done
# shellcheck disable=SC2086 # the words of prune are arguments
find . $prune -path '*/testdata' -prune -o -name '.?*' -prune -o \
	-name '*.go' ! -name '*_test.go' ! -name '*.pb.go' -print | sort |
	xargs awk '
	FNR == 1 {
		if (file != "" && n > 700) long = long sprintf("  %5d %s\n", n, file)
		file = FILENAME
		files++
		dir = file
		sub(/\/[^\/]*$/, "", dir)
	}
	{ n = FNR; lines++; of[dir]++ }
	/^func / { begin = FNR; name = $0; sub(/ *\{.*/, "", name) }
	/^}/ && begin { if (FNR - begin + 1 > 100) big = big sprintf("  %5d %s: %s\n", FNR - begin + 1, file, name); begin = 0 }
	END {
		if (n > 700) long = long sprintf("  %5d %s\n", n, file)
		for (dir in of) printf "  %5d %s\n", of[dir], dir | "sort -rn"
		close("sort -rn")
		printf "%d lines in %d files\n", lines, files
		printf "functions of more than 100 lines:%s\n%s", big == "" ? " none" : "", big
		printf "files of more than 700 lines:%s\n%s", long == "" ? " none" : "", long
	}'
