#!/bin/sh
# Cuts a process off from the store that leases its node ID, once with CosId
# and once with Firn, and counts the IDs that exist twice. Needs Go; CosId also
# needs Java 17 and Maven, which fetches its release.
set -eu
cd "$(dirname "$0")"
if command -v mvn >/dev/null && command -v java >/dev/null; then
	jars=${TMPDIR:-/tmp}/firn-lost-lease
	for artifact in me.ahoo.cosid:cosid-core:2.6.8 com.google.guava:guava:32.1.3-jre org.slf4j:slf4j-nop:1.7.36 org.slf4j:slf4j-api:1.7.36; do
		mvn -q dependency:copy -Dartifact="$artifact" -DoutputDirectory="$jars"
	done
	java -cp "$jars/*" CosId.java
else
	echo "CosId: skipped, needs java and mvn"
fi
go run .
