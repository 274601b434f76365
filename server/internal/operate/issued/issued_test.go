package issued

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
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
	"github.com/firnid/firn/internal/test/must"
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
		v := s.Judge(q)
		verdict := v.Is
		verdicts[verdict]++
		switch {
		case verdict == NotIssued && received:
			t.Errorf("%s was issued to %s, and is %s", x.text, x.client, verdict)
		case verdict == Issued && !received:
			t.Errorf("%s was never issued, and is %s: %+v", x.text, verdict, q.Found)
		case verdict == Issued && (q.Found[0].Address != x.client || q.Found[0].Request != x.request || q.Found[0].Sequencer != "orders"):
			t.Errorf("%s was issued to %s, not to %+v", x.text, x.client, q.Found[0])
		case verdict == NotCovered && !slices.ContainsFunc(v.Readings, func(r Reading) bool { return r.Reasons != nil }):
			t.Errorf("%s is not covered, without a reason", x.text)
		}
	}
}

// live is a server that is started again and again. It returns IDs that clients
// have received, and those of the same time that nobody has.
func live(t *testing.T, r *rand.Rand, layout firn.Layout, node uint64, d *disk) (all, others []taken) {
	back := must.Get(service.NewStaticBackend(service.StaticBackendConfig{Layout: layout, Node: node}))(t)
	as, raw := form.Of(layout.Format()), form.Of(firn.Raw)
	for range 3 {
		l := must.Get(Open("stdout", d, fmt.Sprint("ids-", node), slog.New(slog.DiscardHandler)))(t)
		l.Start()
		front := service.Front{Backend: back, RequestTimeout: time.Hour, Issued: l.Add}
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
			var b service.Batch
			q := &service.Request{Count: 1 + r.IntN(30)}
			if p := front.Take(requestid.WithID(t.Context(), request), c, "orders", q, &b); p != nil {
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

// TestGaps judges the ID of 11:30 by logs that were written by hand. Each line
// is SERVER LOG N TIME and perhaps an event; the others have an ID of that
// time.
func TestGaps(t *testing.T) {
	layout := firn.Default()
	day := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	at := func(clock string) time.Time {
		d := must.Get(time.Parse("15:04", clock))(t)
		return day.Add(time.Duration(d.Hour())*time.Hour + time.Duration(d.Minute())*time.Minute)
	}
	id := func(at time.Time) string {
		return must.Get(layout.Compose(firn.Parts{Time: at, Node: 7}))(t).String()
	}
	const other = "b x 1 09:00 start\nb x 2 10:00\nb x 3 13:00\nb x 4 14:00 end\n"
	for lines, want := range map[string]string{
		other: NotIssued,
		other + "a y 1 10:00 start\na y 2 11:00\na y 3 13:00 end":                               NotIssued,
		other + "a y 1 10:00 start\na y 3 11:00\na y 2 10:30\na y 4 13:00 end":                  NotIssued,
		other + "a y 1 10:00 start\na y 2 11:00\na y 4 13:00 end":                               NotCovered,
		other + "a y 2 11:31\na y 3 13:00 end":                                                  NotCovered,
		other + "a y 1 10:00 start\na y 2 11:00":                                                NotCovered,
		other + "a y 1 10:00 start\na y 2 11:00\na z 1 11:10 start\na z 2 13:00 end":            NotIssued,
		other + "a y 1 09:00 start\na y 2 10:00 end\na z 1 12:00 start\na z 2 13:00 end":        NotCovered,
		other + "a y 1 10:00 start\na y 2 12:00\na y 3 11:00\na y 6 11:50\na y 7 13:00 end":     NotCovered,
		other + "a y 1 12:00 start\na y 2 11:00\na z 1 11:50 start\na z 2 13:00 end":            NotCovered,
		other + "a y 1 11:40 start\na y 2 12:00\na y 3 13:00 end":                               NotCovered,
		other + "a y 1 09:00 start\na y 2 10:00\na y 3 11:00 end":                               NotCovered,
		"b x 1 12:00 start\nb x 2 12:10\nb x 3 13:00 end":                                       NotCovered,
		other + "a y 1 11:00 start\na y 2 11:30\na y 3 11:31 end\na y 2 11:30\na y 3 11:31 end": Issued,
	} {
		q := query(t, id(at("11:30")), layout)
		s := Search{Queries: []*Query{q}}
		var log strings.Builder
		for line := range strings.Lines(lines) {
			f := append(strings.Fields(line), "")
			fmt.Fprintf(&log, `{"time":%q,"log":%q,"n":%s,"server":%q`, at(f[3]).Format(time.RFC3339), f[1], f[2], f[0])
			if f[4] != "" {
				fmt.Fprintf(&log, `,"event":%q}`+"\n", f[4])
			} else {
				fmt.Fprintf(&log, `,"sequencer":"orders","layout":"default","runs":[{"first":%q,"step":1,"count":1}]}`+"\n", id(at(f[3])))
			}
		}
		must.Do(t, s.Read(strings.NewReader(log.String())))
		if v := s.Judge(q); v.Is != want || want == Issued && len(q.Found) != 1 {
			t.Errorf("%+v, %d times, want %s:\n%s", v, len(q.Found), want, lines)
		}
	}
}

// TestReasons: each hole near the time of an ID is a reason not to know it,
// those in which the time is before those within the margin.
func TestReasons(t *testing.T) {
	l := firn.Default()
	id := func(hour, minute int) string {
		return must.Get(l.Compose(firn.Parts{Time: time.Date(2026, 12, 1, hour, minute, 0, 0, time.UTC), Node: 7}))(t).String()
	}
	q := query(t, id(11, 30), l)
	s := Search{Queries: []*Query{q}}
	var log strings.Builder
	for _, x := range []string{"a 1 10:00:00", "a 2 11:29:30", "b 1 10:00:00", "b 2 11:00:00", "b 4 13:00:00", "c 1 11:29:30", "c 2 12:00:00"} {
		f := strings.Fields(x)
		fmt.Fprintf(&log, `{"time":"2026-12-01T%sZ","log":%q,"n":%s,"server":"on-%s","event":"minute"}`+"\n", f[2], f[0], f[1], f[0])
	}
	fmt.Fprintf(&log, `{"time":"2026-12-01T10:00:00Z","log":"a","n":1,"sequencer":"orders","layout":"default",`+
		`"runs":[{"first":%q,"step":1,"count":1}]}`, id(10, 0))
	must.Do(t, s.Read(strings.NewReader(log.String())))
	v := s.Judge(q)
	if v.Is != NotCovered || len(v.Readings) != 1 || v.Readings[0].Stranger != nil {
		t.Fatalf("%+v", v)
	}
	for i, want := range []string{"server on-a has no log after", "log b of server on-b has no lines from",
		"server on-c has no log before 2026-12-01T11:29:30.000Z (30s away, and clocks may be wrong by 1m0s)"} {
		if got := v.Readings[0].Reasons; len(got) != 3 || !strings.HasPrefix(got[i], want) {
			t.Errorf("%q, want %q as reason %d of 3", got, want, i)
		}
	}
}

// TestFiles: a file without a line of a log is an error, and an empty one is
// not. Of a compressed file that was cut, the lines before count.
func TestFiles(t *testing.T) {
	const line = `{"time":"2026-12-01T00:00:00Z","log":"x","n":1,"event":"start"}`
	var b strings.Builder
	z := gzip.NewWriter(&b)
	must.Get(io.WriteString(z, line+"\n"+line[:20]))(t)
	must.Do(t, z.Close())
	zipped := b.String()
	s, path := new(Search), filepath.Join(t.TempDir(), "log")
	for _, file := range []struct {
		text  string
		is    error // nil means none, and errors.ErrUnsupported another one
		isLog bool
	}{
		{line + "\n" + line[:20], nil, true}, {"", nil, false}, {"\n", nil, false}, {line[:20], errors.ErrUnsupported, false}, {"no log\n", errors.ErrUnsupported, false},
		{zipped, nil, true}, {zipped[:len(zipped)-1], ErrCut, true}, {zipped[:3], ErrCut, true},
	} {
		must.Do(t, os.WriteFile(path, []byte(file.text), 0o600))
		if got := IsLog(path); got != file.isLog {
			t.Errorf("IsLog of %q: %t", file.text, got)
		}
		if err := s.Read(strings.NewReader(file.text)); (err == nil) != (file.is == nil) || errors.Is(file.is, ErrCut) && err != ErrCut {
			t.Errorf("%q: %v", file.text, err)
		}
	}
	if s.Bad != 5 {
		t.Errorf("%d bad lines, want 5", s.Bad)
	}
}

// TestRunsOfNobody: a line with a run that wraps around is no line of a log.
func TestRunsOfNobody(t *testing.T) {
	for _, run := range []string{
		`"first":"5","step":0,"count":5`, `"first":"5","step":1,"count":18446744073709551615`, `"first":"5","step":1,"count":0`,
		`"first":"5","step":9223372036854775808,"count":3`, `"first":"5","step":-1,"count":3`, `"first":"","step":1,"count":1`,
	} {
		q := query(t, "7", firn.Default())
		s := Search{Queries: []*Query{q}}
		line := `{"time":"2026-12-01T00:00:00Z","log":"x","n":1,"sequencer":"orders","layout":"default","runs":[{` + run + `}]}`
		if err := s.Read(strings.NewReader(line)); err == nil || s.Judge(q).Is != NotCovered {
			t.Errorf("%s: %v, %+v", run, err, s.Judge(q))
		}
	}
}

// TestSearchLaw: of many IDs, of 64 and of 128 bits and some of them twice,
// each is found in the lines whose runs have it, and in no others.
func TestSearchLaw(t *testing.T) {
	found := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := new(Search)
		for range r.IntN(40) {
			text := strconv.Itoa(1000 + r.IntN(100))
			if r.IntN(3) == 0 {
				text = fmt.Sprintf("00000000-0000-7000-8000-%012x", 1000+r.IntN(100))
			}
			s.Queries = append(s.Queries, &Query{Text: text, As: must.Get(must.Get(form.ParseInput("auto"))(t).Decodings(text, 0))(t)})
		}
		want := make(map[string][]uint64) // the lines with an ID
		var log strings.Builder
		for n := range uint64(20) {
			layout := []string{"default", "uuidv7"}[r.IntN(2)]
			var runs []string
			has := make(map[string]bool)
			for range 1 + r.IntN(3) {
				first, step, count := 990+r.IntN(100), 1+r.IntN(9), 1+r.IntN(9)
				as := func(id int) string {
					if layout == "default" {
						return strconv.Itoa(id)
					}
					return fmt.Sprintf("00000000-0000-7000-8000-%012x", id)
				}
				form := []string{`{"first":%q,"step":"%d","count":%d}`, `{"first":%q,"step":%d,"count":%d}`}[n%2] // the older one
				runs = append(runs, fmt.Sprintf(form, as(first), step, count))
				for i := range count {
					has[as(first+i*step)] = true
				}
			}
			for id := range has {
				want[id] = append(want[id], n+1)
			}
			fmt.Fprintf(&log, `{"time":"2026-12-01T00:00:00Z","log":"x","n":%d,"sequencer":"orders","layout":%q,"runs":[%s]}`+"\n",
				n+1, layout, strings.Join(runs, ","))
		}
		must.Do(t, s.Read(strings.NewReader(log.String())))
		for _, q := range s.Queries {
			var got []uint64
			for _, x := range q.Found {
				got = append(got, x.N)
			}
			found += len(got)
			if !slices.Equal(got, want[q.Text]) {
				t.Errorf("seed %d: %s is in the lines %v, want %v", seed, q.Text, got, want[q.Text])
			}
		}
	}
	t.Logf("report: %d lines found", found)
	if found == 0 {
		t.Error("nothing was found")
	}
}

// TestNeverBlocks: while nobody reads the log, answers are not late, and memory
// is bounded.
func TestNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour)
		d := &disk{hang: make(chan struct{})}
		l := must.Get(Open("stdout", d, "", slog.New(slog.DiscardHandler)))(t)
		l.Start()
		back := must.Get(service.NewStaticBackend(service.StaticBackendConfig{Layout: firn.MustParseLayout("uuidv7")}))(t)
		front := service.Front{Backend: back, RequestTimeout: time.Hour, Issued: l.Add}
		begin := time.Now()
		for range 10 {
			q := &service.Request{Count: service.MaxCount}
			if p := front.Take(t.Context(), new(auth.Credentials), "orders", q, new(service.Batch)); p != nil {
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

// TestAddDoesNotAllocate: a line of one run allocates nothing.
func TestAddDoesNotAllocate(t *testing.T) {
	l := must.Get(Open("stdout", new(bytes.Buffer), "", slog.New(slog.DiscardHandler)))(t)
	for _, layout := range []string{"default", "js53", "hazelcast"} {
		back := must.Get(service.NewStaticBackend(service.StaticBackendConfig{Layout: firn.MustParseLayout(layout)}))(t)
		c := &auth.Credentials{Address: "10.0.0.1:3476"}
		var b service.Batch
		if p := (&service.Front{Backend: back, RequestTimeout: time.Hour}).Take(t.Context(), c, "orders", &service.Request{Count: 1}, &b); p != nil {
			t.Fatal(p)
		}
		got := testing.AllocsPerRun(1000, func() { l.Add(t.Context(), c, "orders", b) })
		if got != 0 { // on average: pending grows a few times
			t.Errorf("%s: %v allocations, want none", layout, got)
		}
	}
}

// TestRotation: lines go to the file of the name, also after it was renamed.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := must.Get(Open(path, nil, "", slog.New(slog.DiscardHandler)))(t)
	l.Start()
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
