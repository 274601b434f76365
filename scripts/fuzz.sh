#!/bin/sh
# Runs every fuzz target of every published module in turn, each for the given time.
# Stops at the first one that fails, and prints its name.
#
#	scripts/fuzz.sh [TIME]        TIME as for go test -fuzztime: 30s, 2m, 1000x
set -eu
cd "$(dirname "$0")/.."
unset GOWORK
root=$PWD
time=${1:-30s}
mkdir -p build
list=$root/build/fuzz.list
log=$root/build/fuzz.log

# One line for each target: module, package, name. go test -list prints the
# names of a package and then its closing line, in a format for people, so the
# packages are listed one by one.
: >"$list"
modules=$(sh scripts/modules.sh)
for module in $modules; do
	cd "$root/$module"
	packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...)
	for package in $packages; do
		names=$(go test -vet=off -list '^Fuzz' "$package") || {
			echo "$names"
			echo "fuzz: $package does not compile"
			exit 1
		}
		for name in $names; do
			case $name in
			Fuzz*) echo "$module $package $name" >>"$list" ;;
			esac
		done
	done
	cd "$root"
done

# once runs one target, and also writes its output to the log.
once() {
	{
		go test -vet=off -run='^$' -fuzz="^$2\$" -fuzztime="$time" -parallel=2 "$1" && code=0 || code=$?
		echo "$code" >"$root/build/fuzz.status"
	} 2>&1 | tee "$log"
	test "$(cat "$root/build/fuzz.status")" = 0
}

total=$(($(wc -l <"$list")))
n=0
while read -r module package name; do
	n=$((n + 1))
	echo "== $n/$total $name in $package, $time"
	cd "$root/$module"
	if ! once "$package" "$name"; then
		# Before Go 1.27 a run in which nothing failed may end with this
		# error when its time is up (golang/go#75804): run it once more.
		if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log" &&
			echo "== $name again: the time was up, but nothing had failed" && once "$package" "$name"; then
			:
		else
			echo "fuzz: failed: $name in $package"
			exit 1
		fi
	fi
	cd "$root"
done <"$list"
echo "fuzz: $total targets run, $time each, none failed"
