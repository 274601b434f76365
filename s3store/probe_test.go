package s3store

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
)

// keys returns the object keys of a fake that contain a text.
func (s *fake) keys(part string) (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.objects {
		if strings.Contains(key, part) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// unfitServers are faults of real servers, with what Open says about them.
var unfitServers = map[string]struct {
	faults faults
	want   string
}{
	"ignores both, as s3rver":      {faults{ignoresMatch: true, ignoresNoneMatch: true}, "a second create of one key"},
	"ignores If-None-Match":        {faults{ignoresNoneMatch: true}, "a second create of one key"},
	"ignores If-Match":             {faults{ignoresMatch: true}, "a write with a wrong ETag"},
	"ignores one of two, S3Mock":   {faults{ignoresOne: true}, "whose If-Match is true and whose If-None-Match is false"},
	"creates with If-Match":        {faults{matchCreates: true}, "If-Match of an absent key"},
	"writes what it refuses":       {faults{writesRefused: true}, "returned another value"},
	"compares early, as s3s-fs":    {faults{late: true}, "two writes with the same ETag, a slow and a fast one"},
	"answers 501, as OSS and B2":   {faults{unconditional: true}, "refused to create an object"},
	"lists late":                   {faults{stale: true}, "listed 0 of 20 objects"},
	"truncated list, as s3proxy":   {faults{truncates: true}, "truncated list"},
	"404 after a write, as rclone": {faults{absentAfter: true}, "a key is absent after"},
	"another's ETag, as s3s-fs":    {faults{mispairs: true}, "the ETag of another one"},
	"compares without a lock":      {faults{unlocked: true}, "clients that created one key at once"},
}

func TestUnfitServers(t *testing.T) {
	for name, c := range unfitServers {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, c.faults)
			o := options(f.URL)
			s, err := Open(t.Context(), &o)
			if err == nil {
				_ = s.Close()
			}
			if !isUnfit(err) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "cannot be a store") ||
				errors.Is(err, grant.ErrUnreachable) {
				t.Errorf("Open = %v, want %q", err, c.want)
			}
			if left := f.keys(""); len(left) > 0 {
				t.Errorf("the probe leaves %q", left)
			}
		})
	}
}

// TestFitServers checks what Open leaves, and that it probes once a day.
func TestFitServers(t *testing.T) {
	for _, fit := range []faults{{}, {opaqueTags: true}, {locksFirst: true}} {
		opaque := fit.opaqueTags
		f := newFake(t, fit)
		o := options(f.URL)
		s := open(t, o)
		if s.opaque.Load() != opaque {
			t.Errorf("ETags are opaque: %v, want %v", s.opaque.Load(), opaque)
		}
		if got := f.keys(""); len(got) != 1 || !strings.HasPrefix(got[0], s.prefix+"probe/result-") {
			t.Errorf("Open leaves %q, want the result of the probe", got)
		}
		writes := f.writes()
		if again := open(t, o); again.opaque.Load() != opaque || f.writes() != writes {
			t.Errorf("the second Open writes %d objects, and takes ETags for opaque: %v", f.writes()-writes, again.opaque.Load())
		}
		f.age(25 * time.Hour)
		open(t, o)
		if f.writes() == writes {
			t.Error("Open does not probe after a day")
		}
	}
}

// age makes all objects older.
func (s *fake) age(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects {
		o.at = o.at.Add(-by)
	}
}

func (s *fake) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// TestClean has a server that does not answer when the probe deletes what it
// wrote. It is fit, and is not asked for each: Close waits.
func TestClean(t *testing.T) {
	var deleted sync.Map // a connection that is lost may make the transport send a DELETE again
	f := newFake(t, faults{before: func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method != http.MethodDelete {
			return false
		}
		deleted.Store(q.URL.Path, true)
		reset(w)
		return true
	}})
	s := open(t, options(f.URL))
	count := 0
	for range deleted.Range {
		count++
	}
	if known, err := s.recall(t.Context()); count == 0 || count > atOnce || !known || err != nil {
		t.Errorf("the probe deletes %d objects without an answer, and its result is kept: %v, %v", count, known, err)
	}
}

