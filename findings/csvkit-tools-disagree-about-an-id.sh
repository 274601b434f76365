#!/bin/sh
# csvkit: csvsort and csvjoin keep the digits of an ID; csvjson, csvstat and
# csvsql do not.
#
# Packages: csvkit 2.2.0, agate 1.14.2, agate-sql 0.7.3 (PyPI).
# Guess: the tools of one suite read numbers as decimals (csvsort shows all
#   digits), so csvjson and csvsql --query are exact too.
# Behaviour: numbers are read as Decimal, but JSON output, statistics and the
#   in-memory database make floats of them. csvstat reports a smallest value
#   that the file does not hold.
# Seen 2026-11-28: csvsort …070 and …071; csvjson and csvsql
#   1.179183313482456e+18 twice; csvstat smallest = largest = …064, with 2
#   unique values.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check csvkit==2.2.0 agate==1.14.2 agate-sql==0.7.3

cat >ids.csv <<'EOF'
id,name
1179183313482456071,a
1179183313482456070,b
EOF
cat >run.sh <<'EOF'
PATH=$PWD/v/bin:$PATH
echo csvsort; csvsort -c id ids.csv
echo csvjson; csvjson ids.csv; echo
echo csvsql; csvsql --query 'select id, name from ids' ids.csv
csvstat -c id ids.csv | grep -E 'Unique|Smallest|Largest' | tr -s ' '
EOF
cat >want <<'EOF'
csvsort
id,name
1179183313482456070,b
1179183313482456071,a
csvjson
[{"id": 1.179183313482456e+18, "name": "a"}, {"id": 1.179183313482456e+18, "name": "b"}]
csvsql
id,name
1.179183313482456e+18,a
1.179183313482456e+18,b
	Unique values: 2
	Smallest value: 1179183313482456064
	Largest value: 1179183313482456064
EOF

sh run.sh 2>/dev/null >got
cat got
diff want got >&2 || { echo "csvkit-tools-disagree-about-an-id: no longer holds" >&2; exit 1; }
