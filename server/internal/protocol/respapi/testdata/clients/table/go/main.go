// Clients for Go: main CLIENT PORT.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mediocregopher/radix/v4"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/valkey-io/valkey-go"
)

var (
	ctx    = context.Background()
	client = os.Args[1]
	addr   = "127.0.0.1:" + os.Args[2]
)

// A connection does a command, and INCR by the client's own method if it has one.
type connection struct {
	do   func(args ...any) (any, error)
	incr func() (int64, error)
}

// more are the clients that need C: see glide.go.
var more = map[string]func() connection{}

func check(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

func text(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

// texts makes strings of arguments, as some clients want them.
func texts(args []any) (all []string) {
	for _, a := range args {
		all = append(all, fmt.Sprint(a))
	}
	return all
}

func connect() connection {
	switch client {
	case "go-redis":
		r := goredis.NewClient(&goredis.Options{Addr: addr})
		return connection{
			func(args ...any) (any, error) { return r.Do(ctx, args...).Result() },
			func() (int64, error) { return r.Incr(ctx, "orders").Result() },
		}
	case "go-redis-cluster":
		r := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{addr}, MaxRedirects: -1})
		check(r.Ping(ctx).Err())
	case "go-redis-sentinel":
		r := goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{addr}, MaxRetries: -1})
		check(r.Ping(ctx).Err())
	case "rueidis":
		r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
		check(err)
		return connection{
			func(args ...any) (any, error) { return r.Do(ctx, r.B().Arbitrary(texts(args)...).Build()).ToAny() },
			func() (int64, error) { return r.Do(ctx, r.B().Incr().Key("orders").Build()).AsInt64() },
		}
	case "valkey-go":
		r, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{addr}})
		check(err)
		return connection{
			func(args ...any) (any, error) { return r.Do(ctx, r.B().Arbitrary(texts(args)...).Build()).ToAny() },
			func() (int64, error) { return r.Do(ctx, r.B().Incr().Key("orders").Build()).AsInt64() },
		}
	case "radix":
		r, err := radix.Dialer{}.Dial(ctx, "tcp", addr)
		check(err)
		return connection{
			func(args ...any) (v any, err error) {
				return v, r.Do(ctx, radix.Cmd(&v, "NEXT", texts(args)[1:]...))
			},
			func() (n int64, err error) {
				err = r.Do(ctx, radix.Cmd(&n, "INCR", "orders"))
				return n, err
			},
		}
	case "redigo":
		r, err := redis.Dial("tcp", addr)
		check(err)
		return connection{
			func(args ...any) (any, error) { return r.Do(args[0].(string), args[1:]...) },
			func() (int64, error) { return redis.Int64(r.Do("INCR", "orders")) },
		}
	}
	if connect := more[client]; connect != nil {
		return connect()
	}
	fmt.Println("next")
	os.Exit(0)
	return connection{}
}

func main() {
	c := connect()
	silent, _ := strconv.Atoi(os.Getenv("SILENT"))
	time.Sleep(time.Duration(silent) * time.Second)
	one, err := c.do("NEXT", "orders")
	check(err)
	fmt.Println("next", text(one))
	three, err := c.do("NEXT", "orders", 3)
	check(err)
	var all []string
	for _, id := range three.([]any) {
		all = append(all, text(id))
	}
	fmt.Println("three", strings.Join(all, " "))
	for range 100 {
		id, err := c.incr()
		check(err)
		fmt.Println("incr", id)
	}
}
