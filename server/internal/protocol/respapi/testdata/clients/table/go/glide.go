package main

import (
	"os"
	"strconv"

	"github.com/valkey-io/valkey-glide/go/v2"
	"github.com/valkey-io/valkey-glide/go/v2/config"
)

func init() {
	more["glide"] = func() connection {
		port, _ := strconv.Atoi(os.Args[2])
		r, err := glide.NewClient(config.NewClientConfiguration().WithAddress(&config.NodeAddress{Host: "127.0.0.1", Port: port}))
		check(err)
		return connection{
			func(args ...any) (any, error) { return r.CustomCommand(ctx, texts(args)) },
			func() (int64, error) { return r.Incr(ctx, "orders") },
		}
	}
}
