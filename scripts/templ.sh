#!/bin/sh
# Generates the Go code of the console's pages, *_templ.go, from its *.templ files. With
# the argument check, it changes nothing, and checks that the code is up to date.
#
# templ is built from tools/templ, into bin/.
set -eu
cd "$(dirname "$0")/.."
mkdir -p bin
(cd tools/templ && GOWORK=off go build -buildvcs=false -o ../../bin/ github.com/a-h/templ/cmd/templ)
templ=$PWD/bin/templ
cd server/internal/console
if [ "${1:-}" != check ]; then
	"$templ" generate -log-level warn
	exit
fi
for code in *_templ.go; do
	test -f "${code%_templ.go}.templ" || {
		echo "server/internal/console/$code has no .templ file: remove it"
		exit 1
	}
done
"$templ" generate -log-level warn -check || {
	echo "server/internal/console/*_templ.go are out of date: run scripts/templ.sh"
	exit 1
}
