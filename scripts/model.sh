#!/bin/sh
# Checks the model of the coordination protocol, docs/protocol/grants.pml, in
# many configurations: those that are right must hold for every behaviour, and
# each mutant, a deliberate mistake, must violate the property it is about. One line for each says
# what came out; a wrong result makes the exit code 1.
#
#	scripts/model.sh [fast|full]    fast, the default: about a minute; full: up to
#	                                an hour, for it takes larger ones too
#	scripts/model.sh fast NAME…     only the configurations of these names
#
# It needs spin and a C compiler. Where they are missing and it may, it installs
# them (root, apt-get); else it says SKIPPED and ends well. It writes to
# build/model (or MODELDIR) only. Two run at a time, each within 1.4 GB (full: 8 GB).
#
# docs/protocol/states.txt has the number of states of every configuration that
# must hold. Another number means that the model is another: if that is what was
# wanted, put the number that is printed into the table.
set -eu
cd "$(dirname "$0")/.."
dir=docs/protocol
work=${MODELDIR:-build/model}

# name | must | model | what is defined. What must not hold names the property that
# is violated.
configurations() {
	cat <<-'END'
		two-numbers | hold | grants | NI=2 T=4 MAXCAS=3
		restore-two-numbers | hold | grants | RESTORE NI=2 T=3 W=1 MAXCAS=2
		destroy | hold | grants | DESTROY=1 T=4 MAXCAS=3
		restore | hold | grants | RESTORE T=4 MAXCAS=3
		clone-bound | hold | grants | CLONE BOUND T=4 MAXCAS=3
		destroy-twice | hold | grants | DESTROY=2 T=3 W=1 MAXCAS=3
		any-writes | hold | grants | T=4
		any-writes-short-window | hold | grants | T=4 W=1
		look-then-take | hold | grants | LOOK T=4
		take-then-wait | hold | grants | WAIT T=4
		take-live-ones-too | hold | grants | ANYTAKE T=4
		three-processes | hold | grants | NP=3 T=3 W=1 MAXCAS=5
		compare-revision | hold | grants | REVCAS T=4 MAXCAS=4
		lease-ideal | hold | lease | CAREFUL
		start-at-clock | UNIQUE | grants | M_FROM T=4
		seal-late | UNIQUE | grants | M_SEAL LOOK T=4
		timeout-is-success | UNIQUE | grants | M_AMBIG T=4
		blind-renewal | UNIQUE | grants | M_BLIND T=4 W=1 MAXCAS=4
		stale-memory | UNIQUE | grants | M_STALE T=4
		release-foreign | UNIQUE | grants | M_FOREIGN T=4
		takeover-held | UNIQUE | grants | M_TAKEOVER T=4
		tick-at-until | UNIQUE | grants | M_UNTIL T=4
		limit-of-next-term | UNIQUE | grants | M_TERM WAIT T=4 W=1 MAXCAS=5
		number-of-next-term | UNIQUE | grants | M_NODE NI=2 T=4 W=1 MAXCAS=3
		term-below-last-used | ORDER | grants | M_SWITCH NP=1 NI=2 T=4
		cursor-back | ORDER | grants | M_CURSOR NP=1 T=4
		no-config-reread | ENDED | grants | M_NOREREAD DESTROY=1 T=4 MAXCAS=2
		no-config-reread-fence | UNIQUE | grants | M_NOREREAD RESTORE T=4 MAXCAS=3
		lapsed-not-marked | ENDED | grants | M_LAPSED DESTROY=1 T=4 MAXCAS=2
		mark-keeps-nonce | ENDED | grants | M_MARKONLY DESTROY=1 T=4 MAXCAS=2
		no-fence | UNIQUE | grants | M_NOFENCE RESTORE T=4 MAXCAS=3
		floor-only | UNIQUE | grants | M_FLOORONLY RESTORE T=4 W=1 MAXCAS=3
		used-before-fence | UNIQUE | grants | M_OPEN RESTORE T=4 MAXCAS=2
		revision-restored | UNIQUE | grants | REVCAS RESTORE T=4 MAXCAS=3
		clone | UNIQUE | grants | CLONE T=4
		clone-untaken-only | UNIQUE | grants | M_UNTAKEN CLONE BOUND T=4 MAXCAS=4
		lease-pause | UNIQUE | lease | CAREFUL PAUSE
		lease-skew | UNIQUE | lease | CAREFUL SKEW
		lease-same-tick | UNIQUE | lease |
	END
	test "$mode" = full || return 0
	cat <<-'END'
		full-any-writes-five-ticks | hold | grants | T=5
		full-any-writes-six-ticks | hold | grants | T=6
		full-any-writes-short-window | hold | grants | T=5 W=1
		full-look-and-destroy | hold | grants | LOOK DESTROY=1 T=4
		full-destroy-twice | hold | grants | DESTROY=2 T=3 W=1
		full-restore-two-numbers | hold | grants | RESTORE NI=2 T=4 W=1 MAXCAS=3
		full-two-numbers | hold | grants | NI=2 T=4 W=1 MAXCAS=4
		full-three-processes | hold | grants | NP=3 T=4 W=1 MAXCAS=4
		full-destroy-two-numbers | hold | grants | DESTROY=1 NI=2 T=3 W=1 MAXCAS=3
		full-restore | hold | grants | RESTORE T=5 W=1 MAXCAS=4
		full-clone-bound | hold | grants | CLONE BOUND T=4
		full-clone-bound-three | hold | grants | CLONE BOUND NP=3 T=4 MAXCAS=4
	END
}

