#!/bin/sh
# Builds the etcd server that tests start, and prints its path; see tool.sh.
# Without FIRN_ALL it fails unless etcd is built already, or in Go's build cache.
#
# If FIRN_ETCD is set, it is printed instead: the path of another etcd to use.
set -eu
if [ -n "${FIRN_ETCD:-}" ]; then
	echo "$FIRN_ETCD"
	exit
fi
if [ -z "${FIRN_ALL:-}" ]; then export FIRN_CACHED=1; fi
exec sh "$(dirname "$0")/tool.sh" etcd etcd go.etcd.io/etcd/server/v3
