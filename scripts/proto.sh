#!/bin/sh
# Makes the Go code of server/proto: scripts/proto.sh. With the word check it sees that
# the code is what the files say, and that they keep to buf's rules; it changes nothing.
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
	rm -f ../rpcapi/firnv1/*.pb.go
	buf generate
	exit
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
sed "s#out: .*#out: $out#" buf.gen.yaml >"$out.yaml"
buf generate --template "$out.yaml"
rm -f "$out.yaml"
diff -r -x doc.go "$out" ../rpcapi/firnv1 || {
	echo "server/rpcapi/firnv1 is not what server/proto says: run scripts/proto.sh"
	exit 1
}
