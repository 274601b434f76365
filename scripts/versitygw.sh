#!/bin/sh
# Builds the S3 server that tests start, and prints its path; see tool.sh.
# Without FIRN_ALL it fails unless it is built already, or in Go's build cache.
set -eu
if [ -z "${FIRN_ALL:-}" ]; then export FIRN_CACHED=1; fi
exec sh "$(dirname "$0")/tool.sh" versitygw versitygw github.com/versity/versitygw/cmd/versitygw
