#!/bin/sh
# viper: the numbers "08" and "09" are both 0, and "010" is 8.
#
# Package: github.com/spf13/viper v1.21.0 with github.com/spf13/cast v1.10.0
#   (Go).
# Guess: GetInt64 of the text "08" is 8, or fails in a way one can see.
# Behaviour: a text is parsed in the base that its prefix names: a leading
#   zero is octal. "010" is 8, and what is no octal number gives 0 without an
#   error. Two hosts numbered 08 and 09 by a template become worker 0 both,
#   and worker 010 meets worker 8.
# Seen 2026-11-28: 07: 7, 08: 0, 09: 0, 010: 8.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/spf13/viper@v1.21.0 \
	github.com/spf13/cast@v1.10.0 2>>go.log

cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"

	"github.com/spf13/viper"
)

func main() {
	v := viper.New()
	if err := v.BindEnv("worker", "WORKER"); err != nil {
		panic(err)
	}
	for _, worker := range []string{"7", "07", "08", "09", "010"} {
		os.Setenv("WORKER", worker)
		fmt.Println("WORKER="+worker, "is worker", v.GetInt64("worker"))
	}
}
EOF
cat >want <<'EOF'
WORKER=7 is worker 7
WORKER=07 is worker 7
WORKER=08 is worker 0
WORKER=09 is worker 0
WORKER=010 is worker 8
EOF

go run . >got
cat got
diff want got >&2 || { echo "viper-gives-workers-08-and-09-the-same-number: no longer holds" >&2; exit 1; }
