#!/bin/sh
# Builds the etcd server that tests start, and prints its path: see tool.sh.
#
# FIRN_ETCD names another etcd to use; it is printed as it is.
set -eu
if [ -n "${FIRN_ETCD:-}" ]; then
	echo "$FIRN_ETCD"
	exit
fi
exec sh "$(dirname "$0")/tool.sh" etcd etcd go.etcd.io/etcd/server/v3
