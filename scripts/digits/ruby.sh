#!/bin/sh
# Runs the Ruby rows of docs/digits.md.
set -eu
command -v ruby >/dev/null || exit 3
exec ruby -rjson -ryaml -rcsv -rbigdecimal - <<'END'
A = 1179183313482456071
def row(what, got, exact = "") = puts([what, RUBY_VERSION, got, exact].join("\t"))
def csv(text, **options) = CSV.parse("id\n#{text}\n", headers: true, **options)[0]["id"]

row "JSON.parse, YAML.load", [JSON.parse("[#{A}]")[0], YAML.load("#{A}")].uniq
row "n == n.to_f", A == A.to_f
row "max of n, (n-1).to_f", [A, (A - 1).to_f].max
row "sum of n, 0.0", [A, 0.0].sum, [A, 0].sum
row "n.fdiv(1), n / 1.0", [A.fdiv(1), A / 1.0].uniq, A / 1
row "divmod(1.0)", A.divmod(1.0)[0], A.divmod(1)[0]
row "CSV with converters numeric", csv(A, converters: :numeric)
row "CSV with converters numeric, n.0", csv("#{A}.0", converters: :numeric), csv("#{A}.0").to_i
row "format %d of a Float", format("%d", A.to_f), format("%d", A)
row "format %.0f of an Integer", format("%.0f", A)
row "BigDecimal(n.to_f, 0)", BigDecimal(A.to_f, 0).to_i, BigDecimal(A).to_i
END
