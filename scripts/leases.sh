#!/bin/sh
# Measures when the holder of a lost lock is notified, for the table in docs/comparison.md:
# Firn's node run and other libraries, behind a proxy that stops forwarding (C), and stopped by
# SIGSTOP (S). It needs Go, Node, Java 17, Maven, Python, redis-server and PostgreSQL, package
# registries, and ten minutes; cases can be named. make test leaves it out.
#
#	scripts/leases.sh [CASE...]
set -eu
cd "$(dirname "$0")/.."
root=$PWD
ETCD=$(FIRN_ALL=1 sh scripts/etcd.sh) KUBE=$(FIRN_ALL=1 sh scripts/kube.sh)
PGBIN=${PGBIN:-$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)}
export ETCD KUBE PGBIN
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir" # PostgreSQL runs as another user
mkdir "$dir/go" "$dir/js" "$dir/java"
go build -o "$dir/firn" ./server/cmd/firn
cd "$dir"
cp "$root"/scripts/leases/*.py "$root"/scripts/leases/firn.sh .
cp "$root/scripts/leases/lock.mjs" js/
cp "$root/scripts/leases/pom.xml" java/

cp "$root/scripts/leases/testdata/main.go" go/
(
	cd go
	export GOWORK=off GOFLAGS=-mod=mod
	go mod init leases
	go get go.etcd.io/etcd/client/v3@v3.7.3 k8s.io/client-go@v0.37.2 github.com/redis/go-redis/v9@v9.23.0 \
		github.com/go-redsync/redsync/v4@v4.18.1 github.com/bsm/redislock@v0.9.4
	go build -o leases .
) >log-go 2>&1
python3 -m venv venv
venv/bin/pip install -q redis==8.1.0
npm install --prefix js --no-audit --no-fund --loglevel=error \
	node@22.23.3 redlock@5.0.0-beta.2 ioredis@5.11.1 bullmq@6.7.0 pg-boss@12.38.0 >log-npm 2>&1
mvn -q -B -f java/pom.xml dependency:copy-dependencies -DoutputDirectory=lib >log-mvn
javac -cp 'java/lib/*' -d java/classes "$root/scripts/leases/Lock.java"

"$ETCD" --version | head -1
redis-server --version | cut -d' ' -f1-3
"$PGBIN/postgres" --version
venv/bin/python run.py "$@"