// TestLaterProbe has a server that becomes unfit, and fit again, while stores
// are open. They use it no more; one that is opened then does.
func TestLaterProbe(t *testing.T) {
	f := newFake(t, faults{})
	o := options(f.URL)
	one, two := open(t, o), open(t, o)
	calls.CAS(t, one, "a", "", "1")
	set := func(ignores bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.faults.ignoresMatch = ignores
	}
	set(true)
	f.age(25 * time.Hour)
	for _, s := range []*store{one, two} {
		s.again(t.Context())
		dangers, err := s.Dangers(t.Context())
		if err != nil || len(dangers) != 1 || !strings.Contains(dangers[0], "a wrong ETag") {
			t.Errorf("Dangers after a probe that failed = %q, %v", dangers, err)
		}
		calls.NotSent(t, s, "a", "1", "2", "a wrong ETag")
		calls.Get(t, s, "a", "1")
	}
	_, _, err := one.Lineage(t.Context())
	calls.Error(t, "Lineage after a probe that failed", err, grant.ErrNotSent)
	if created := f.keys(identityName); len(created) > 0 {
		t.Errorf("Lineage after a probe that failed creates %q", created)
	}
	set(false)
	for _, s := range []*store{one, two} {
		s.again(t.Context())
		calls.NotSent(t, s, "a", "1", "2")
	}
	three := open(t, o)
	calls.CAS(t, three, "a", "1", "2")
	one.again(t.Context())
	if dangers, err := one.Dangers(t.Context()); err != nil || len(dangers) != 1 {
		t.Errorf("Dangers after another store has probed = %q, %v, want the fault", dangers, err)
	}

	// A server that does not answer is not unfit.
	f.age(25 * time.Hour)
	f.Close()
	three.again(t.Context())
	if dangers, err := three.Dangers(t.Context()); err != nil || len(dangers) != 0 {
		t.Errorf("Dangers after a probe without an answer = %q, %v", dangers, err)
	}
}

// TestRefusedProbe has a server that refuses a request of a later probe, and
// then does not.
func TestRefusedProbe(t *testing.T) {
	var refuses atomic.Bool
	f := newFake(t, faults{before: func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method != http.MethodDelete || !refuses.Load() {
			return false
		}
		fail(w, http.StatusForbidden, "AccessDenied")
		return true
	}})
	s := open(t, options(f.URL))
	for i, c := range []struct {
		refuses bool
		every   time.Duration
		dangers int
	}{{true, probeFor, 1}, {true, probeFor, 1}, {false, probeEvery, 0}} {
		refuses.Store(c.refuses)
		f.age(25 * time.Hour)
		every := s.again(t.Context())
		dangers, err := s.Dangers(t.Context())
		if every != c.every || err != nil || len(dangers) != c.dangers || c.dangers > 0 && !strings.Contains(dangers[0], "AccessDenied") {
			t.Errorf("refuses %v: the next probe is in %v, and Dangers = %q, %v", c.refuses, every, dangers, err)
		}
		calls.CAS(t, s, fmt.Sprint("a", i), "", "1")
	}
}

// TestForeignResult has results of probes that are not of this store.
func TestForeignResult(t *testing.T) {
	f := newFake(t, faults{})
	s := open(t, options(f.URL))
	now := time.Now()
	for name, c := range map[string]struct {
		bucket, date string
		want         bool
	}{
		"its own":                {"ids", now.Format(time.RFC3339), true},
		"of another bucket":      {"ids2", now.Format(time.RFC3339), false},
		"older than its object":  {"ids", now.Add(-25 * time.Hour).Format(time.RFC3339), false},
		"newer than the present": {"ids", now.Add(time.Hour).Format(time.RFC3339), false},
		"without a date":         {"ids", "", false},
	} {
		text := must.Get(json.Marshal(result{s.endpoint, c.bucket, probeVersion, c.date, false}))(t)
		f.store(s.prefix+s.resultName(), string(text), tagOf(text))
		if known, err := s.recall(t.Context()); known != c.want || err != nil {
			t.Errorf("%s: recall = %v, %v, want %v", name, known, err, c.want)
		}
	}
}

// TestOpenRefused checks what Open says about common answers.
func TestOpenRefused(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   string
	}{
		{http.StatusForbidden, "AccessDenied", "permission denied"},
		{http.StatusForbidden, "RequestTimeTooSkewed", "clock"},
		{http.StatusForbidden, "SignatureDoesNotMatch", "does not accept the credentials"},
		{http.StatusNotFound, "NoSuchBucket", "bucket ids not found"},
		{http.StatusMovedPermanently, "PermanentRedirect", "region=REGION"},
		{http.StatusTemporaryRedirect, "TemporaryRedirect", "region=REGION"},
	} {
		f := newFake(t, faults{before: func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Location", "http://"+q.Host+"/elsewhere")
			fail(w, c.status, c.code)
			return true
		}})
		o := options(f.URL)
		if _, err := Open(t.Context(), &o); err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, grant.ErrUnreachable) {
			t.Errorf("Open with answer %d %s = %v, want %q", c.status, c.code, err, c.want)
		}
	}
	o := options("http://127.0.0.1:1")
	for o.Timeout = time.Millisecond; ; o.Timeout *= 4 {
		_, err := Open(t.Context(), &o)
		if strings.Contains(err.Error(), "get credentials") && o.Timeout < time.Minute {
			continue // too short a time to find even these
		}
		if !errors.Is(err, grant.ErrUnreachable) {
			t.Errorf("Open without a server = %v, want ErrUnreachable", err)
		}
		break
	}
}
