#!/bin/sh
# busybox: sort -nu keeps one of two neighbouring IDs.
#
# Packages: busybox 1:1.35.0-4+deb12u1+b1 (Debian 12, unpacked in a temp
#   folder); the sort of Alpine images.
# Guess: sort -n -u drops equal lines, or lines of equal numbers; 19 digits
#   are compared as digits, as GNU sort does.
# Behaviour: numbers are compared as doubles, and -u drops what compares
#   equal: a list of distinct IDs gets shorter. sort -u keeps all.
# Seen 2026-11-28: of 1,000 consecutive IDs sort -nu keeps 5, sort -u 1000,
#   GNU sort -nu 1000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

apt-get -q download busybox=1:1.35.0-4+deb12u1+b1 >apt.log 2>&1
dpkg -x ./*.deb root

cat >run.sh <<'EOF'
seq 1179183313482456000 1179183313482456999 >ids
echo "busybox sort -nu: $(root/bin/busybox sort -nu ids | wc -l)"
echo "busybox sort -u:  $(root/bin/busybox sort -u ids | wc -l)"
echo "GNU sort -nu:     $(sort -nu ids | wc -l)"
EOF
cat >want <<'EOF'
busybox sort -nu: 5
busybox sort -u:  1000
GNU sort -nu:     1000
EOF

sh run.sh >got
cat got
diff want got >&2 || { echo "busybox-sort-nu-drops-neighbouring-ids: no longer holds" >&2; exit 1; }
