package s3store

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	// probeVersion changes when the probe finds more.
	probeVersion = 1

	// probeFor is how long a result is used, and probeEvery how often a store
	// looks whether it is older.
	probeFor   = 24 * time.Hour
	probeEvery = time.Hour

	// probeLimit is how long a probe may take. It makes about 650 requests.
	probeLimit = 3 * time.Minute

	clients     = 8  // that write at once
	created     = 20 // keys that all clients create
	counters    = 2  // keys that all clients increment
	incremented = 8  // times by each client

	unknownMost = 20 // writes of these that may have an unknown result
)

// A result of a probe that succeeded is kept in an object, for other members.
type result struct {
	Endpoint string `json:"endpoint"`
	Bucket   string `json:"bucket"`
	Version  int    `json:"version"`
	Date     string `json:"date"`   // of the server's clock
	Opaque   bool   `json:"opaque"` // ETags are not MD5 sums
}

// resultName returns the name of the object with the result for this endpoint.
func (s *store) resultName() string {
	sum := sha256.Sum256([]byte(s.endpoint))
	return probeDir + "result-" + hex.EncodeToString(sum[:6])
}

// recall adopts a kept result, and reports whether it found one that is not
// older than a day, by the server's own clock. A copy of it in another bucket,
// or in a restored one, does not count.
func (s *store) recall(ctx context.Context) (bool, error) {
	o, err := s.read(ctx, s.resultName(), false)
	if err != nil {
		return false, err
	}
	var r result
	if o.value == nil || o.date.IsZero() || json.Unmarshal(o.value, &r) != nil || r.Endpoint != s.endpoint ||
		r.Bucket != s.bucket || r.Version != probeVersion {
		return false, nil
	}
	made, err := time.Parse(time.RFC3339, r.Date)
	for _, age := range []time.Duration{o.age, o.date.Sub(made)} {
		if err != nil || age < -time.Minute || age > probeFor {
			return false, nil
		}
	}
	s.opaque.Store(r.Opaque)
	return true, nil
}

// examine probes the server, and keeps the result. An error that does
// not match grant.ErrUnfit says nothing about the server. If it is unfit, this
// store sends no CAS any more, whatever a later probe says: a fault that shows
// now and then remains one. Other stores probe when they look for the result.
func (s *store) examine(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	p := newProbe(s)
	name, err := s.resultName(), p.run(ctx)
	after, done := context.WithTimeout(context.WithoutCancel(ctx), answerLimit) // Close waits for no more
	defer done()
	if isUnfit(err) {
		s.fault.Store(&err)
		_ = s.remove(after, name)
	}
	if e := p.clean(after); err == nil && e != nil {
		err = fmt.Errorf("delete what the probe wrote: %w", e)
	}
	switch {
	case isUnfit(err):
		return err
	case err != nil:
		return fmt.Errorf("probe: %w", err)
	}
	s.opaque.Store(p.opaque)
	now, err := s.read(ctx, name, false)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	text, _ := json.Marshal(result{s.endpoint, s.bucket, probeVersion, now.date.UTC().Format(time.RFC3339), p.opaque})
	on := absent
	if now.value != nil {
		on = condition{match: now.tag}
	}
	// If the condition is false, another was faster.
	if _, _, err = s.put(ctx, name, text, on, nil); err != nil && !isConditionFalse(err) {
		return fmt.Errorf("keep the result of the probe: %w", err)
	}
	return nil
}

// repeat runs the probe every day, until Close. Of several members, the first
// to notice that the result is old does.
func (s *store) repeat() {
	every := probeEvery
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(every/2 + mathrand.N(every)):
			every = s.again(s.ctx)
		}
	}
}

