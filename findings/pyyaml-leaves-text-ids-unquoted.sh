#!/bin/sh
# PyYAML: of ten padded IDs it writes some without quotes, and other libraries
# read those as numbers.
#
# Packages: PyYAML 6.0.4 (the writer, YAML 1.1), ruamel.yaml 0.19.1 (the
#   reader, YAML 1.2) (PyPI). js-yaml 5.5.0 and yaml 2.9.1 of npm read the same.
# Guess: a string that looks like a number is quoted, as '0000123' is.
# Behaviour: PyYAML quotes what YAML 1.1 takes for a number. There 0000123 is
#   octal, but 0000189 is a text because of the 8, and 12345e67 is one because a
#   float needs a dot: both are written plain. In YAML 1.2 both are numbers. So
#   padded decimal IDs with an 8 or a 9, and hex IDs of the form
#   digits-e-digits, arrive as integers without zeros and as floats.
# Seen 2026-11-28: 0000189 is read as 189, 12345e67 as 1.2345e+71; 0000123 and
#   1179183313482456071 stay texts.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check PyYAML==6.0.4 ruamel.yaml==0.19.1

cat >main.py <<'EOF'
import yaml
from ruamel.yaml import YAML

ids = ["1179183313482456071", "0000123", "0000189", "12345e67", "1a345e67"]
text = yaml.safe_dump(ids)
print(text, end="")
print("PyYAML", yaml.safe_load(text) == ids)
print("ruamel", YAML(typ="safe", pure=True).load(text))
EOF
cat >want <<'EOF'
- '1179183313482456071'
- '0000123'
- 0000189
- 12345e67
- 1a345e67
PyYAML True
ruamel ['1179183313482456071', '0000123', 189, 1.2345e+71, '1a345e67']
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "pyyaml-leaves-text-ids-unquoted: no longer holds" >&2; exit 1; }
