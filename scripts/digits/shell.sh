#!/bin/sh
# Runs the rows of docs/digits.md for shells and their tools, those that are installed.
set -eu
command -v awk >/dev/null || exit 3
A=1179183313482456071 N=1179183313482456070

# row WHAT PACKAGE GOT [EXACT] prints the version of a Debian package, and one line of GOT.
row() {
	version=$(dpkg-query -W -f '${source:Upstream-Version}' "$2" 2>/dev/null) || version='?'
	printf '%s\t%s\t%s\t%s\n' "$1" "$version" "$(echo "$3" | xargs)" "${4-}"
}
have() { command -v "$1" >/dev/null; }
id() { echo "${1-$A}"; }
both() { printf '%s\n' "$A" "$N"; }

if have jq; then
	row 'jq .' jq "$(echo "[$A]" | jq -c .)" "$(echo "[\"$A\"]" | jq -c .)"
fi
if have gawk; then
	row 'gawk print $1 + 0' gawk "$(id | gawk '{ print $1 + 0 }')" "$(id | gawk -M '{ print $1 + 0 }')"
	row 'gawk $1 == n-1' gawk "$(id | gawk '{ print $1 == '$N' ? "true" : "false" }')" "$(id | gawk -M '$1 != '$N)"
fi
if have mawk; then
	row 'mawk print $1 + 0' mawk "$(id | mawk '{ print $1 + 0 }')" "$(id | mawk '{ print $1 }')"
	row 'mawk printf %d' mawk "$(id | mawk '{ printf "%d", $1 }')" "$(id | mawk '{ printf "%s", $1 }')"
fi
if have busybox; then
	row 'busybox awk printf %d' busybox "$(id | busybox awk '{ printf "%d", $1 }')" "$(id | busybox awk '{ printf "%s", $1 }')"
	row 'busybox sort -nu of n, n-1' busybox "$(both | busybox sort -nu)" "$(both | busybox sort -u | tail -n 1)"
	row 'busybox printf %.0f' busybox "$(busybox printf %.0f $A)" "$(busybox printf %d $A)"
fi
row 'GNU sort -n, sort -g of n, n-1' coreutils "$(both | sort -nu) $(both | sort -gu)"
row 'sh $((n + 1)), expr, seq' dash "$(($A + 1)) $(expr $A + 1) $(seq $A $A)"
if have bc; then row 'bc n / 1' bc "$(echo "$A / 1" | bc)"; fi
if have datamash; then
	row 'datamash max 1' datamash "$(both | datamash max 1)" "$(both | sort -n | datamash last 1)"
	row 'datamash unique 1' datamash "$(both | datamash unique 1)"
fi
if have mlr; then
	row 'Miller $id * 1.0' miller "$(both | mlr --inidx --onidx put '$1 = $1 * 1.0')" "$(id | mlr --inidx --onidx put '$1 = $1 * 1')"
fi
if have jo; then row 'jo id=n' jo "$(jo id=$A)" "$(jo -- -s id=$A)"; fi
if have perl; then
	row 'Perl "n.0" + 0' perl "$(perl -e "print '$A.0' + 0")" "$(perl -e "print '$A' + 0")"
	row 'Perl "n.0" == "n-1"' perl "$(perl -e "print '$A.0' == '$N' ? 'true' : 'false'")" "$(perl -e "print '$A' if '$A' ne '$N'")"
	row 'Perl sprintf %.0f' perl "$(perl -e "printf '%.0f', $A")" "$(perl -e "printf '%d', $A")"
	row 'Perl JSON::PP decode' perl "$(perl -MJSON::PP -e "print decode_json('[$A]')->[0]")"
fi
if have tclsh; then row 'Tcl expr {n + 1.0}' tcl "$(echo "puts [expr {$A + 1.0}]" | tclsh)" "$(echo "puts [expr {$A + 0}]" | tclsh)"; fi
