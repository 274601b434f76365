// Package issued records which client received which IDs, and finds that
// again: the issue log of firn serve, and firn who.
package issued

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
)

// A Record is a line of the log, as JSON. N counts all lines of a process,
// those that were lost too, so that a missing line shows. Lines with an Event
// have no IDs.
type Record struct {
	Time   time.Time `json:"time"` // when the line was made, by the server's clock
	Log    string    `json:"log"`  // identifies the process
	N      uint64    `json:"n"`
	Event  string    `json:"event,omitempty"`  // start, minute, lost or end
	Server string    `json:"server,omitempty"` // of an Event
	Lost   int       `json:"lost,omitempty"`   // how many lines were lost before this one

	Sequencer string   `json:"sequencer,omitempty"`
	Layout    string   `json:"layout,omitempty"`
	Runs      []Run    `json:"runs,omitempty"`
	IDs       []string `json:"ids,omitempty"`       // of layouts without runs
	Client    string   `json:"client,omitempty"`    // in the token file, or of a certificate
	Address   string   `json:"address,omitempty"`   // of the client
	Request   string   `json:"request,omitempty"`   // as in other logs
	Forwarded bool     `json:"forwarded,omitempty"` // the client is a server, which passes the IDs on to a client
}

// A Run is Count IDs: First, First+Step and so on. First has the format of the
// layout. The form is that of HTTP.
type Run struct {
	First string `json:"first"`
	Step  Step   `json:"step"`
	Count uint64 `json:"count"`
}

// A Step is text in the log, because it can exceed 2^53. A number is read too,
// as older logs have it.
type Step uint64

// UnmarshalJSON implements json.Unmarshaler.
func (s *Step) UnmarshalJSON(data []byte) error {
	text := strings.TrimSuffix(strings.TrimPrefix(string(data), `"`), `"`)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return err
	}
	*s = Step(n)
	return nil
}

const (
	minute = time.Minute // how often a line proves that nothing is missing

	// gather is how long lines are gathered before they are written at once.
	gather = 10 * time.Millisecond

	// maxPending is how many bytes wait to be written before lines are lost.
	maxPending = 4 << 20

	closeLimit = time.Second
)

// A Log writes a line for each answer with IDs. It never blocks its callers:
// while nothing can be written, lines are lost, which a later line says. It is
// safe for concurrent use.
type Log struct {
	mu      sync.Mutex // guards the fields below, up to stamp; what each line changes is first, close together
	n       uint64
	pending []byte
	lost    int // lines since the last one that says so
	total   uint64
	layout  firn.Layout // of the last line
	text    string      // of layout
	second  int64       // since 1970, of the last line
	stamp   []byte      // of second

	open   func() (io.Writer, error) // the file, again if it was renamed
	logger *slog.Logger
	id     string
	server string

	wake  chan struct{}   // has an element if there are pending lines
	ctx   context.Context // done when Close begins
	end   context.CancelFunc
	torn  bool // the file may end with a part of a line, of an earlier process
	ended chan struct{}
}

// Stdout is the path of a log on the standard output.
const Stdout = "stdout"

// Open opens the log of a server in a file, to which it appends, or on stdout.
// If the file is renamed or removed, the next lines go to a new one. Start begins
// the log, and Close ends it.
func Open(path string, stdout io.Writer, server string, logger *slog.Logger) (*Log, error) {
	open := func() (io.Writer, error) { return stdout, nil }
	torn := path != Stdout
	if torn {
		f := &file{path: path}
		open = f.current
	}
	if _, err := open(); err != nil {
		return nil, err
	}
	l := &Log{open: open, logger: logger, id: strings.ToLower(rand.Text()[:10]), server: server, torn: torn,
		wake: make(chan struct{}, 1), ended: make(chan struct{})}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l, nil
}

// Start begins the log, with a line that says so. Nothing may be added before.
func (l *Log) Start() {
	l.event("start")
	go l.run()
}

// A file is opened again when its path leads elsewhere.
type file struct {
	path string
	f    *os.File
}

func (f *file) current() (io.Writer, error) {
	if f.f != nil {
		is, err := f.f.Stat()
		if at, e := os.Stat(f.path); err == nil && e == nil && os.SameFile(is, at) {
			return f.f, nil
		}
	}
	next, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	switch {
	case err != nil && f.f != nil:
		return f.f, nil // the old file is better than none
	case err != nil:
		return nil, err
	case f.f != nil:
		_ = f.f.Close()
	}
	f.f = next
	return next, nil
}

