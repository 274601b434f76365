# Reads the output of go test -v for many packages and prints the part for people:
# the closing line of each package, the output of failed tests and of the compiler,
# and nothing of the tests that passed.
#
# Reports of the tests, and their numbers, go to the file named by the variable
# facts, one per line, for scripts/test.sh to sum up:
#
#	vectors FILE ROWS        a test wrote "vectors: FILE ROWS rows"
#	report TEXT              a test wrote "report: TEXT" or, for vectors that
#	                         are not read yet, "vectors: FILE 0 of ROWS rows: REASON"
#	slow NAME SECONDS        a test took long
#	skipped NAME: REASON
#	count PASSED FAILED SKIPPED
#
# A test writes such a line with t.Log, t.Output or fmt.Println.

function add(test, line) {
	if (!(test in out)) {
		order[++tests] = test
		out[test] = ""
	}
	out[test] = out[test] line "\n"
}

# flush ends a package: it prints the output of failed tests, or everything if
# the failure belongs to no test, and discards the rest.
function flush(failed_package,    i, test, blamed) {
	if (failed_package) {
		blamed = 0
		for (i = 1; i <= tests; i++)
			if (order[i] in failed)
				blamed = 1
		for (i = 1; i <= tests; i++) {
			test = order[i]
			if (!blamed || test == "" || test in failed)
				printf "%s", out[test]
		}
		if (!here)
			nfailed++ # it did not compile, or crashed
	}
	here = 0
	for (i in out) delete out[i]
	for (i in order) delete order[i]
	for (i in failed) delete failed[i]
	tests = 0
	current = ""
	crashed = 0
	compiler = 0
}

# said returns a line without the prefix of t.Log.
function said(line) {
	sub(/^ *([A-Za-z0-9_]+\.go:[0-9]+: )?/, "", line)
	return line
}

# reason returns the last line that a test wrote, without the file it is from.
function reason(test,    n, lines) {
	n = split(out[test], lines, "\n")
	if (n < 2)
		return "no reason given"
	return said(lines[n - 1])
}

# The closing line of a package.
/^(ok  |FAIL|\?   )\t/ {
	flush($1 == "FAIL")
	print
	next
}

# A package or the whole run; the closing lines report it too.
/^(PASS|FAIL)$/ { next }

# After a crash, all output belongs to the crash.
crashed { add("!", $0); next }
/^(panic|fatal error|unexpected fault address|signal|SIG[A-Z]+): ?/ || /^exit status ([02-9]|1[0-9])/ {
	crashed = 1
	failed["!"] = 1
	failed[current] = 1 # its output may contain the reason
	if (current != "")
		add("!", "crashed; the last that was heard of is " current)
	add("!", $0)
	next
}

# Output of the compiler or the go command, up to the next test or package.
/^(# |go: )/ { compiler = 1 }
/^=== / { compiler = 0 }
compiler { print; next }

/^=== (RUN|NAME|CONT) / { current = $3; next }
/^=== / { next }

/^--- (PASS|FAIL|SKIP): / {
	seconds = substr($4, 2) + 0
	if (seconds >= 20)
		print "slow " $3 " " seconds >> facts
	if ($2 == "PASS:") npassed++
	if ($2 == "FAIL:") {
		nfailed++
		here++ # in this package
	}
	if ($2 == "SKIP:") {
		nskipped++
		print "skipped " $3 ": " reason($3) >> facts
	}
}
/^ *--- FAIL: / {
	failed[$3] = 1
	current = $3
	add(current, $0)
	next
}
/^ *--- (PASS|SKIP): / { next }

{
	add(current, $0)
	line = said($0)
	if (line ~ /^vectors: [^ ]+ [0-9]+ rows/) {
		split(line, word, " ")
		print "vectors " word[2] " " word[3] >> facts
	} else if (line ~ /^vectors: [^ ]+ 0 of [0-9]+ rows/) {
		print "report " line >> facts
	} else if (line ~ /^report: /) {
		sub(/^report: /, "report ", line)
		print line >> facts
	}
}

END {
	# A run that ended without its closing line.
	for (i = 1; i <= tests; i++)
		printf "%s", out[order[i]]
	print "count " npassed + 0 " " nfailed + 0 " " nskipped + 0 >> facts
}
