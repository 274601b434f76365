#!/bin/sh
# Checks the model of the coordination protocol, docs/protocol/grants.pml, in
# many configurations. Correct ones must hold for every behaviour, and each
# mutant, a deliberate mistake, must violate its property. It prints a line with
# the result of each, and exits with status 1 if a result is wrong.
#
#	scripts/model.sh [fast]         all small configurations: three minutes
#	scripts/model.sh full           some minutes more, for larger ones
#	scripts/model.sh fast NAME…     only these configurations
#
# It needs spin and a C compiler. If they are missing and scripts/packages.sh cannot
# install them, it prints SKIPPED and succeeds. It writes only to build/model (or
# MODELDIR). Two run at a time, each within 1.4 GB (full: 3 GB).
#
# docs/protocol/states.txt lists the number of states of every configuration that
# must hold. Another number means that the model has changed: if that was
# intended, put the printed number into the table.
set -eu
cd "$(dirname "$0")/.."
dir=docs/protocol
work=${MODELDIR:-build/model}

# name | must | model | definitions. A configuration that must not hold names the
# property that it violates.
configurations() {
	cat <<-'END'
		two-numbers | hold | grants | NI=2 T=4 MAXCAS=3
		three-processes | hold | grants | NP=3 T=3 W=1 MAXCAS=4
		any-window | hold | grants | ANYWINDOW T=3 W=1
		look-then-take | hold | grants | LOOK T=4 MAXCAS=4
		take-then-wait | hold | grants | WAIT T=4 MAXCAS=4
		take-live-ones-too | hold | grants | ANYTAKE T=4 MAXCAS=4
		compare-revision | hold | grants | REVCAS T=4 MAXCAS=3
		clone-bound | hold | grants | CLONE BOUND T=4 MAXCAS=3
		destroy | hold | grants | DESTROY=1 T=4 MAXCAS=2
		destroy-late-pick | hold | grants | DESTROY=1 LATEPICK T=3 W=1 MAXCAS=2
		destroy-twice | hold | grants | DESTROY=2 T=3 W=1 MAXCAS=2
		restore | hold | grants | RESTORE T=4 MAXCAS=3
		restore-two-numbers | hold | grants | RESTORE NI=2 T=3 W=1 MAXCAS=2
		failover | hold | grants | FAILOVER=1 T=3 W=1 MAXCAS=4
		failover-any-writes | hold | grants | FAILOVER=1 T=2 W=1
		failover-destroy | hold | grants | FAILOVER=1 DESTROY=1 T=2 W=1 MAXCAS=2
		failover-old-primary | hold | grants | FAILOVER=1 OLDREADS DESTROY=1 IDLE T=2 W=1 MAXCAS=2
		failover-repair | hold | grants | FAILOVER=1 GAP REPAIRS=1 T=3 W=1 MAXCAS=3
		failover-repair-destroy | hold | grants | FAILOVER=1 GAP REPAIRS=1 DESTROY=1 IDLE NP=1 T=3 W=1 MAXCAS=2
		cap | hold | grants | RESTORE CLOCK LAST=2 LENGTHS=1 T=5 W=1 MAXCAS=3
		cap-skew | hold | grants | RESTORE CLOCK LAST=1 SKEW=1 LENGTHS=1 T=4 W=1 MAXCAS=3
		cap-window-grows | hold | grants | RESTORE CLOCK LAST=2 LENGTHS=1 T=5 W=1 W2=3 MAXCAS=2
		fence-too-short | hold | grants | RESTORE CLOCK LAST=2 A=0 T=3 W=1 W2=3 M_SHORTW POLL=1 DIRECT MAXCAS=2
		repair | hold | grants | GAP REPAIRS=1 T=4 W=1 MAXCAS=3
		repair-twice | hold | grants | GAP REPAIRS=2 T=4 W=1 MAXCAS=3
		repair-and-fence | hold | grants | GAP REPAIRS=1 RESTORE T=3 W=1 MAXCAS=2
		repair-fence-keeps-gap | hold | grants | GAP REPAIRS=2 RESTORE KEEPGAP T=3 W=1 MAXCAS=2
		repair-and-destroy | hold | grants | GAP REPAIRS=1 DESTROY=1 T=3 W=1 MAXCAS=2
		takeover-noticed | hold | grants | NOTICE ANYTAKE T=4 W=1 MAXCAS=4
		rollback-noticed | hold | grants | NOTICE ROLLBACK T=3 W=1 MAXCAS=3
		copy-noticed | hold | grants | NOTICE CLONE BOUND NP=3 T=3 W=1 MAXCAS=2
		lease-ideal | hold | lease | CAREFUL
		start-at-clock | UNIQUE | grants | M_FROM T=4
		seal-late | UNIQUE | grants | M_SEAL LOOK T=4
		seal-after-release | UNIQUE | grants | M_ASYNC T=4 MAXCAS=3
		opened-again | UNIQUE | grants | M_REOPEN T=4 MAXCAS=3
		timeout-is-success | UNIQUE | grants | M_AMBIG T=4
		blind-renewal | UNIQUE | grants | M_BLIND T=4 W=1 MAXCAS=4
		renewal-lowers-mark | UNIQUE | grants | M_SHRINK T=4 W=1 MAXCAS=3
		stale-memory | UNIQUE | grants | M_STALE T=4
		release-foreign | UNIQUE | grants | M_FOREIGN T=4
		release-to-clock | UNIQUE | grants | M_GIVECLOCK T=4 MAXCAS=4
		release-below-from | UNIQUE | grants | M_BELOWFROM T=4 MAXCAS=4
		drop-to-clock | UNIQUE | grants | M_DROPCLOCK T=4 MAXCAS=4
		takeover-held | UNIQUE | grants | M_TAKEOVER T=4
		tick-at-until | UNIQUE | grants | M_UNTIL T=4
		limit-of-next-term | UNIQUE | grants | M_TERM WAIT ANYTAKE T=3 W=1 MAXCAS=4
		number-of-next-term | UNIQUE | grants | M_NODE NI=2 T=4 W=1 MAXCAS=3
		no-nonce | UNIQUE | grants | M_NONONCE T=3 MAXCAS=5
		term-below-last-used | ORDER | grants | M_SWITCH NP=1 NI=2 T=4
		cursor-back | ORDER | grants | M_CURSOR NP=1 T=4
		adopted-on-a-read | UNIQUE | grants | M_ADOPTREAD FAILOVER=1 T=4 MAXCAS=3
		applied-not-replicated | UNIQUE | grants | M_WARNED FAILOVER=1 T=4 MAXCAS=3
		no-config-reread | ENDED | grants | M_NOREREAD DESTROY=1 T=4 MAXCAS=2
		lapsed-not-marked | ENDED | grants | M_LAPSED DESTROY=1 T=4 MAXCAS=2
		mark-keeps-nonce | ENDED | grants | M_MARKONLY DESTROY=1 T=4 MAXCAS=2
		mark-lowered | UNIQUE | grants | M_CLOSELOWER DESTROY=1 T=4 MAXCAS=2
		end-by-state | ENDED | grants | M_OPSTATE DESTROY=2 T=3 W=1 MAXCAS=2
		records-wiped | UNIQUE | grants | M_WIPE DESTROY=1 T=4 MAXCAS=2
		closed-on-a-read | ENDED | grants | M_SEENCLOSED FAILOVER=1 DESTROY=1 T=2 W=1 MAXCAS=2
		free-on-a-read | ENDED | grants | M_SEENFREE FAILOVER=1 GAP REPAIRS=1 DESTROY=1 IDLE NP=1 T=3 W=1 MAXCAS=2
		listed-before-a-write | ENDED | grants | M_FIRSTREAD FAILOVER=1 OLDREADS DESTROY=1 T=2 W=1 MAXCAS=2
		ended-on-a-read | ENDED | grants | M_SEENENDED FAILOVER=1 OLDREADS DESTROY=1 T=2 W=1 MAXCAS=2
		reread-of-old-primary | ENDED | grants | M_OLDREAD FAILOVER=1 OLDREADS DESTROY=1 T=2 W=1 MAXCAS=2
		no-config-reread-fence | UNIQUE | grants | M_NOREREAD RESTORE T=4 MAXCAS=3
		reread-compares-state | UNIQUE | grants | M_STATE RESTORE T=4 MAXCAS=3
		no-fence | UNIQUE | grants | M_NOFENCE RESTORE T=4 MAXCAS=3
		floor-only | UNIQUE | grants | M_FLOORONLY RESTORE T=3 W=1 MAXCAS=3
		records-only | UNIQUE | grants | M_NOFLOOR RESTORE T=4 W=1 MAXCAS=3
		floor-ignored | UNIQUE | grants | M_MARKSONLY RESTORE T=4 MAXCAS=3
		fence-lowers-mark | UNIQUE | grants | M_FENCELOWER RESTORE T=3 W=1 MAXCAS=3
		used-before-fence | UNIQUE | grants | M_OPEN RESTORE T=3 W=1 MAXCAS=3
		late-before-fence | UNIQUE | grants | M_LATE RESTORE T=3 W=1 MAXCAS=3
		revision-restored | UNIQUE | grants | REVCAS RESTORE T=3 W=1 MAXCAS=3
		uncapped | UNIQUE | grants | M_UNCAPPED RESTORE CLOCK LAST=1 LENGTHS=1 A=0 T=2 W=1 MAXCAS=3
		claim-far-ahead | UNIQUE | grants | M_FARCLAIM ANYTAKE RESTORE CLOCK LAST=1 LENGTHS=1 A=0 T=2 W=1 MAXCAS=3
		window-forgotten | UNIQUE | grants | M_SHORTW RESTORE CLOCK LAST=2 A=0 T=3 W=1 W2=3 MAXCAS=2
		no-skew | UNIQUE | grants | M_NOSKEW RESTORE CLOCK LAST=2 SKEW=2 A=0 T=3 W=1 MAXCAS=2
		floor-not-obeyed | UNIQUE | grants | M_NOSEAL RESTORE CLOCK LAST=2 A=0 T=3 W=1 W2=3 M_SHORTW POLL=1 DIRECT MAXCAS=2
		floor-read-too-late | UNIQUE | grants | RESTORE CLOCK LAST=2 A=0 T=3 W=1 W2=3 M_SHORTW POLL=2 DIRECT MAXCAS=2
		floor-never-read | UNIQUE | grants | RESTORE CLOCK LAST=2 A=0 T=3 W=1 W2=3 M_SHORTW POLL=1 CUTOFF DIRECT MAXCAS=2
		floor-after-reserve | UNIQUE | grants | RESTORE CLOCK LAST=2 A=0 T=3 W=1 W2=3 M_SHORTW POLL=1 MAXCAS=2
		claim-crosses-spoiled | UNIQUE | grants | M_CROSS CROSS=ACQUIRE GAP REPAIRS=1 T=4 W=1 MAXCAS=3
		renewal-crosses-spoiled | UNIQUE | grants | M_CROSS CROSS=RENEW GAP REPAIRS=1 T=4 W=1 MAXCAS=3
		claim-inside-spoiled | UNIQUE | grants | M_INSIDE GAP REPAIRS=1 T=4 W=1 MAXCAS=3
		repair-spoils-nothing | UNIQUE | grants | M_LOSTSPOIL LOST=REPAIR GAP REPAIRS=1 T=4 W=1 MAXCAS=3
		renewal-leaves-gap | UNIQUE | grants | M_GAPRENEW GAP REPAIRS=1 T=4 W=1 MAXCAS=3
		spoiled-is-gap | UNIQUE | grants | M_GAPSPOIL GAP REPAIRS=2 T=4 W=1 MAXCAS=4
		repair-forgets-spoiled | UNIQUE | grants | M_REPAIRSPOIL GAP REPAIRS=2 T=4 W=1 MAXCAS=4
		claim-forgets-spoiled | UNIQUE | grants | M_LOSTSPOIL LOST=ACQUIRE GAP REPAIRS=1 T=4 W=1 MAXCAS=3
		renewal-forgets-spoiled | UNIQUE | grants | M_LOSTSPOIL LOST=RENEW GAP REPAIRS=1 T=3 W=1 MAXCAS=4
		release-forgets-spoiled | UNIQUE | grants | M_LOSTSPOIL LOST=RELEASE GAP REPAIRS=1 T=3 W=1 MAXCAS=4
		drop-forgets-spoiled | UNIQUE | grants | M_LOSTSPOIL LOST=DROP GAP REPAIRS=1 T=3 W=1 MAXCAS=4
		closing-forgets-spoiled | UNIQUE | grants | M_LOSTSPOIL LOST=CLOSE GAP REPAIRS=1 DESTROY=1 T=3 W=1 MAXCAS=3
		fence-forgets-spoiled | UNIQUE | grants | M_LOSTSPOIL LOST=FENCE GAP REPAIRS=1 RESTORE T=3 W=1 MAXCAS=3
		clone | UNIQUE | grants | CLONE T=4
		clone-untaken-only | UNIQUE | grants | M_UNTAKEN CLONE BOUND T=4 MAXCAS=4
		overlap-not-sealed | NOTICED | grants | M_NOSEALOVER NOTICE ROLLBACK T=4 W=2 MAXCAS=4
		from-not-carried | NOTICED | grants | M_FROMLOST NOTICE ROLLBACK T=4 W=2 MAXCAS=5
		wall-for-from | NOTICED | grants | M_WALL NOTICE ROLLBACK T=4 W=2 MAXCAS=5
		overlap-is-takeover | NOTICED | grants | M_TAKEN NOTICE ROLLBACK T=4 W=2 MAXCAS=4
		takeover-freezes | NOTICED | grants | M_ANYOVER NOTICE ANYTAKE T=4 W=1 MAXCAS=4
		lease-pause | UNIQUE | lease | CAREFUL PAUSE
		lease-skew | UNIQUE | lease | CAREFUL SKEW
		lease-same-tick | UNIQUE | lease |
	END
	test "$mode" = full || return 0
	cat <<-'END'
		full-any-writes | hold | grants | T=4
		full-any-writes-five-ticks | hold | grants | T=5
		full-any-writes-short-window | hold | grants | T=5 W=1
		full-any-window | hold | grants | ANYWINDOW T=4 W=1
		full-look-then-take | hold | grants | LOOK T=4
		full-take-then-wait | hold | grants | WAIT T=4
		full-take-live-ones-too | hold | grants | ANYTAKE T=4
		full-two-numbers | hold | grants | NI=2 T=4 W=1 MAXCAS=4
		full-three-processes | hold | grants | NP=3 T=3 W=1 MAXCAS=5
		full-look-and-destroy | hold | grants | LOOK DESTROY=1 T=4 MAXCAS=3
		full-destroy-twice | hold | grants | DESTROY=2 T=3 W=1 MAXCAS=4
		full-destroy-any-writes | hold | grants | DESTROY=1 T=3 W=1
		full-destroy-late-pick | hold | grants | DESTROY=1 LATEPICK T=3 W=1 MAXCAS=4
		full-destroy-two-numbers | hold | grants | DESTROY=1 NI=2 T=3 W=1 MAXCAS=3
		full-restore | hold | grants | RESTORE T=5 W=1 MAXCAS=4
		full-restore-two-numbers | hold | grants | RESTORE NI=2 T=4 W=1 MAXCAS=3
		full-failover | hold | grants | FAILOVER=1 T=3 W=1 MAXCAS=5
		full-failover-twice | hold | grants | FAILOVER=2 T=3 W=1 MAXCAS=4
		full-failover-two-numbers | hold | grants | FAILOVER=1 NI=2 T=3 W=1 MAXCAS=3
		full-failover-three-processes | hold | grants | FAILOVER=1 NP=3 T=3 W=1 MAXCAS=3
		full-failover-destroy | hold | grants | FAILOVER=1 DESTROY=1 T=3 W=1 MAXCAS=2
		full-failover-old-primary | hold | grants | FAILOVER=1 OLDREADS DESTROY=1 T=2 W=1 MAXCAS=2
		full-failover-repair | hold | grants | FAILOVER=1 GAP REPAIRS=2 T=3 W=1 MAXCAS=4
		full-failover-repair-destroy | hold | grants | FAILOVER=1 GAP REPAIRS=1 DESTROY=1 NP=1 T=3 W=1 MAXCAS=3
		full-cap | hold | grants | RESTORE CLOCK LAST=3 T=6 W=2 MAXCAS=3
		full-cap-skew | hold | grants | RESTORE CLOCK LAST=2 SKEW=1 LENGTHS=1 T=5 W=1 MAXCAS=3
		full-cap-window-grows | hold | grants | RESTORE CLOCK LAST=2 LENGTHS=1 T=6 W=1 W2=3 MAXCAS=3
		full-fence-too-short | hold | grants | RESTORE CLOCK LAST=3 T=5 W=1 W2=3 M_SHORTW POLL=1 DIRECT MAXCAS=3
		full-repair | hold | grants | GAP REPAIRS=1 T=4 W=1 MAXCAS=4
		full-repair-long-window | hold | grants | GAP REPAIRS=2 T=5 W=2 MAXCAS=3
		full-repair-twice | hold | grants | GAP REPAIRS=2 T=4 W=1 MAXCAS=4
		full-repair-and-fence | hold | grants | GAP REPAIRS=1 RESTORE T=3 W=1 MAXCAS=3
		full-repair-and-destroy | hold | grants | GAP REPAIRS=1 DESTROY=1 T=3 W=1 MAXCAS=3
		full-clone-bound | hold | grants | CLONE BOUND T=4 MAXCAS=4
		full-takeover-noticed | hold | grants | NOTICE ANYTAKE T=4 W=1 MAXCAS=5
		full-rollback-noticed | hold | grants | NOTICE ROLLBACK T=4 W=2 MAXCAS=3
		full-copy-noticed | hold | grants | NOTICE CLONE BOUND NP=3 T=4 W=1 MAXCAS=3
		full-free-on-a-read | ENDED | grants | M_SEENFREE FAILOVER=1 DESTROY=1 ANYTAKE IDLE T=2 W=1 MAXCAS=4
	END
}

