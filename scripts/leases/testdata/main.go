// Command leases holds a lock of a Go library, or waits for one.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var ctx = context.Background()

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Println("FAILED", err)
		os.Exit(1)
	}
	return v
}

func check(err error) { must(0, err) }

// renew calls f three times in a TTL until it fails.
func renew(ttl time.Duration, f func() error) {
	fmt.Println("HAVE")
	for {
		time.Sleep(ttl / 3)
		if err := f(); err != nil {
			fmt.Println("TOLD", strings.ReplaceAll(err.Error(), "\n", " "))
			select {}
		}
	}
}

func main() {
	name, who, address, key := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	switch name {
	case "etcd", "etcd-5":
		client := must(clientv3.New(clientv3.Config{Endpoints: []string{address}}))
		var options []concurrency.SessionOption
		if name == "etcd-5" {
			options = append(options, concurrency.WithTTL(5))
		}
		session := must(concurrency.NewSession(client, options...))
		check(concurrency.NewMutex(session, "/"+key).Lock(ctx))
		fmt.Println("HAVE")
		<-session.Done()
		fmt.Println("TOLD Done is closed")
	case "client-go", "client-go-release":
		client := must(kubernetes.NewForConfig(&rest.Config{
			Host: "https://" + address, BearerToken: "leases", TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		}))
		lock := must(resourcelock.New(resourcelock.LeasesResourceLock, "default", key, client.CoreV1(), client.CoordinationV1(),
			resourcelock.ResourceLockConfig{Identity: who}))
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			ReleaseOnCancel: name == "client-go-release",
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					fmt.Println("HAVE")
					<-ctx.Done()
					fmt.Println("TOLD context cancelled")
				},
				OnStoppedLeading: func() { fmt.Println("TOLD OnStoppedLeading") },
			},
		})
	case "redsync":
		m := redsync.New(goredis.NewPool(redis.NewClient(&redis.Options{Addr: address}))).
			NewMutex(key, redsync.WithTries(1000), redsync.WithRetryDelay(100*time.Millisecond))
		check(m.Lock())
		renew(8*time.Second, func() error {
			_, err := m.Extend()
			return err
		})
	case "redislock":
		client := redislock.New(redis.NewClient(&redis.Options{Addr: address}))
		patient, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		l := must(client.Obtain(patient, key, 8*time.Second, &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}))
		renew(8*time.Second, func() error { return l.Refresh(ctx, 8*time.Second, nil) })
	}
	select {}
}
