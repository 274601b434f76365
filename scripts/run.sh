#!/bin/sh
# Builds bin/firn and starts bin/firn serve with the given arguments and a store in
# build/.
#
# Most of the time from a clone to the first ID is compiling. A third of that are the
# clients of etcd, Kubernetes and databases, which a store in a directory does not need:
# the tag firn_local leaves them out. They are built if the arguments or the environment
# name another store or a configuration, or if bin/firn already has them.
set -eu
cd "$(dirname "$0")/.."

tags=firn_local
case "$* ${FIRN_STORE-} ${FIRN_CONFIG-}" in
*://* | *--config* | *.yaml*) tags= ;;
esac
if [ -x bin/firn ] && ! go version -m bin/firn 2>/dev/null | grep -q 'tags=firn_local'; then
	tags=
fi
if [ -z "$tags" ]; then
	make -s build
else
	# Without debugging information, which -s leaves out, it compiles a tenth faster.
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -tags "$tags,grpcnotrace" -gcflags=all=-dwarf=false \
		-ldflags "-s -w -X main.version=$(sh scripts/version.sh)" -o bin/firn ./server/cmd/firn
fi
FIRN_STORE="${FIRN_STORE:-dir:$PWD/build/store?create=true&volatile=true}"
export FIRN_STORE
exec bin/firn serve "$@"
