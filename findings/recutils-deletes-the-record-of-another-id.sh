#!/bin/sh
# GNU recutils: Id = n finds, and recdel deletes, each record whose ID has the
# same low 32 bits, and the next ID of %auto is 0.
#
# Packages: recutils and librec1 1.9-2 (Debian 12, unpacked in a temp folder).
# Guess: a field of type int holds an integer of any size, as recfix --check
#   accepts it and the manual names no limit: = finds one record, > compares
#   numbers, and %auto continues after the largest.
# Behaviour: in an expression, fields and numbers become 32-bit ints. IDs with
#   equal low bits are equal, and an ID of today is positive or negative by
#   chance. %auto calculates with these too.
# Seen 2026-11-30: Id = n finds the records of n and of n + 2^32, and recdel
#   with it deletes both; Id < 0 finds them too, Id > 1000 does not. recins
#   gives the next record the Id 0, and -2147483648 after 2147483647.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

apt-get -q download recutils=1.9-2 librec1=1.9-2 >apt.log 2>&1
for package in ./*.deb; do
	dpkg -x "$package" root
done

cat >orders.rec <<'EOF'
%rec: Order
%key: Id
%type: Id int
%auto: Id

Id: 1179183313482456071
Item: cup

Id: 1179183317777423367
Item: pot

EOF
cat >run.sh <<'EOF'
PATH=$PWD/root/usr/bin:$PATH
LD_LIBRARY_PATH=$(dirname "$(find "$PWD/root" -name librec.so.1)")
export LD_LIBRARY_PATH

recfix --check orders.rec && echo "the file is valid"
for condition in 'Id = 1179183313482456071' 'Id > 1000' 'Id < 0'; do
	echo "$condition: $(recsel -t Order -e "$condition" -C -P Item orders.rec | paste -s -d ' ')"
done
cp orders.rec more.rec
recins -t Order -f Item -v bowl more.rec
echo "next Id: $(recsel -t Order -q bowl -P Id more.rec)"
sed '/1179183317777423367/,$d; s/1179183313482456071/2147483647/' orders.rec >last.rec
recins -t Order -f Item -v bowl last.rec
echo "next Id after $(recsel -t Order -q cup -P Id last.rec): $(recsel -t Order -q bowl -P Id last.rec)"
recdel -t Order -e 'Id = 1179183313482456071' orders.rec
echo "records left after recdel: $(recsel -t Order -c orders.rec)"
EOF
cat >want <<'EOF'
the file is valid
Id = 1179183313482456071: cup pot
Id > 1000: 
Id < 0: cup pot
next Id: 0
next Id after 2147483647: -2147483648
records left after recdel: 0
EOF

sh run.sh >got
cat got
diff want got >&2 || { echo "recutils-deletes-the-record-of-another-id: no longer holds" >&2; exit 1; }