// again probes the server if the result is old and no probe has found a fault,
// and returns about when to do so again. A server that does not answer is no
// reason to stop: its writes fail anyway. One that refuses a request of the
// probe will refuse it in an hour too, and the whole probe is paid.
func (s *store) again(ctx context.Context) time.Duration {
	if s.fault.Load() != nil {
		return probeFor
	}
	known, err := s.recall(ctx)
	if err == nil && !known {
		err = s.examine(ctx)
		if err != nil && !isUnfit(err) && !isPassing(err) {
			s.failed.Store(&err)
			return probeFor
		}
	}
	if err == nil {
		s.failed.Store(nil)
	}
	return probeEvery
}

// remove deletes an object of a probe. Nothing else is ever deleted.
func (s *store) remove(ctx context.Context, name string) error {
	if !strings.HasPrefix(name, probeDir) {
		return fmt.Errorf("object %s is not one of a probe", name)
	}
	_, err := s.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + name)})
	return err
}

// A probe looks for the faults that servers have been found to have. It cannot
// show durability, nor what several gateways of one store do.
type probe struct {
	*store
	dir    string
	opaque bool

	mu      sync.Mutex
	written map[string]bool // to be deleted
	by      map[string]int  // how many clients created it
	unknown int             // writes of these whose results are unknown
}

func newProbe(s *store) *probe {
	return &probe{
		store: s, dir: probeDir + strings.ToLower(rand.Text()[:12]) + "/",
		written: make(map[string]bool), by: make(map[string]int),
	}
}

// run runs the steps at once, because a server may be far away, and returns the
// first fault in their order, or the first error.
func (p *probe) run(ctx context.Context) error {
	first, err := p.first(ctx)
	if err != nil {
		return err
	}
	steps := []func(context.Context) error{
		func(ctx context.Context) error { return p.inTurn(ctx, first) }, p.slowAndFast, p.creates, p.increments, p.longKey,
	}
	return together(ctx, len(steps), func(ctx context.Context, i int) error { return steps[i](ctx) })
}

// together calls do with 0 to n-1 at once, and returns the first fault, or the
// first error. It waits for all: a write that is given up may be applied after
// clean.
func together(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	errs := make([]error, n)
	_ = each(ctx, n, func(ctx context.Context, i int) error {
		errs[i] = do(ctx, i)
		return nil
	})
	if i := slices.IndexFunc(errs, isUnfit); i >= 0 {
		return errs[i]
	}
	return cmp.Or(errs...)
}

// clean deletes what the probe has written, until ctx is done or the server
// does not answer: what is left does no harm. It returns an error that the
// server answers.
func (p *probe) clean(ctx context.Context) error {
	names := slices.Collect(maps.Keys(p.written))
	err := each(ctx, len(names), func(ctx context.Context, i int) error { return p.remove(ctx, names[i]) })
	if _, status := codeOf(err); status == 0 {
		return nil
	}
	return err
}

// write makes a write, and reports whether the server confirmed it.
func (p *probe) write(ctx context.Context, key, value string, on condition, hold <-chan struct{}) (
	tag string, ok bool, err error,
) {
	name := p.dir + key
	p.mu.Lock()
	p.written[name] = true
	p.mu.Unlock()
	tag, _, err = p.put(ctx, name, []byte(value), on, hold)
	_, status := codeOf(err)
	switch {
	case err == nil:
		return tag, true, nil
	case status == 501 || isConditionFalse(err):
		return "", false, nil
	}
	return "", false, fmt.Errorf("write %s: %w", name, err)
}

// holds returns an error unless a key has a value, and returns its ETag. A
// server may return an old value or a part of one, for a moment or for good.
func (p *probe) holds(ctx context.Context, key, want, after string) (tag string, err error) {
	o, err := p.read(ctx, p.dir+key, false)
	switch {
	case err != nil:
		return "", fmt.Errorf("read %s: %w", p.dir+key, err)
	case string(o.value) != want && o.value == nil:
		return "", unfitf("answered that a key is absent after %s", after)
	case string(o.value) != want:
		return "", unfitf("returned another value than that written after %s", after)
	}
	return o.tag, nil
}

