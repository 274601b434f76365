#!/bin/sh
# pyexcel: reading a CSV file turns single hex IDs into floats, cell by cell.
#
# Packages: pyexcel 0.7.6, pyexcel-io 0.6.8 (PyPI).
# Guess: a column of hex IDs is text; a column of digits becomes numbers,
#   exact or rounded, as a whole.
# Behaviour: each cell is guessed alone: 12345e67 becomes the float 1.2345e+71
#   between neighbours that stay text, and saving the sheet as CSV writes
#   that. A 19-digit ID and 0012 are kept. Digits, one e and digits: a hex ID
#   can have this form at any time.
# Seen 2026-11-28: 12345e67 comes back as 1.2345e+71 and 9e100000 as text;
#   1179183313482456071 is exact.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check pyexcel==0.7.6 pyexcel-io==0.6.8

cat >main.py <<'EOF'
import pyexcel

with open("in.csv", "w") as file:
    file.write("id,hex\n1179183313482456071,ab345e67\n0012,12345e67\n5,9e100000\n")
rows = pyexcel.get_array(file_name="in.csv")
print(rows)
pyexcel.save_as(array=rows, dest_file_name="out.csv")
print(open("out.csv").read(), end="")
EOF
cat >want <<'EOF'
[['id', 'hex'], [1179183313482456071, 'ab345e67'], ['0012', 1.2345e+71], [5, '9e100000']]
id,hex
1179183313482456071,ab345e67
0012,1.2345e+71
5,9e100000
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "pyexcel-turns-one-hex-id-into-a-float: no longer holds" >&2; exit 1; }
