#!/bin/sh
# deepdiff: options about types and fractions make neighbouring integer IDs
# equal.
#
# Package: deepdiff 9.1.0 (PyPI).
# Guess: ignore_numeric_type_changes makes 10 and 10.0 equal;
#   significant_digits=5 looks at five digits after the point. Two different
#   ints differ in either case.
# Behaviour: with either option integers are compared as floats, so 63-bit IDs
#   within some hundred of each other are equal, also with ignore_order. A
#   check of a migration reports no difference.
# Seen 2026-11-28: DeepDiff({"id": n}, {"id": n - 1}) is empty with each of
#   the options, and a change without.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check deepdiff==9.1.0

cat >main.py <<'EOF'
from deepdiff import DeepDiff

n = 1179183313482456071
for options in ({}, {"ignore_numeric_type_changes": True}, {"significant_digits": 5}, {"ignore_order": True, "significant_digits": 3}):
    print(options, "|", DeepDiff([{"id": n}], [{"id": n - 1}], **options) or "no difference",
          "| 5 and 6:", bool(DeepDiff(5, 6, **options)))
EOF
cat >want <<'EOF'
{} | {'values_changed': {"root[0]['id']": {'new_value': 1179183313482456070, 'old_value': 1179183313482456071}}} | 5 and 6: True
{'ignore_numeric_type_changes': True} | no difference | 5 and 6: True
{'significant_digits': 5} | no difference | 5 and 6: True
{'ignore_order': True, 'significant_digits': 3} | no difference | 5 and 6: True
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "deepdiff-calls-neighbouring-ids-equal: no longer holds" >&2; exit 1; }
