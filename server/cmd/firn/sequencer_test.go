package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/internal/test/must"
)

// An endingOutput ends a context when a text was written.
type endingOutput struct {
	bytes.Buffer
	text string
	end  context.CancelFunc
}

func (o *endingOutput) Write(b []byte) (int, error) {
	n, err := o.Buffer.Write(b)
	if strings.Contains(o.String(), o.text) {
		o.end()
	}
	return n, err
}

// TestWaiting: a command that waits for node IDs says for which, and if it is
// interrupted, what remains to be done. TestWaits of package grant has all that
// they wait for.
func TestWaiting(t *testing.T) {
	url := testStore(t)
	s := openTest(t, url)
	for command, remains := range map[string]string{"detach orders": "detaching", "destroy orders --yes": "destroying", "nodes orders 512..1023": ""} {
		verb, args, _ := strings.Cut(command, " ")
		name := verb + "-" + strings.Fields(args)[0]
		must.Get(grant.Create(t.Context(), s, name, grant.DefaultConfig(s, firn.Default(), nil), nil))(t)
		until := time.Now().Add(time.Minute).UnixMilli()
		record := fmt.Sprintf(`{"v":3,"nonce":"n","owner":"o","until":%d,"wall":%d,"state":"held","host":"ids-1"}`, until, until-120_000)
		must.Get(s.CAS(t.Context(), "v1/"+name+"/n/0017", nil, []byte(record)))(t)
		ctx, end := context.WithCancel(t.Context())
		errs := &endingOutput{text: "note: waiting for", end: end}
		a, _, _ := serveApp(t)
		a.stderr = errs
		code := run(ctx, a, strings.Fields("sequencer "+verb+" "+strings.Replace(args, "orders", name, 1)+" --store "+url))
		end()
		if code != exitInterrupted || !strings.Contains(errs.String(), "waiting for node ID 17, held by ids-1 until 20") ||
			remains != "" && !strings.Contains(errs.String(), "remains "+remains+" and grants no new windows; run firn sequencer "+verb) {
			t.Errorf("%s: exit code %d, want %d; it prints\n%s", command, code, exitInterrupted, errs)
		}
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