// first creates an object, returns its ETag, and learns what ETags are.
func (p *probe) first(ctx context.Context) (tag string, err error) {
	tag, ok, err := p.write(ctx, "a", "first", absent, nil)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", unfitf("refused to create an object with If-None-Match (Alibaba OSS and Backblaze B2 do)")
	}
	read, err := p.holds(ctx, "a", "first", "it was created")
	if err == nil && read != tag {
		err = unfitf("has answered a write with another ETag than a read")
	}
	p.opaque = tag != tagOf([]byte("first"))
	return tag, err
}

// inTurn makes one request after the other. first is the ETag of the value
// first.
func (p *probe) inTurn(ctx context.Context, first string) error {
	second := ""
	for _, c := range []struct {
		what, key, next string
		on              condition
		want            bool
	}{
		{"a second create of one key (s3rver, Google Cloud Storage and Oracle OCI do)", "a", "x1", absent, false},
		{"a write with a wrong ETag (s3rver and Google Cloud Storage do)", "a", "x2",
			condition{match: tagOf([]byte("x"))}, false},
		{"a write with the right ETag", "a", "second", condition{match: first}, true},
		{"a write with the ETag of an earlier value", "a", "x3", condition{match: first}, false},
		{"a write whose If-Match is true and whose If-None-Match is false (S3Mock does)", "a", "x4",
			condition{match: "second", noneMatch: "*"}, false},
		{"a write with If-Match of an absent key", "b", "x5", condition{match: first}, false},
	} {
		if c.on.match == "second" {
			c.on.match = second
		}
		tag, ok, err := p.write(ctx, c.key, c.next, c.on, nil)
		switch {
		case err != nil:
			return err
		case ok && !c.want:
			return unfitf("answered 200 to %s", c.what)
		case !ok && c.want:
			return unfitf("refused %s", c.what)
		case ok:
			second = tag
		}
		value := "second"
		if second == "" {
			value = "first"
		}
		if _, err := p.holds(ctx, "a", value, "it answered "+c.what); err != nil {
			return err
		}
	}
	o, err := p.read(ctx, p.dir+"b", false)
	if err == nil && o.value != nil {
		err = unfitf("refused a write and made it nevertheless")
	}
	return err
}

// slowAndFast begins a write, makes another one with the same ETag meanwhile,
// and ends the first. A server that locks the key before the body arrives, as
// MinIO does, answers the fast write only after the slow one.
func (p *probe) slowAndFast(ctx context.Context) error {
	slow, fast := strings.Repeat("written slowly ", 250), "written fast"
	begin := time.Now()
	from, ok, err := p.write(ctx, "c", "begin", absent, nil)
	if err != nil || !ok {
		return cmp.Or(err, unfitf("refused to create an object"))
	}
	trip := time.Since(begin)
	hold := make(chan struct{})
	var slowOK, fastOK bool
	var slowErr, fastErr error
	var writing sync.WaitGroup
	writing.Go(func() { _, slowOK, slowErr = p.write(ctx, "c", slow, condition{match: from}, hold) })
	select { // time for the first half to arrive; the probe is right without it, but finds less
	case <-time.After(max(trip, 50*time.Millisecond)):
	case <-ctx.Done():
	}
	answered := make(chan struct{})
	writing.Go(func() {
		defer close(answered)
		_, fastOK, fastErr = p.write(ctx, "c", fast, condition{match: from}, nil)
	})
	select {
	case <-answered:
	case <-time.After(min(max(10*trip, time.Second), answerLimit/2)):
	}
	close(hold)
	writing.Wait()
	switch {
	case cmp.Or(fastErr, slowErr) != nil:
		return cmp.Or(fastErr, slowErr)
	case fastOK && slowOK:
		return unfitf("answered 200 to two writes with the same ETag, a slow and a fast one (s3s-fs and s3rver do)")
	case !fastOK && !slowOK:
		return unfitf("refused both of two writes with the same, right ETag")
	}
	want := fast
	if slowOK {
		want = slow
	}
	_, err = p.holds(ctx, "c", want, "a slow and a fast write")
	return err
}

