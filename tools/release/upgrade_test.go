package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fleet is a set of two servers on one store, and clients that take IDs from
// them.
type fleet struct {
	t       *testing.T
	store   string
	servers [2]*exec.Cmd
	logs    [2]bytes.Buffer
	address [2]string

	mu   sync.Mutex // guards the fields below
	seen map[string]string
	of   map[string]int // IDs by the program that made them
	by   [2]string      // the program that serves at an address
	bad  string         // the first repetition
}

// start starts a server at one of the addresses, and waits until it is ready.
func (f *fleet) start(i int, binary, name string) {
	f.t.Helper()
	f.logs[i].Reset()
	cmd := exec.Command(binary, "serve", "--listen", f.address[i], "--store", f.store)
	cmd.Stderr = &f.logs[i]
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.servers[i] = cmd
	f.t.Cleanup(func() { _ = cmd.Process.Kill() })
	deadline := time.Now().Add(10 * time.Minute)
	for {
		answer, err := http.Get("http://" + f.address[i] + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the %s server is not ready in time: %v", name, err)
		}
		time.Sleep(10 * time.Millisecond) // it is another process
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by[i] = name
}

// stop ends a server like an upgrade.
func (f *fleet) stop(i int) {
	f.t.Helper()
	if err := f.servers[i].Process.Signal(os.Interrupt); err != nil {
		f.t.Fatal(err)
	}
	if err := f.servers[i].Wait(); err != nil {
		f.t.Errorf("a server of the upgrade ends with %v:\n%s", err, &f.logs[i])
	}
}

// load takes IDs of two sequencers from one address until ctx is done. A server
// that is being replaced does not answer.
func (f *fleet) load(ctx context.Context, i int) {
	client := &http.Client{Timeout: time.Minute}
	for n := 0; ctx.Err() == nil; n++ {
		f.mu.Lock()
		by := f.by[i]
		f.mu.Unlock()
		name := []string{"orders", "users"}[n%2]
		answer, err := client.Get("http://" + f.address[i] + "/v1/sequencers/" + name + "/next?count=100")
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		var v struct{ IDs []string }
		err = json.NewDecoder(answer.Body).Decode(&v)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			continue
		}
		f.mu.Lock()
		for _, id := range v.IDs {
			key := name + " " + id
			if before, twice := f.seen[key]; twice && f.bad == "" {
				f.bad = fmt.Sprintf("%s was made by the %s server and by the %s one", key, before, by)
			}
			f.seen[key] = by
		}
		f.of[by] += len(v.IDs)
		f.mu.Unlock()
	}
}

// more waits until each of the running servers has made further IDs.
func (f *fleet) more(names ...string) {
	f.t.Helper()
	count := func(name string) int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.of[name]
	}
	before := make(map[string]int)
	for _, name := range names {
		before[name] = count(name)
	}
	deadline := time.Now().Add(10 * time.Minute)
	for _, name := range names {
		for count(name) < before[name]+10_000 {
			if time.Now().After(deadline) {
				f.t.Fatalf("the %s server makes no IDs", name)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// buildPrevious builds the server of the latest earlier commit that builds and
// has the same version of records.
func buildPrevious(t *testing.T, r *release, dir string) (firn string) {
	t.Helper()
	commits := strings.Fields(mustRun(t, r.repo, nil, "git", "rev-list", "--first-parent", "--max-count=6", "HEAD"))
	if len(commits) < 2 {
		t.Skip("the clone has no previous commit")
	}
	source, firn := filepath.Join(dir, "previous"), filepath.Join(dir, "firn-previous")
	mustRun(t, dir, nil, "git", "clone", "-q", "--shared", "--no-checkout", r.repo, source)
	version := func(commit string) string {
		return regexp.MustCompile(`(?m)^const version = .*$`).FindString(mustRun(t, r.repo, nil, "git", "show", commit+":grant/record.go"))
	}
	var failure error
	for _, hash := range commits[1:] {
		if version(hash) != version("HEAD") {
			continue
		}
		mustRun(t, source, nil, "git", "checkout", "-q", "--detach", hash)
		if _, failure = command(t.Context(), filepath.Join(source, "server"), []string{"GOWORK=off", "CGO_ENABLED=0"},
			"go", "build", "-trimpath", "-buildvcs=false", "-o", firn, program); failure == nil {
			return firn
		}
	}
	if failure == nil {
		t.Skip("the last commits have another version of records")
	}
	t.Fatal(failure)
	return ""
}

// TestUpgrade replaces the servers of the previous commit by those of this one,
// and back, while clients take IDs: none is made twice, and all servers end
// properly.
func TestUpgrade(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows cannot send a program an interrupt")
	}
	r := theRelease(t)
	dir := t.TempDir()
	untar(t, gunzip(t, read(t, filepath.Join(r.out, r.name(host())+".tar.gz"))), dir)
	current := filepath.Join(dir, r.name(host()), "firn")

	previous := buildPrevious(t, r, dir)
	f := &fleet{
		t: t, store: "dir:" + filepath.Join(dir, "store") + "?create=true&volatile=true",
		address: [2]string{freeAddress(t), freeAddress(t)},
		seen:    make(map[string]string), of: make(map[string]int),
	}
	f.start(0, previous, "old")
	f.start(1, previous, "old")
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for i := range f.servers {
		clients.Go(func() { f.load(ctx, i) })
		clients.Go(func() { f.load(ctx, i) })
	}
	f.more("old")
	for i := range f.servers {
		f.stop(i)
		f.start(i, current, "new")
		if i == 0 {
			f.more("old", "new")
		}
	}
	f.more("new")
	f.stop(0)
	f.start(0, previous, "old") // a rollback
	f.more("old", "new")
	cancel()
	clients.Wait()
	f.stop(0)
	f.stop(1)
	if f.bad != "" {
		t.Errorf("an ID was made twice: %s", f.bad)
	}
	t.Logf("report: upgrade and rollback under load: %d IDs of the previous commit, %d of this one, none twice", f.of["old"], f.of["new"])
}