// Add writes that a client receives a batch. The request ID is that of ctx.
func (l *Log) Add(ctx context.Context, c *auth.Credentials, name string, b service.Batch) {
	var room [512]byte
	rest := appendIDs(appendField(room[:0], `,"sequencer":`, name), &b) // before mu is locked: there may be many
	rest = appendField(appendField(rest, `,"client":`, c.Name()), `,"address":`, c.Address)
	rest = appendField(rest, `,"request":`, requestid.Of(ctx))
	if service.Forwarded(ctx) {
		rest = append(rest, `,"forwarded":true`...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	line, ok := l.line()
	if !ok {
		return
	}
	if layout := b.Layout(); *layout != l.layout {
		l.layout, l.text = *layout, layout.String()
	}
	l.keep(append(appendField(line, `,"layout":`, l.text), rest...))
}

// appendIDs appends the IDs of a batch as runs, or each if its layout has none.
func appendIDs(line []byte, b *service.Batch) []byte {
	as := form.Of(b.Layout().Format())
	if !b.Layout().HasRuns() {
		line = append(line, `,"ids":[`...)
		mark := `"`
		for id := range b.All {
			line = append(id.Append(append(line, mark...), &as), '"')
			mark = `,"`
		}
		return append(line, ']')
	}
	line = append(line, `,"runs":[`...)
	for i, r := range b.Runs() {
		if i > 0 {
			line = append(line, ',')
		}
		line = r.First.Append(append(line, `{"first":"`...), &as)
		line = strconv.AppendUint(append(line, `","step":"`...), r.Step, 10)
		line = append(strconv.AppendInt(append(line, `","count":`...), int64(r.Count), 10), '}')
	}
	return append(line, ']')
}

// line begins the next line, unless it is lost. The caller has locked mu.
func (l *Log) line() (line []byte, ok bool) {
	l.n++
	if len(l.pending) > maxPending {
		l.lose(1, errors.New("nothing reads it"))
		return nil, false
	}
	now := time.Now()
	if at := now.Unix(); at != l.second || l.stamp == nil {
		l.second, l.stamp = at, now.UTC().AppendFormat(l.stamp[:0], "2006-01-02T15:04:05")
	}
	line = append(append(l.pending, `{"time":"`...), l.stamp...)
	line = strconv.AppendInt(line, int64(1e6+now.Nanosecond()/1000), 10)
	line[len(line)-7] = '.' // instead of the 1 before six digits
	line = append(append(line, `Z","log":"`...), l.id...)
	return strconv.AppendUint(append(line, `","n":`...), l.n, 10), true
}

// keep ends a line of line.
func (l *Log) keep(line []byte) {
	l.pending = append(line, "}\n"...)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// lose counts lost lines. The caller has locked mu.
func (l *Log) lose(n int, err error) {
	if l.lost == 0 {
		l.logger.Warn("issue log: lines are lost", "error", err)
	}
	l.lost += n
	l.total += uint64(n)
}

func (l *Log) event(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line, ok := l.line(); ok {
		line = appendField(appendField(line, `,"event":`, name), `,"server":`, l.server)
		if l.lost > 0 {
			line = strconv.AppendInt(append(line, `,"lost":`...), int64(l.lost), 10)
			l.lost = 0
		}
		l.keep(line)
	}
}

// appendField appends a field of a JSON object, unless it is empty. Its key has
// the comma before it and the colon after it.
func appendField(line []byte, key, value string) []byte {
	if value == "" {
		return line
	}
	line = append(line, key...)
	for i := range len(value) {
		if b := value[i]; b < ' ' || b > '~' || b == '"' || b == '\\' {
			quoted, _ := json.Marshal(value)
			return append(line, quoted...)
		}
	}
	return append(append(append(line, '"'), value...), '"')
}

// run writes what is pending, and a line a minute, until Close.
func (l *Log) run() {
	defer close(l.ended)
	every := time.NewTicker(minute)
	defer every.Stop()
	var spare []byte
	torn := l.torn
	for ended := false; !ended; {
		select {
		case <-l.wake:
			select {
			case <-time.After(gather):
			case <-l.ctx.Done():
			}
		case <-every.C:
			l.event("minute")
		case <-l.ctx.Done():
			l.event("end")
			ended = true
		}
		l.mu.Lock()
		lines := l.pending
		l.pending = spare[:0]
		l.mu.Unlock()
		if spare = lines; len(lines) == 0 {
			continue
		}
		if torn {
			lines = append([]byte("\n"), lines...)
		}
		written := 0
		w, err := l.open()
		if err == nil {
			written, err = w.Write(lines)
			torn = torn && written == 0 || written > 0 && lines[written-1] != '\n'
		}
		if left := bytes.Count(bytes.TrimPrefix(lines[written:], []byte("\n")), []byte("\n")); err != nil && left > 0 {
			l.mu.Lock()
			l.lose(left, err)
			l.mu.Unlock()
		} else if l.isBehind() {
			l.event("lost")
		}
		if cap(spare) > maxPending {
			spare = nil
		}
	}
}

func (l *Log) isBehind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost > 0
}

// Lost returns how many lines were lost.
func (l *Log) Lost() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// Close writes what is pending, but does not wait long if nothing can be
// written. Nothing may be added afterwards.
func (l *Log) Close() error {
	l.end()
	select {
	case <-l.ended:
		return nil
	case <-time.After(closeLimit):
		return errors.New("the issue log could not be written to its end")
	}
}
