package issued

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
)

// A disk may be full, and then writes nothing or a part, or hang.
type disk struct {
	mu   sync.Mutex
	data bytes.Buffer
	full bool
	hang chan struct{}
	r    *rand.Rand
}

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	hang := d.hang
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		n, _ := d.data.Write(p[:d.r.IntN(len(p))])
		return n, errors.New("no space left on device")
	}
	return d.data.Write(p)
}

func (d *disk) set(full bool, hang chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full, d.hang = full, hang
}

// A taken is IDs that a client has received.
type taken struct {
	text, client, request string
	layout                firn.Layout
}

func query(t *testing.T, text string, l firn.Layout) *Query {
	t.Helper()
	return &Query{Text: text, As: must.Get(form.Of(l.Format()).Decodings(text, l.Bits()))(t)}
}

// TestVerdicts has servers with a log, whose disks are full or hang now and
// then, and which are killed or end. Who received an ID is found, or it is said
// that the log does not cover it, never that it was not issued. Of other IDs it
// is never said that they were.
func TestVerdicts(t *testing.T) {
	verdicts := make(map[string]int)
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) { testVerdicts(t, seed, verdicts) })
	}
	t.Logf("report: of IDs %d issued, %d not issued, %d not covered", verdicts[Issued], verdicts[NotIssued], verdicts[NotCovered])
	for _, v := range []string{Issued, NotIssued, NotCovered} {
		if verdicts[v] < 30 {
			t.Errorf("%s: %d times", v, verdicts[v])
		}
	}
}

func testVerdicts(t *testing.T, seed uint64, verdicts map[string]int) {
	time.Sleep(30 * 365 * 24 * time.Hour) // a bubble begins in 2000
	layout := firn.MustParseLayout([]string{"default", "hazelcast", "uuidv7", "js53"}[seed%4])
	var all, others [2][]taken
	disks := [2]*disk{{r: rand.New(rand.NewPCG(seed, 2))}, {r: rand.New(rand.NewPCG(seed, 3))}}
	var running sync.WaitGroup
	for i := range disks {
		running.Go(func() {
			all[i], others[i] = live(t, rand.New(rand.NewPCG(seed, uint64(i))), layout, uint64(i), disks[i])
		})
	}
	running.Wait()
	received := slices.Concat(all[:]...)
	texts := append(slices.Clone(received), slices.Concat(others[:]...)...)
	s := new(Search)
	for _, x := range texts {
		s.Queries = append(s.Queries, query(t, x.text, x.layout))
	}
	for _, d := range disks {
		must.Do(t, s.Read(&d.data))
	}
	for i, q := range s.Queries {
		x, received := texts[i], i < len(received)
		verdict, _, why := s.Judge(q)
		verdicts[verdict]++
		switch {
		case verdict == NotIssued && received:
			t.Errorf("%s was issued to %s, and is %s", x.text, x.client, verdict)
		case verdict == Issued && !received:
			t.Errorf("%s was never issued, and is %s: %+v", x.text, verdict, q.Found)
		case verdict == Issued && (q.Found[0].Address != x.client || q.Found[0].Request != x.request || q.Found[0].Sequencer != "orders"):
			t.Errorf("%s was issued to %s, not to %+v", x.text, x.client, q.Found[0])
		case verdict == NotCovered && why == "":
			t.Errorf("%s is not covered, without a reason", x.text)
		}
	}
}

// live is a server that is started again and again. It returns IDs that clients
// have received, and those of the same time that nobody has.
func live(t *testing.T, r *rand.Rand, layout firn.Layout, node uint64, d *disk) (all, others []taken) {
	back := must.Get(service.NewStatic(service.StaticConfig{Layout: layout, Node: node}))(t)
	as, raw := form.Of(layout.Format()), form.Of(firn.Raw)
	for range 3 {
		l := must.Get(Open("stdout", d, fmt.Sprint("ids-", node), slog.New(slog.DiscardHandler)))(t)
		front := service.Front{Backend: back, Limit: time.Hour, Issued: l.Add}
		for range 20 {
			time.Sleep(time.Duration(r.Int64N(int64(40 * time.Second))))
			hang := chan struct{}(nil)
			switch r.IntN(12) {
			case 0:
				d.set(true, nil)
			case 1:
				hang = make(chan struct{})
				d.set(false, hang)
			default:
				d.set(false, nil)
			}
			request := requestid.New()
			c := &auth.Credentials{Address: "10.0.0." + strconv.Itoa(r.IntN(250))}
			b, p := front.Take(requestid.WithID(t.Context(), request), c, "orders", &service.Request{Count: 1 + r.IntN(30)})
			if p != nil {
				t.Error(p)
				return all, others
			}
			id := b.At(r.IntN(b.Len()))
			all = append(all, taken{string(id.Append(nil, &as)), c.Address, request, layout})
			parts, _ := layout.DecomposeBytes(id.Append(nil, &raw))
			parts.Node = layout.MaxNode()
			if other, err := layout.Compose(parts); err == nil && parts.Node > 1 {
				others = append(others, taken{text: string(as.Append(nil, other)), layout: layout})
			}
			if hang != nil {
				time.Sleep(2 * time.Minute)
				close(hang)
				d.set(false, nil)
			}
		}
		d.set(false, nil)
		time.Sleep(time.Second)
		lost := 0
		if r.IntN(2) == 0 { // it is killed, and the last lines are not written
			lost = 1 + r.IntN(300)
		}
		d.mu.Lock()
		at := d.data.Len() - lost
		d.mu.Unlock()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if lost > 0 {
			d.data.Truncate(at)
			d.data.WriteString("\n")
		}
	}
	return all, others
}

// TestNeverBlocks: while nobody reads the log, answers are not late, and memory
// is bounded.
func TestNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour)
		d := &disk{hang: make(chan struct{})}
		l := must.Get(Open("stdout", d, "", slog.New(slog.DiscardHandler)))(t)
		back := must.Get(service.NewStatic(service.StaticConfig{Layout: firn.MustParseLayout("uuidv7")}))(t)
		front := service.Front{Backend: back, Limit: time.Hour, Issued: l.Add}
		begin := time.Now()
		for range 10 {
			if _, p := front.Take(t.Context(), new(auth.Credentials), "orders", &service.Request{Count: service.MaxCount}); p != nil {
				t.Fatal(p)
			}
		}
		l.mu.Lock()
		size := cap(l.pending)
		l.mu.Unlock()
		if took := time.Since(begin); took > time.Second || l.Lost() == 0 || size > 8*maxPending {
			t.Errorf("it took %v, with %d lines lost and %d bytes in memory", took, l.Lost(), size)
		}
		if err := l.Close(); err == nil {
			t.Error("Close has written everything")
		}
		close(d.hang)
		synctest.Wait()
	})
}

// TestRotation: lines go to the file of the name, also after it was renamed.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := must.Get(Open(path, nil, "", slog.New(slog.DiscardHandler)))(t)
	has := func(path, event string) bool {
		data, _ := os.ReadFile(path)
		return strings.Contains(string(data), `"event":"`+event+`"`)
	}
	for !has(path, "start") {
		time.Sleep(time.Millisecond)
	}
	must.Do(t, os.Rename(path, path+".1"))
	must.Do(t, l.Close())
	if !has(path, "end") || has(path+".1", "end") {
		t.Error("the line after the rename is not in a new file")
	}
	if _, err := Open(filepath.Join(path, "x"), nil, "", nil); err == nil {
		t.Error("Open accepts a file in a file")
	}
}
