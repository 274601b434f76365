#!/bin/sh
# google/uuid: scanning NULL leaves the UUID of the previous row, without an
# error.
#
# Packages: github.com/google/uuid v1.6.0, modernc.org/sqlite v1.62.0 (Go).
# Guess: Scan of NULL is an error, as for string and int64, or sets uuid.Nil.
# Behaviour: UUID.Scan returns nil for NULL and for an empty text and does not
#   touch the value. A loop with one variable (the usual one) gives a row
#   without UUID the UUID of the row before.
# Seen 2026-11-28: rows 2 (NULL) and 3 (empty) have the UUID of row 1; a
#   string variable gives an error.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/google/uuid@v1.6.0 \
	modernc.org/sqlite@v1.62.0 2>>go.log

cat >main.go <<'EOF'
package main

import (
	"database/sql"
	"fmt"

	"github.com/google/uuid"
	_ "modernc.org/sqlite"
)

func main() {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1)
	if _, err = db.Exec(`create table orders (n int, parent text);
		insert into orders values (1, '01a0b0c0-0000-7000-8000-000000000001'), (2, null), (3, '')`); err != nil {
		panic(err)
	}
	rows, err := db.Query("select n, parent from orders order by n")
	if err != nil {
		panic(err)
	}
	var n int
	var parent uuid.UUID
	for rows.Next() {
		fmt.Println("error:", rows.Scan(&n, &parent), "| row", n, parent)
	}
	var text string
	fmt.Println("string:", db.QueryRow("select parent from orders where n = 2").Scan(&text) != nil)
}
EOF
cat >want <<'EOF'
error: <nil> | row 1 01a0b0c0-0000-7000-8000-000000000001
error: <nil> | row 2 01a0b0c0-0000-7000-8000-000000000001
error: <nil> | row 3 01a0b0c0-0000-7000-8000-000000000001
string: true
EOF

go run . >got
cat got
diff want got >&2 || { echo "google-uuid-scan-keeps-the-previous-row: no longer holds" >&2; exit 1; }
