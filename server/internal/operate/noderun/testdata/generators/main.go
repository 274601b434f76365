// Generators writes IDs of a generator, with the node ID of the environment, to the
// file USED-PID in DIR until it is ended: generators NAME DIR.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"
)

func main() {
	name, dir := os.Args[1], os.Args[2]
	node, err := strconv.Atoi(os.Getenv("WORKER_ID"))
	check(err)
	var next func() int64
	switch name {
	case "bwmarrin":
		n, err := snowflake.NewNode(int64(node))
		check(err)
		next = func() int64 { return n.Generate().Int64() }
	case "sonyflake":
		s, err := sonyflake.New(sonyflake.Settings{
			StartTime: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), MachineID: func() (int, error) { return node, nil },
		})
		check(err)
		next = func() int64 {
			id, err := s.NextID()
			check(err)
			return id
		}
	}
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("used-%d", os.Getpid())))
	check(err)
	for {
		_, err := fmt.Fprintf(f, "%d\n", next())
		check(err)
		time.Sleep(time.Millisecond)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
