# Functions of scripts/test.sh and scripts/soak.sh. They set summary and facts, the
# files that these functions add to, and run tests with bin/gotest.

(cd tools && GOWORK=off go build -buildvcs=false -o ../bin/gotest ./gotest)

# step NAME COMMAND… runs one step, and records its result and duration.
step() {
	name=$1
	shift
	echo "== $name"
	begin=$(date +%s)
	if "$@"; then result=ok; else result=FAILED; fi
	printf '%-44s %-6s %6d s\n' "$name" $result $(($(date +%s) - begin)) >>"$summary"
}

# check_model MODE checks the model of the protocol. It needs spin and a C compiler,
# and prints SKIPPED if they are unavailable.
check_model() {
	sh scripts/model.sh "$1" >build/model.log && code=0 || code=$?
	test $code = 0 || cat build/model.log
	grep '^report: \|^SKIPPED' build/model.log | sed 's/^report: /report /; s/^SKIPPED: /skipped model: /' >>"$facts"
	return $code
}

# finish NAME ends the script, with the steps that failed.
finish() {
	if grep -q ' FAILED  *[0-9]* s$' "$summary"; then
		echo "$1: failed: $(awk '$(NF-2) == "FAILED" { sub(/ +FAILED.*/, ""); printf "%s%s", sep, $0; sep = ", " }' "$summary")"
		exit 1
	fi
	echo "$1: all passed"
}
