#!/bin/sh
# Generates the Go code of server/proto. With the argument check, it changes nothing, and
# checks that the code is up to date, that the files follow buf's rules, and that existing
# clients of the committed version continue to work.
#
# buf and the plugins are built from tools/proto, into bin/.
set -eu
cd "$(dirname "$0")/.."
mkdir -p bin build
(cd tools/proto && GOWORK=off go build -buildvcs=false -o ../../bin/ github.com/bufbuild/buf/cmd/buf google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc)
PATH=$PWD/bin:$PATH
export PATH BUF_CACHE_DIR="$PWD/build/buf"
cd server/proto
buf lint
if [ "${1:-}" != check ]; then
	rm -f ../internal/protocol/rpcapi/firnv1/*.pb.go
	buf generate
	exit
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/code" "$tmp/before"
if git archive HEAD . 2>/dev/null | tar -xf - -C "$tmp/before" 2>/dev/null && test -f "$tmp/before/buf.yaml"; then
	buf breaking --against "$tmp/before"
fi
sed "s#out: .*#out: $tmp/code#" buf.gen.yaml >"$tmp/gen.yaml"
buf generate --template "$tmp/gen.yaml"
diff -r -x doc.go "$tmp/code" ../internal/protocol/rpcapi/firnv1 || {
	echo "server/internal/protocol/rpcapi/firnv1 is out of date: run scripts/proto.sh"
	exit 1
}
