package console

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// view returns the template and the data of a live page for a visitor, as of
// now.
func (k *Console) view(v *visit) (name string, body any, ok bool) {
	q := v.r.URL.Query()
	switch q.Get("page") {
	case "overview":
		if v.who.MayRead("") {
			return "overview", k.overviewNow(v), true
		}
	case "members":
		if v.who.MayRead("") {
			return "members", k.membersNow(v), true
		}
	case "sequencer":
		name := q.Get("name")
		if name != "" && v.who.MayRead(name) {
			if p, err := k.sequencerNow(v, name); err == nil || p.Store.Fault != "" {
				return "sequencer", p, true
			}
			return "", nil, true
		}
	}
	return "", nil, false
}

// maxStreams is how many live pages can be open, and maxStreamsOf how many of
// one principal. Each costs a little every Config.Every.
const (
	maxStreams   = 200
	maxStreamsOf = 20
)

// streams counts the open live pages by principal; the empty name is nobody's.
// The zero value is empty.
type streams struct {
	mu  sync.Mutex // guards the fields below
	all int
	of  map[string]int
}

// begin counts a page, unless there are too many.
func (s *streams) begin(who visitor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxStreams || who.p != nil && s.of[who.Name()] >= maxStreamsOf {
		return false
	}
	s.add(who, 1)
	return true
}

func (s *streams) end(who visitor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(who, -1)
}

// add changes the counts. The caller holds mu.
func (s *streams) add(who visitor, n int) {
	if s.of == nil {
		s.of = make(map[string]int)
	}
	s.all += n
	if s.of[who.Name()] += n; s.of[who.Name()] == 0 {
		delete(s.of, who.Name())
	}
}

// writeLimit is how long a browser may take to read an event.
const writeLimit = 10 * time.Second

// events is the stream of a page: its changes, or a beat if nothing has
// changed, which shows the page that it is still connected.
func (k *Console) events(v *visit) {
	if _, _, ok := k.view(v); !ok {
		http.Error(v.w, "page not found, or permission denied", http.StatusForbidden)
		return
	}
	who := v.who
	if !k.streams.begin(who) {
		v.w.Header().Set("Retry-After", "10")
		http.Error(v.w, "too many open pages", http.StatusServiceUnavailable)
		return
	}
	defer k.streams.end(who)
	c := http.NewResponseController(v.w)
	_ = c.SetReadDeadline(time.Time{}) // the server's limits do not apply to streams
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	if v.r.Method == http.MethodHead {
		return
	}
	tick := time.NewTicker(k.c.Every)
	defer tick.Stop()
	var last []byte
	for {
		v.now = k.c.Now()
		if v.who = k.visitor(v.r); !v.who.Known {
			_ = send(v.w, c, "over", "")
			return
		}
		name, body, ok := k.view(v)
		if !ok {
			_ = send(v.w, c, "over", "")
			return
		}
		var b bytes.Buffer
		if name != "" {
			if err := render(&b, name, "live", body); err != nil {
				k.c.Log.Error("console: rendering a page failed", "page", name, "error", err)
				return
			}
		}
		var err error
		if name != "" && !bytes.Equal(b.Bytes(), last) {
			last = b.Bytes()
			err = send(v.w, c, "view", b.String())
		} else {
			err = send(v.w, c, "beat", "")
		}
		if err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-v.r.Context().Done():
			return
		case <-k.ctx.Done():
			return
		}
	}
}

// send writes an event.
func send(w http.ResponseWriter, c *http.ResponseController, event, data string) error {
	_ = c.SetWriteDeadline(time.Now().Add(writeLimit))
	var b strings.Builder
	fmt.Fprintf(&b, "event: %s\n", event)
	for line := range strings.Lines(data + "\n") {
		fmt.Fprintf(&b, "data: %s\n", strings.TrimRight(line, "\r\n"))
	}
	b.WriteString("\n")
	if _, err := w.Write([]byte(b.String())); err != nil {
		return err
	}
	return c.Flush()
}
