//go:build linux || darwin

package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/internal/test/must"
)

// TestServeClockAhead: a server whose clock is a year ahead acquires no node ID
// and says why. If it is allowed to, it blocks its node ID; a repair gives that
// back to servers whose clocks are right, and no ID is made twice.
func TestServeClockAhead(t *testing.T) {
	t.Parallel()
	store := "dir:" + filepath.Join(t.TempDir(), "store") + "?volatile=true"
	ahead := map[string]string{clockEnv: "8760h"}
	serve := func(env map[string]string, more ...string) *running {
		return startServe(t, env, append([]string{"--store", store + "&create=true", "--nodes", "3..3"}, more...)...)
	}
	made := make(map[string]bool)
	take := func(what string, r *running) {
		t.Helper()
		status, _, body := r.post(t, "orders")
		var v struct{ IDs []string }
		if err := json.Unmarshal([]byte(body), &v); err != nil || status != 200 || len(v.IDs) != 1 || made[v.IDs[0]] {
			t.Fatalf("%s: %d %s, want an ID that was not made before: %v", what, status, body, made)
		}
		made[v.IDs[0]] = true
	}

	right := serve(nil)
	take("right", right)
	right.stop()

	wrong := serve(ahead)
	status, header, body := wrong.post(t, "orders")
	if status != 503 || header.Get("Retry-After") != "" {
		t.Errorf("%d, Retry-After %q, want 503 and no time to retry", status, header.Get("Retry-After"))
	}
	for _, word := range []string{"clock-ahead", "this machine's clock is", "ahead of the store's", "no node ID is claimed"} {
		if !strings.Contains(body, word) {
			t.Errorf("%s: want it to say %q", body, word)
		}
	}
	c, err := client.New(client.Config{Servers: []string{wrong.url}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), must.Patience)
	defer cancel()
	_, err = c.Sequencer("orders").Next(ctx)
	var problem *client.Error
	if !errors.As(err, &problem) || problem.Kind != "clock-ahead" || problem.Hint == "" {
		t.Errorf("client: %v, want a *client.Error of the kind clock-ahead, with a hint", err)
	}
	wrong.stop()

	// It acquires the number, and gives it back: blocked all the same.
	allowed := serve(ahead, "--allow-clock-ahead")
	take("a year ahead", allowed)
	take("a year ahead", allowed)
	allowed.stop()
	stopped := serve(nil)
	if code, _, body := stopped.post(t, "orders"); code != 503 || !strings.Contains(body, "may be used before 20") {
		t.Errorf("the number is blocked: %d %s, want 503", code, body)
	}
	if code, out := runLine(t, "node repair orders --apply --store "+store); code != exitFine || !strings.Contains(out, "1 blocked, 1 of which can be given back") {
		t.Fatalf("repair ends with %d: %s", code, out)
	}
	take("right, after the repair", stopped)
	stopped.stop()
	again := serve(ahead, "--allow-clock-ahead")
	take("a year ahead again, where it was before", again)
	again.stop()
	for text := range made {
		id, err := firn.ParseID(text)
		p, other := firn.Default().Decompose(id)
		if err != nil || other != nil || p.Node != 3 {
			t.Errorf("%s is of node %d, %v, %v, want 3", text, p.Node, err, other)
		}
	}
	if len(made) != 5 {
		t.Errorf("%d IDs were made, want 5: %v", len(made), made)
	}
}

// TestDetachBlocked: an operation that waits for windows says what to do about
// one that a wrong clock has opened, and ends when that is done.
func TestDetachBlocked(t *testing.T) {
	t.Parallel()
	inFull(t)
	dir := filepath.Join(t.TempDir(), "store")
	store := "dir:" + dir + "?create=true&volatile=true"
	wrong := startServe(t, map[string]string{clockEnv: "8760h"}, "--store", store, "--allow-clock-ahead", "--nodes", "3..3")
	if code, _, body := wrong.post(t, "orders"); code != 200 {
		t.Fatal(code, body)
	}
	key := "v1/orders/n/0003"
	s := must.Get(dirstore.Open(t.Context(), dir, &dirstore.Options{AllowVolatile: true}))(t)
	defer s.Close()
	held := must.Get(s.Get(t.Context(), key))(t)
	wrong.stop()
	free := must.Get(s.Get(t.Context(), key))(t)
	if ok, err := s.CAS(t.Context(), key, free, held); !ok || err != nil { // as if it had crashed
		t.Fatal(ok, err)
	}

	detaching, _, notes := serveApp(t)
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), detaching, []string{"sequencer", "detach", "orders", "--store", store})
	}()
	must.Await(t, func() bool {
		return strings.Contains(notes.String(), "firn node repair orders --apply ends the wait")
	}, "detach says how to end the wait: %s", notes)
	if code, out := runLine(t, "node repair orders --apply --store "+store); code != exitFine {
		t.Errorf("repair ends with %d: %s", code, out)
	}
	if code := <-ended; code != exitFine {
		t.Errorf("detach ends with %d: %s", code, notes)
	}
}
