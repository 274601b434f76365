#!/bin/sh
# Compares the Java client with an AtomicLong and with Hazelcast's client, side by side.
# First it calls the client in thousands of Kotlin coroutines, on one, two and four processors.
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
java -cp "$classes" org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -no-stdlib -no-reflect -nowarn -cp "$classes" \
	-d "$out/bench" sdk/java/bench/Coroutines.kt
for call in 'next 10000' 'take 10000' 'cold 1000'; do
	for processors in 1 2 4; do
		# shellcheck disable=SC2086 # two arguments
		java -XX:ActiveProcessorCount=$processors -cp "$classes:$out/bench" CoroutinesKt "$url" $call
	done
done
javac -cp "$classes" -d "$out/bench" sdk/java/bench/Bench.java
exec java -cp "$classes:$out/bench" Bench "$url"
