#!/bin/sh
# Compares the Java client with an AtomicLong and with Hazelcast's client, side by side.
#
#	sdk/java/bench/bench.sh URL    of a firn serve that no one else uses
set -eu
url=$1
cd "$(dirname "$0")/../../.."
out=$PWD/build/java
mkdir -p "$out/bench"
mvn="mvn -q -B -Dmaven.repo.local=$out/m2"
$mvn -f sdk/java/pom.xml -DskipTests package
$mvn -f sdk/java/bench/pom.xml org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath \
	-Dmdep.outputFile="$out/bench.cp"
classes=$PWD/sdk/java/target/classes:$(cat "$out/bench.cp")
javac -cp "$classes" -d "$out/bench" sdk/java/bench/Bench.java
exec java -cp "$classes:$out/bench" Bench "$url"
