#!/bin/sh
# Builds the kube-apiserver that tests start, and prints its path; see tool.sh.
# The first build takes ten minutes of processor time; later ones, even
# in another checkout, use Go's build cache. Without FIRN_ALL, there is no first
# one: it fails unless the server is built already, or in the cache.
#
# If FIRN_KUBE_APISERVER is set, it is printed instead: the path of another one to use.
set -eu
if [ -n "${FIRN_KUBE_APISERVER:-}" ]; then
	echo "$FIRN_KUBE_APISERVER"
	exit
fi
if [ -z "${FIRN_ALL:-}" ]; then export FIRN_CACHED=1; fi
exec sh "$(dirname "$0")/tool.sh" kube-apiserver kube .
