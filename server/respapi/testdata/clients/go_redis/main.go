// Command go_redis uses go-redis as its documentation does: go_redis PORT.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

func main() {
	log.SetFlags(log.Lshortfile)
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		r := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol, ClientName: "test"})
		if err := r.Ping(ctx).Err(); err != nil {
			log.Fatal(err)
		}
		one, err := r.Do(ctx, "NEXT", "orders").Text()
		if err != nil {
			log.Fatal(err)
		}
		three, err := r.Do(ctx, "NEXT", "orders", 3).StringSlice()
		if err != nil || len(three) != 3 || one >= three[0] {
			log.Fatal(one, three, err)
		}
		last, err := r.Incr(ctx, "orders").Result()
		if err != nil || last <= 0 {
			log.Fatal(last, err)
		}
		cmds, err := r.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range 1000 {
				p.Do(ctx, "NEXT", "orders")
			}
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		seen := map[string]bool{}
		for _, c := range cmds {
			id, err := c.(*redis.Cmd).Text()
			if err != nil || seen[id] {
				log.Fatal(id, err)
			}
			seen[id] = true
		}
		if packed, err := r.Do(ctx, "NEXTB", "orders", 100000).Text(); err != nil || len(packed) != 800000 {
			log.Fatal(len(packed), err)
		}
		if commands, err := r.Command(ctx).Result(); err != nil || commands["next"] == nil {
			log.Fatal(commands, err)
		}
		if info, err := r.Info(ctx).Result(); err != nil || !strings.Contains(info, "firn_version") {
			log.Fatal(info, err)
		}
		if name, err := r.ClientGetName(ctx).Result(); err != nil || name != "test" {
			log.Fatal(name, err)
		}
		if err := r.Do(ctx, "NEXT", "a/b").Err(); err == nil || !strings.Contains(err.Error(), "a name has 1 to 128 characters") {
			log.Fatal(err)
		}
		if err := r.Set(ctx, "a", "b", 0).Err(); err == nil || !strings.Contains(err.Error(), "unknown command 'set'") {
			log.Fatal(err)
		}
		r.Close()
	}
	fmt.Println("ok go-redis", redis.Version())
}
