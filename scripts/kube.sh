#!/bin/sh
# Builds the kube-apiserver that tests start, and prints its path: see tool.sh.
# The first build takes ten minutes of processor time; later ones, also in
# another checkout, find its parts in Go's build cache.
#
# FIRN_KUBE_APISERVER names another one to use; it is printed as it is.
set -eu
if [ -n "${FIRN_KUBE_APISERVER:-}" ]; then
	echo "$FIRN_KUBE_APISERVER"
	exit
fi
exec sh "$(dirname "$0")/tool.sh" kube-apiserver kube .
