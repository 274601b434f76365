#!/bin/sh
# Prints the rows of docs/digits.md, of all languages or the named ones, as they are today, and
# reports what differs from the page. Packages come from public registries, into temporary
# folders; what is not installed here is skipped. make test does not run this.
#
#	scripts/digits.sh [NAME...]
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
: >build/digits.tsv
[ $# -gt 0 ] || set -- javascript python go jvm php ruby r lua shell databases spreadsheets
failed=0
for name; do
	code=0
	timeout 1800 sh "scripts/digits/$name.sh" >build/digits.out 2>build/digits.log </dev/null || code=$?
	tee -a build/digits.tsv <build/digits.out
	case $code in
	0) ;;
	3) echo "skipped $name: not installed" ;;
	*) failed=1 && echo "FAILED $name (exit $code)" && tail -n 5 build/digits.log ;;
	esac
done
awk -F '\t' '
	FNR == NR && NF < 3 { next } # what a library logs
	FNR == NR {
		row[$1] = $2 "\t" $3
		if ($4 != "" && $4 !~ /1179183313482456071/) { print "NOT EXACT\t" $0; bad = 1 }
		next
	}
	/^\| / {
		split($0, page, / *\| */)
		if (!(page[2] in row)) next
		split(row[page[2]], now)
		if (now[1] != page[3]) print "other version\t" page[2] "\t" now[1]
		if (now[2] != page[4]) { print "CHANGED\t" page[2] "\t" now[1] "\t" now[2]; bad = 1 }
		delete row[page[2]]
	}
	END {
		for (what in row) { print "NOT ON THE PAGE\t" what "\t" row[what]; bad = 1 }
		exit bad
	}' build/digits.tsv docs/digits.md || failed=1
exit $failed
