#!/bin/sh
# Runs the PHP rows of docs/digits.md.
set -eu
command -v php >/dev/null || exit 3
exec php -- <<'END'
<?php
const A = 1179183313482456071;

function show($v) { return is_bool($v) ? ($v ? "true" : "false") : (is_float($v) ? "float " . var_export($v, true) : (string) $v); }

function row($what, $got, $exact = "") { echo implode("\t", [$what, PHP_MAJOR_VERSION . "." . PHP_MINOR_VERSION . "." . PHP_RELEASE_VERSION, show($got), $exact]), "\n"; }

$n = (string) A;
row("json_decode", json_decode("[$n]")[0]);
row("json_decode of 2^63", json_decode("[9223372036854775808]")[0], json_decode("[$n]", false, 512, JSON_BIGINT_AS_STRING)[0]);
row("number_format", number_format(A), A . "");
row("round, floor", round(A), intdiv(A, 1));
row("array_sum with 0.0", array_sum([A, 0.0]), array_sum([A, 0]));
row("n.0 as a string, + 0", "$n.0" + 0, "$n" + 0);
row("printf %d of the string n.0", sprintf("%d", "$n.0"), sprintf("%d", $n));
row("the strings n.0 == n-1.0", "$n.0" == (A - 1) . ".0", "$n.0" === (A - 1) . ".0" ? "" : $n);
row("n == (float) (n-1)", A == (float) (A - 1), A === (float) (A - 1) ? "" : $n);
row("echo of a float", (string) (float) A, (string) A);
row("0e12345678901 == 0e98765432109, hex IDs as strings", "0e12345678901" == "0e98765432109", "0e12345678901" === "0e98765432109" ? "" : $n);
END
