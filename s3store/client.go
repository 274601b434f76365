package s3store

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the ETag of S3
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/firnid/firn/grant"
)

const (
	// tries is how often a read is attempted. A write is attempted once.
	tries = 4

	// firstPause is roughly the wait before the second attempt of a read; it
	// doubles.
	firstPause = 50 * time.Millisecond

	// maxValue is the length of the longest value of a Store.
	maxValue = 4096
)

// A client makes requests to a bucket. It never repeats a write.
type client struct {
	s3     *s3.Client
	bucket string
	prefix string // of all object keys; empty, or ends with a slash
}

// An exchange is what the transport sees of a request. Its context carries it.
type exchange struct {
	sent atomic.Bool     // it was passed to a connection
	date string          // of the answer
	hold <-chan struct{} // if not nil, the second half of the body waits for it
}

type exchangeKey struct{}

// A transport passes requests on, and records what happens to each.
type transport struct {
	http.RoundTripper
	consistent bool // ask Tigris for strong consistency
}

func (t *transport) RoundTrip(q *http.Request) (*http.Response, error) {
	x, _ := q.Context().Value(exchangeKey{}).(*exchange)
	if t.consistent {
		q = q.Clone(q.Context())
		q.Header.Set("X-Tigris-Consistent", "true")
	}
	if x == nil {
		return t.RoundTripper.RoundTrip(q)
	}
	ctx := httptrace.WithClientTrace(q.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { x.sent.Store(true) },
	})
	q = q.WithContext(ctx)
	if x.hold != nil {
		half := q.ContentLength / 2
		q.Body = &heldBody{io.LimitReader(q.Body, half), q.Body, x.hold, ctx.Done()}
	}
	r, err := t.RoundTripper.RoundTrip(q)
	if err == nil {
		x.date = r.Header.Get("Date")
	}
	return r, err
}

// A heldBody sends its second half when hold is closed.
type heldBody struct {
	first io.Reader
	io.ReadCloser
	hold, done <-chan struct{}
}

func (b *heldBody) Read(p []byte) (int, error) {
	if n, err := b.first.Read(p); err == nil {
		return n, nil
	}
	select {
	case <-b.hold:
	case <-b.done:
		return 0, context.Canceled
	}
	return b.ReadCloser.Read(p)
}

// tagOf returns the ETag of bytes on a server whose ETags are MD5 sums.
func tagOf(value []byte) string {
	sum := md5.Sum(value)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// An object is what GET returns; value is nil if it is absent.
type object struct {
	value []byte
	tag   string
	date  time.Time // of the server's clock
	age   time.Duration
}

// fetch reads an object, once.
func (c *client) fetch(ctx context.Context, name string) (*object, error) {
	x := new(exchange)
	ctx = context.WithValue(ctx, exchangeKey{}, x)
	r, err := c.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: &c.bucket, Key: aws.String(c.prefix + name)})
	o := new(object)
	o.date, _ = http.ParseTime(x.date)
	if isAbsent(err) {
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }()
	if o.value, err = io.ReadAll(io.LimitReader(r.Body, maxValue+1)); err != nil {
		return nil, fmt.Errorf("the answer ends early: %w", err)
	}
	if o.tag = aws.ToString(r.ETag); !isTag(o.tag) {
		return nil, fmt.Errorf("the answer has the ETag %q: is the endpoint right?", o.tag)
	}
	o.age = o.date.Sub(aws.ToTime(r.LastModified))
	if o.value == nil {
		o.value = []byte{}
	}
	return o, nil
}

// isTag reports whether a text can be sent as the only strong ETag of If-Match.
// An empty one means an unconditional write nearly everywhere.
func isTag(tag string) bool {
	return len(tag) > 2 && tag[0] == '"' && strings.IndexByte(tag[1:], '"') == len(tag)-2
}