# one checks the configuration of one such line.
one() {
	name=${1%% |*}
	set -f
	IFS='|'
	# shellcheck disable=SC2086
	set -- $1
	unset IFS
	must=$(echo $2) model=$(echo $3)
	flags=
	# Compiling well takes longer than a small run does.
	case $name in full-*) opt=-O2 ;; *) opt=-O0 ;; esac
	for d in ${4-}; do flags="$flags -D$d"; done
	set +f

	root=$PWD
	rm -rf "$work/$name"
	mkdir -p "$work/$name"
	cp "$dir/$model.pml" "$work/$name/"
	cd "$work/$name"
	spin -a $flags "$model.pml" >spin.out 2>&1 &&
		cc -w $opt -DSAFETY -DNOFAIR -DMEMLIM="$limit" -o pan pan.c >cc.out 2>&1 &&
		{ ./pan -E -m3000000 -w"$hash" >out 2>&1 || true; } || {
		: >>out
		cat spin.out cc.out 2>/dev/null || true
	}
	cd "$root"

	out=$work/$name/out
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$out")
	depth=$(sed -n 's/.*depth reached \([0-9]*\),.*/\1/p' "$out")
	seconds=$(sed -n 's/.*elapsed time \([0-9.e-]*\) seconds.*/\1/p' "$out")
	result=broken verdict=WRONG
	if grep -q 'assertion violated' "$out"; then
		case $(grep 'assertion violated' "$out") in
		*issued*) result=UNIQUE ;;
		*used*) result=ORDER ;;
		*cfg* | *late*) result=ENDED ;;
		esac
		test $result = $must && verdict=ok
	elif grep -q 'errors: 0' "$out" && ! grep -q 'Search not completed\|max search depth too small\|out of memory' "$out"; then
		result=hold
		if [ $must = hold ]; then
			verdict=ok
			want=$(awk -v name="$name" '$1 == name { print $2 }' $dir/states.txt)
			if [ "$want" != "$states" ]; then
				if [ "$(sed -n 's/^# \(Spin Version [0-9.]*\).*/\1/p' $dir/states.txt)" = "$(spin -V | grep -o 'Spin Version [0-9.]*')" ]; then
					verdict="WRONG: $dir/states.txt has ${want:-no} states"
				else
					verdict="ok, but $dir/states.txt, of another version of Spin, has ${want:-no} states"
				fi
			fi
		fi
	fi
	rm -f "$work/$name/pan" "$work/$name"/pan.*
	printf '%-30s must %-6s  does %-6s %12s states  depth %8s  %7s s  %s\n' \
		"$name" $must $result "${states:--}" "${depth:--}" "${seconds:--}" "$verdict" | tee "$work/$name.line"
}

mode=${1:-fast}
case $mode in
fast) limit=1400 hash=21 ;;
full) limit=8000 hash=24 ;;
one)
	mode=$2 limit=$3 hash=$4
	one "$5"
	exit
	;;
*)
	echo "usage: scripts/model.sh [fast|full [NAME…]]" >&2
	exit 2
	;;
esac
test $# = 0 || shift

have() { command -v spin >/dev/null 2>&1 && command -v cc >/dev/null 2>&1; }
if ! have && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	install='DEBIAN_FRONTEND=noninteractive timeout 120 apt-get install -y -qq --no-install-recommends spin gcc libc6-dev'
	sh -c "$install" </dev/null >/dev/null 2>&1 ||
		{ timeout 120 apt-get update -qq </dev/null >/dev/null 2>&1 && sh -c "$install" </dev/null >/dev/null 2>&1; } || true
fi
if ! have; then
	echo "SKIPPED: the model of the coordination protocol was NOT checked: spin or a C compiler is missing (Debian: apt-get install spin gcc)"
	exit 0
fi

begin=$(date +%s)
rm -rf $work
mkdir -p $work
{
	if [ $# = 0 ]; then configurations; else
		for name in "$@"; do configurations | grep "^$name |" || echo "$name | hold | unknown |"; done
	fi
} >$work/list
tr '\n' '\0' <$work/list | xargs -0 -n 1 -P 2 sh scripts/model.sh one $mode $limit $hash || true

while read -r name rest; do cat "$work/$name.line" 2>/dev/null || echo "$name must run does nothing 0 WRONG"; done <$work/list >$work/results
code=0
awk -v seconds=$(($(date +%s) - begin)) -v want=$(($(wc -l <$work/list))) '
	$3 == "hold" { hold++; held += $5 == "hold" }
	$3 != "hold" { fail++; failed += $5 == $3 }
	{ states += $6; wrong += / WRONG/ }
	END {
		printf "report: model: %d configurations, %.0f states, %d of %d hold, %d of %d mutants caught, %d wrong, %d s\n",
			NR, states, held, hold, failed, fail, wrong, seconds
		exit wrong > 0 || NR != want
	}' $work/results || code=1
exit $code