# one checks the configuration in one such line.
one() {
	name=${1%% |*}
	set -f
	IFS='|'
	# shellcheck disable=SC2086
	set -- $1
	unset IFS
	must=$(echo $2) model=$(echo $3)
	flags=
	# Optimizing takes longer than a small run.
	case $name in full-*) opt=-O1 ;; *) opt=-O0 ;; esac
	for d in ${4-}; do flags="$flags -D$d"; done
	set +f

	root=$PWD
	rm -rf "$work/$name"
	mkdir -p "$work/$name"
	cp "$dir/$model.pml" "$work/$name/"
	cd "$work/$name"
	spin -a $flags "$model.pml" >spin.out 2>&1 &&
		cc -w $opt -DSAFETY -DNOFAIR -DMEMLIM="$limit" -o pan pan.c >cc.out 2>&1 &&
		{ timeout "$most" ./pan -E -m3000000 -w"$hash" >out 2>&1 || true; } || {
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
		*.over*|*.frozen*) result=NOTICED ;;
		*used*) result=ORDER ;;
		*.late*) result=ENDED ;;
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

# A search ends by its memory. The limit in time is for one that hangs.
mode=${1:-fast}
case $mode in
fast) limit=1400 hash=21 most=3600 ;;
full) limit=3000 hash=24 most=36000 ;;
one)
	mode=$2 limit=$3 hash=$4 most=$5
	one "$6"
	exit
	;;
*)
	echo "usage: scripts/model.sh [fast|full [NAME…]]" >&2
	exit 2
	;;
esac
test $# = 0 || shift

have() { command -v spin >/dev/null 2>&1 && command -v cc >/dev/null 2>&1; }
sh scripts/packages.sh spin=spin cc=gcc cc=libc6-dev >&2
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
tr '\n' '\0' <$work/list | xargs -0 -n 1 -P 2 sh scripts/model.sh one $mode $limit $hash $most || true

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