// read reads an object, and retries if the connection is lost or the server
// reports that it is overloaded or failing. If ETags are MD5 sums, it also
// retries until the body has the ETag: versitygw returns the one of an earlier
// body in one of a thousand reads. Of an object that is too long it has a part.
func (c *client) read(ctx context.Context, name string, isMD5 bool) (*object, error) {
	var o *object
	err := c.retry(ctx, func() (err error) {
		o, err = c.fetch(ctx, name)
		if err == nil && o.value != nil && isMD5 && len(o.value) <= maxValue && o.tag != tagOf(o.value) {
			err = errPair
		}
		return err
	})
	return o, err
}

var errPair = errors.New("the body does not have its ETag, the MD5 sum: it was changed by another program, or the " +
	"bucket's encryption was changed: if from KMS to another, copy the objects onto themselves, then open the store " +
	"again; if to KMS, the next daily probe notices")

// retry makes a read, and repeats it if it may succeed a moment later.
func (c *client) retry(ctx context.Context, do func() error) error {
	pause := firstPause
	var reason error
	for n := 1; ; n++ {
		err := do()
		if err == nil || !isPassing(err) {
			return err
		}
		if reason == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			reason = err
		}
		if n == tries || ctx.Err() != nil {
			return reason
		}
		select {
		case <-ctx.Done():
			return reason
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause *= 2
	}
}

// A condition is the one header of a conditional write; both is for the probe.
type condition struct{ match, noneMatch string }

var absent = condition{noneMatch: "*"}

// put writes an object, once, and returns its new ETag. sent reports whether
// any of the request may have left the process.
func (c *client) put(ctx context.Context, name string, value []byte, on condition, hold <-chan struct{}) (
	tag string, sent bool, err error,
) {
	x := &exchange{hold: hold}
	ctx = context.WithValue(ctx, exchangeKey{}, x)
	in := &s3.PutObjectInput{Bucket: &c.bucket, Key: aws.String(c.prefix + name), Body: bytes.NewReader(value)}
	if on.match != "" {
		if !isTag(on.match) {
			return "", false, fmt.Errorf("the ETag %q cannot be compared", on.match)
		}
		in.IfMatch = &on.match
	}
	if on.noneMatch != "" {
		in.IfNoneMatch = &on.noneMatch
	}
	if on == (condition{}) {
		return "", false, errors.New("a write without a condition")
	}
	r, err := c.s3.PutObject(ctx, in)
	if err != nil {
		return "", x.sent.Load(), err
	}
	if tag = aws.ToString(r.ETag); !isTag(tag) {
		return "", true, fmt.Errorf("the answer to a write has the ETag %q: is the endpoint right?", tag)
	}
	return tag, true, nil
}

// list returns the ends of the object keys that begin with a prefix.
func (c *client) list(ctx context.Context, prefix string, page int32) (names []string, err error) {
	in := &s3.ListObjectsV2Input{Bucket: &c.bucket, Prefix: aws.String(c.prefix + prefix)}
	if page > 0 {
		in.MaxKeys = &page
	}
	for {
		var r *s3.ListObjectsV2Output
		err := c.retry(ctx, func() (err error) {
			r, err = c.s3.ListObjectsV2(ctx, in)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, o := range r.Contents {
			name, ok := strings.CutPrefix(aws.ToString(o.Key), c.prefix)
			if !ok || !strings.HasPrefix(name, prefix) {
				return nil, fmt.Errorf("the list has %q, which is outside of %s%s", aws.ToString(o.Key), c.prefix, prefix)
			}
			names = append(names, name)
		}
		next := aws.ToString(r.NextContinuationToken)
		switch {
		case !aws.ToBool(r.IsTruncated):
			return names, nil
		case next == "" || next == aws.ToString(in.ContinuationToken):
			return nil, errTruncated
		}
		in.ContinuationToken = &next
	}
}

var errTruncated = errors.New("a page of a list is truncated and does not say where the next one begins")

// check returns an error unless an object is absent or has a record.
func (o *object) check(name string) error {
	if o.value != nil && (len(o.value) == 0 || len(o.value) > maxValue) {
		return fmt.Errorf("%w: s3store: object %s has no valid record: it was changed or created by another "+
			"program; restore it from a copy, and fence (firn node fence): %w", grant.ErrNotSent, name, grant.ErrDamaged)
	}
	return nil
}
