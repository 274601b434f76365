package s3store

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/pipes"
)

// A fake is an S3 server in memory, with the faults that real ones have.
type fake struct {
	*httptest.Server
	t      testing.TB
	faults faults

	mu      sync.Mutex
	objects map[string]*stored
	count   int // of writes
	early   int // writes that met, and are compared
	both    chan struct{}
}

type stored struct {
	body []byte
	tag  string
	at   time.Time
}

// faults are what documented servers do instead. Each is the name of a test.
type faults struct {
	ignoresMatch     bool // writes regardless of If-Match
	ignoresNoneMatch bool
	ignoresOne       bool // if both are there
	writesRefused    bool // and answers 412 nevertheless
	locksFirst       bool // locks the key before the body arrives, as MinIO; not a fault
	late             bool // compares before the body arrives, and writes after it
	unlocked         bool // compares and writes without a lock
	unconditional    bool // answers 501 to conditions
	matchCreates     bool // writes an absent key with If-Match
	stale            bool // lists nothing
	truncates        bool // lists pages without a token
	absentAfter      bool // answers 404 to reads of a key that was just replaced
	mispairs         bool // returns a counter with the ETag of another value, as s3s-fs
	opaqueTags       bool // has ETags that are not MD5 sums; not a fault

	// answer, if not nil, may answer a request in place of the server, before or
	// after it acts, if it returns true.
	before, after func(w http.ResponseWriter, q *http.Request) bool
}

func unserved(t testing.TB, f faults) *fake {
	return &fake{t: t, faults: f, objects: make(map[string]*stored), both: make(chan struct{})}
}

func newFake(t testing.TB, f faults) *fake {
	s := unserved(t, f)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// A bubble serves HTTP without a network, within a bubble of testing/synctest.
type bubble struct {
	server   http.Server
	listener *pipes.Listener
	handlers sync.WaitGroup
}

// inBubble begins to serve. The caller must end it.
func inBubble(h http.HandlerFunc) *bubble {
	b := &bubble{listener: pipes.New()}
	b.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b.handlers.Add(1)
		defer b.handlers.Done()
		h(w, q)
	})
	go func() { _ = b.server.Serve(b.listener) }()
	return b
}

// end ends it, when the handlers have ended.
func (b *bubble) end() {
	_ = b.server.Close()
	b.handlers.Wait()
}

// store returns a store in the bubble, whose server counts as fit. The caller
// must close it before the bubble ends.
func (b *bubble) store(t *testing.T) *store {
	s := must.Get(newStore(t.Context(), &Options{Bucket: "ids", Prefix: "p", Endpoint: "http://bubble", PathStyle: true}))(t)
	s.transport.DialContext = b.listener.DialContext
	return s
}

func (s *fake) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	key := strings.TrimPrefix(q.URL.Path, "/ids/")
	if s.faults.before != nil && s.faults.before(w, q) {
		return
	}
	if s.faults.after != nil {
		r := httptest.NewRecorder()
		s.serve(r, q, key)
		if s.faults.after(w, q) {
			return
		}
		for k, v := range r.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(r.Code)
		_, _ = w.Write(r.Body.Bytes())
		return
	}
	s.serve(w, q, key)
}

func (s *fake) serve(w http.ResponseWriter, q *http.Request, key string) {
	switch {
	case q.Method == http.MethodGet && q.URL.Query().Get("list-type") == "2":
		s.list(w, q)
	case q.Method == http.MethodGet:
		s.mu.Lock()
		o := s.objects[key]
		s.mu.Unlock()
		if o == nil || s.faults.absentAfter && strings.Contains(string(o.body), "second") {
			fail(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", o.tag)
		if s.faults.mispairs && strings.HasSuffix(key, "/n0") {
			w.Header().Set("ETag", tagOf([]byte("another")))
		}
		w.Header().Set("Last-Modified", o.at.UTC().Format(http.TimeFormat))
		_, _ = w.Write(o.body)
	case q.Method == http.MethodPut:
		s.put(w, q, key)
	case q.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.objects, key)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		fail(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func fail(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>by the fake</Message></Error>", code)
}

// store replaces an object.
func (s *fake) store(key, body, tag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = &stored{[]byte(body), tag, time.Now()}
}

// verdict returns the status and the code of a write that is refused, or 0.
func (s *fake) verdict(q *http.Request, key string) (int, string) {
	f, o := &s.faults, s.objects[key]
	match, none := q.Header.Get("If-Match"), q.Header.Get("If-None-Match")
	if f.ignoresOne && match != "" {
		none = ""
	}
	switch {
	case f.unconditional:
		return http.StatusNotImplemented, "NotImplemented"
	case match != "" && !f.ignoresMatch && o == nil && !f.matchCreates:
		return http.StatusNotFound, "NoSuchKey"
	case match != "" && !f.ignoresMatch && o != nil && match != o.tag, none == "*" && !f.ignoresNoneMatch && o != nil:
		return http.StatusPreconditionFailed, "PreconditionFailed"
	}
	return 0, ""
}

func (s *fake) put(w http.ResponseWriter, q *http.Request, key string) {
	f := &s.faults
	match, none := q.Header.Values("If-Match"), q.Header.Values("If-None-Match")
	if !strings.Contains(key, "/"+probeDir) && (len(match)+len(none) != 1 || len(match) == 1 && len(strings.Trim(match[0], `*" `)) == 0 ||
		len(none) == 1 && none[0] != "*") {
		s.t.Errorf("the write of %s has If-Match %q and If-None-Match %q", key, match, none)
	}
	var status int
	var code string
	// Of two writes that meet, the first waits until the second is compared too,
	// so that no speed decides.
	compare := func(meet bool) {
		s.mu.Lock()
		status, code = s.verdict(q, key)
		nth := 0
		if meet {
			s.early++
			nth = s.early
		}
		s.mu.Unlock()
		switch nth {
		case 1:
			<-s.both
		case 2:
			close(s.both)
		}
	}
	if f.late {
		compare(strings.HasSuffix(key, "/c") && q.Header.Get("If-Match") != "")
	}
	if f.locksFirst {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	if f.unlocked {
		compare(strings.HasSuffix(key, "/k00"))
	}
	if !f.locksFirst {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	if !f.late && !f.unlocked {
		status, code = s.verdict(q, key)
	}
	if status != 0 && !f.writesRefused {
		fail(w, status, code)
		return
	}
	s.count++
	o := &stored{body, tagOf(body), time.Now()}
	if f.opaqueTags {
		o.tag = fmt.Sprintf(`"%d-%s"`, s.count, tagOf(body)[1:9])
	}
	s.objects[key] = o
	if status != 0 {
		fail(w, status, code)
		return
	}
	w.Header().Set("ETag", o.tag)
}

func (s *fake) list(w http.ResponseWriter, q *http.Request) {
	type content struct{ Key string }
	var page struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []content
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	query := q.URL.Query()
	most, err := strconv.Atoi(query.Get("max-keys"))
	if err != nil {
		most = 1000
	}
	var keys []string
	for key := range s.objects {
		if strings.HasPrefix(key, query.Get("prefix")) && key > query.Get("continuation-token") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if s.faults.stale {
			break
		}
		if len(page.Contents) == most {
			if page.IsTruncated = true; !s.faults.truncates {
				page.NextContinuationToken = page.Contents[most-1].Key
			}
			break
		}
		page.Contents = append(page.Contents, content{key})
	}
	_ = xml.NewEncoder(w).Encode(page)
}
