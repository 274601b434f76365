#!/bin/sh
# Runs the quick checks, for make quick: format, and for each published module
# vet, staticcheck and the short tests of packages that changed since they last
# passed. It stops at the first failure. make test runs everything.
set -eu
cd "$(dirname "$0")/.."
unset GOWORK
export CGO_ENABLED=0 GOFLAGS=-gcflags=all=-dwarf=false # as in make test
export TZ=America/St_Johns # half an hour off, so that a time that is not in UTC shows

files=$("$(go env GOROOT)/bin/gofmt" -l .)
if [ -n "$files" ]; then
	echo "not formatted, run gofmt -w on:"
	echo "$files"
	exit 1
fi
mkdir -p bin
(cd tools && GOWORK=off go build -buildvcs=false -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck)
root=$PWD
for module in $(sh scripts/modules.sh); do
	echo "== $module"
	(cd "$module" && go vet ./... && "$root/bin/staticcheck" ./... && go test -short -vet=off -timeout 1h ./...)
done