// creates has several clients create the same keys at once, and lists them
// afterwards. On S3Mock, s3proxy and s3s-fs several of them succeed.
func (p *probe) creates(ctx context.Context) error {
	err := together(ctx, clients, func(ctx context.Context, c int) error {
		for i := range created {
			key := fmt.Sprintf("k%02d", i)
			ok, err := p.attempt(ctx, key, fmt.Sprintf("of client %d", c), absent)
			if err != nil {
				return err
			}
			if p.mu.Lock(); ok {
				p.by[key]++
			}
			p.mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return err
	}
	listed, err := p.list(ctx, p.dir+"k", 7)
	switch {
	case errors.Is(err, errTruncated):
		return unfitf("returned a truncated list without saying where it continues (s3proxy does)")
	case err != nil:
		return fmt.Errorf("list %s: %w", p.dir, err)
	case len(listed) != created:
		return unfitf("listed %d of %d objects that were just created", len(listed), created)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range created {
		if n := p.by[fmt.Sprintf("k%02d", i)]; n > 1 || n+p.unknown == 0 {
			return unfitf("answered 200 to %d of %d clients that created one key at once", n, clients)
		}
	}
	return nil
}

// increments has several clients increment the same counters at once. s3proxy
// and s3s-fs lose some.
func (p *probe) increments(ctx context.Context) error {
	err := together(ctx, clients, func(ctx context.Context, c int) error {
		for i := range incremented {
			if err := p.increment(ctx, fmt.Sprintf("n%d", (c+i)%counters), c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	total := 0
	for i := range counters {
		o, err := p.read(ctx, p.dir+fmt.Sprintf("n%d", i), false)
		if err != nil {
			return err
		}
		n, _ := countOf(o.value)
		total += n
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := clients * incremented; total < want || total > want+p.unknown {
		return unfitf("confirmed %d increments of counters at once, which have risen by %d", want, total)
	}
	return nil
}

// increment adds one to a counter, as often as another client is faster.
func (p *probe) increment(ctx context.Context, key string, by int) error {
	for {
		o, err := p.read(ctx, p.dir+key, !p.opaque)
		if errors.Is(err, errPair) {
			return unfitf("returned a value with the ETag of another one, again and again (s3s-fs does)")
		}
		if err != nil {
			return err
		}
		n, whole := countOf(o.value)
		if !whole {
			return unfitf("returned a part of a value")
		}
		on := absent
		if o.value != nil {
			on = condition{match: o.tag}
		}
		// Values of different lengths, so that a torn one shows.
		value := fmt.Sprintf("%d %d %s end", n+1, by, strings.Repeat(".", (7*n+13*by)%50))
		if ok, err := p.attempt(ctx, key, value, on); ok || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// attempt is write for one of many writes at once, of which a few may have an
// unknown result.
func (p *probe) attempt(ctx context.Context, key, value string, on condition) (bool, error) {
	_, ok, err := p.write(ctx, key, value, on, nil)
	if err == nil || ctx.Err() != nil || !isPassing(err) {
		return ok, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unknown++; p.unknown > unknownMost {
		return false, err
	}
	return false, nil
}

// countOf returns the number in the value of a counter, and whether the value
// is whole.
func countOf(value []byte) (n int, whole bool) {
	if value == nil {
		return 0, true
	}
	number, _, _ := strings.Cut(string(value), " ")
	n, err := strconv.Atoi(number)
	return n, err == nil && strings.HasSuffix(string(value), " end")
}

// longKey writes and reads an object whose name is as long as that of any key.
func (p *probe) longKey(ctx context.Context) error {
	name := objectOf(strings.Repeat("l", 256))
	_, ok, err := p.write(ctx, name, "long", absent, nil)
	if err == nil && !ok {
		err = unfitf("refused to create an object with a long name")
	}
	if err == nil {
		_, err = p.holds(ctx, name, "long", "it was created")
	}
	return err
}
