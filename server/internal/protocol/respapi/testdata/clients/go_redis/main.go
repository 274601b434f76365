// Command go_redis uses go-redis as its documentation does: go_redis PORT.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	log.SetFlags(log.Lshortfile)
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		r := redis.NewClient(&redis.Options{Addr: "localhost:" + os.Args[1], Protocol: protocol, ClientName: "test"})
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
		methods(ctx, r)
		r.Close()
	}
	severalServers(ctx)
	fmt.Println("ok go-redis", redis.Version())
}

// methods uses what a program would, by its own names.
func methods(ctx context.Context, r *redis.Client) {
	one, err := r.IncrBy(ctx, "orders", 1).Result()
	if err != nil || one <= 0 {
		log.Fatal(one, err)
	}
	if err := r.IncrBy(ctx, "orders", 5).Err(); err == nil || !strings.Contains(err.Error(), "NEXT orders 5") {
		log.Fatal(err)
	}
	cmds, err := r.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for range 1000 {
			p.Incr(ctx, "orders")
		}
		return nil
	})
	if err != nil || len(cmds) != 1000 {
		log.Fatal(len(cmds), err)
	}
	for _, c := range cmds {
		id := c.(*redis.IntCmd).Val()
		if id <= one {
			log.Fatal(id, " after ", one)
		}
		one = id
	}
	_, err = r.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, "orders")
		p.IncrBy(ctx, "orders", 5)
		return nil
	})
	if err == nil || !strings.HasPrefix(err.Error(), "EXECABORT") {
		log.Fatal(err)
	}
	if c, err := r.ClientInfo(ctx).Result(); err != nil || c.Name != "test" || !strings.HasPrefix(c.LibName, "go-redis") {
		log.Fatal(c, err)
	}
	if names, err := r.CommandList(ctx, nil).Result(); err != nil || len(names) < 15 {
		log.Fatal(names, err)
	}
	if m, err := r.InfoMap(ctx).Result(); err != nil || m["Server"]["firn_version"] == "" {
		log.Fatal(m, err)
	}
}

// severalServers: a Ring sends each name to one of its servers, and leaves out those
// that are down. A UniversalClient of several addresses is of a cluster, which Firn is not.
func severalServers(ctx context.Context) {
	quiet{}.set()
	up, down := "127.0.0.1:"+os.Args[1], "127.0.0.1:1"
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": up, "b": down}, HeartbeatFrequency: 10 * time.Millisecond})
	defer ring.Close()
	for begin := time.Now(); ring.Len() != 1; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			log.Fatal("the ring keeps the server that is down")
		}
	}
	for i := range 20 {
		if id, err := ring.Incr(ctx, fmt.Sprint("name", i)).Result(); err != nil || id <= 0 {
			log.Fatal(id, err)
		}
		if id, err := ring.Do(ctx, "NEXT", fmt.Sprint("name", i)).Text(); err != nil || id == "" {
			log.Fatal(id, err)
		}
	}
	cluster := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{up, up}, MaxRetries: -1})
	defer cluster.Close()
	if err := cluster.Incr(ctx, "orders").Err(); err == nil {
		log.Fatal("a client of a cluster was served")
	}
}

// quiet throws away what go-redis logs of the server that is down.
type quiet struct{}

func (q quiet) set()                                 { redis.SetLogger(q) }
func (quiet) Printf(context.Context, string, ...any) {}
