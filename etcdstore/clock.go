package etcdstore

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

var _ grant.Clock = (*store)(nil)

const (
	// timeLimit is how long Time waits. The time is only a hint, but claiming a
	// node ID waits for it.
	timeLimit = 2 * time.Second

	// dateResolution is the resolution of the header Date.
	dateResolution = time.Second

	// alikeMost is how far two readings of correct clocks can differ: each is
	// up to a second old, and the machines' clocks are as precise as NTP.
	alikeMost = 2 * time.Second

	// maxAnswer is the maximum number of bytes read from an answer.
	maxAnswer = 64 << 10
)

// Time returns the time of the members of etcd. etcd answers HTTP at its client
// addresses, and each answer has a Date, with a resolution of one second. Time
// asks all endpoints and returns the median of their clocks, so one of three
// members may have a wrong clock. It returns as soon as most of them agree.
//
// It is an error if no endpoint answers within two seconds, or if none answers
// HTTP: an etcd with --listen-client-http-urls does not do so at its other
// addresses.
func (s *store) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, 0, err
	}
	defer leave()
	var asking sync.WaitGroup
	defer asking.Wait()
	call, cancel := context.WithTimeout(call, timeLimit)
	defer cancel()
	answers := make(chan reading, len(s.endpoints))
	for _, e := range s.endpoints {
		asking.Go(func() { answers <- s.date(call, e) })
	}
	var read []reading
	var faults []error
	for range s.endpoints {
		r := <-answers
		if r.err != nil {
			faults = append(faults, r.err)
			continue
		}
		read = append(read, r)
		slices.SortFunc(read, func(a, b reading) int { return cmp.Compare(a.ahead, b.ahead) })
		if last := len(read) - 1; len(read) > len(s.endpoints)/2 && read[last].ahead-read[0].ahead <= alikeMost {
			break
		}
	}
	if len(read) == 0 {
		return time.Time{}, 0, failed(call, "read the time", errors.Join(faults...))
	}
	return read[(len(read)-1)/2].date, dateResolution, nil
}

// A reading is the time of an endpoint.
type reading struct {
	date  time.Time
	ahead time.Duration // lead of this machine's clock when the answer arrived
	err   error
}

// date asks an endpoint, on a separate connection: members ask at most once a
// minute, and a Transport of net/http would log the answers of addresses
// without HTTP. As in etcd's client, redirects are not followed and no proxy is
// used.
func (s *store) date(ctx context.Context, endpoint string) reading {
	failed := func(err error) reading { return reading{err: fmt.Errorf("%s: %w", endpoint, err)} }
	// /version needs no user, and each member answers it by itself.
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/version", http.NoBody)
	if err != nil {
		return failed(err)
	}
	q.Close = true
	dialed, err := new(net.Dialer).DialContext(ctx, "tcp", q.URL.Host)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = dialed.Close() }()
	defer context.AfterFunc(ctx, func() { _ = dialed.SetDeadline(time.Unix(1, 0)) })()
	conn := dialed
	if s.tls != nil {
		config := s.tls.Clone()
		config.ServerName, config.NextProtos = q.URL.Hostname(), nil
		conn = tls.Client(dialed, config)
	}
	if err := q.Write(conn); err != nil {
		return failed(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxAnswer)), q)
	if err != nil {
		return failed(err)
	}
	at := time.Now() // the body is not needed
	if r.StatusCode != http.StatusOK {
		return failed(fmt.Errorf("GET /version answers %s", r.Status))
	}
	date, err := http.ParseTime(r.Header.Get("Date"))
	if err != nil {
		return failed(fmt.Errorf("the Date of its answer is invalid: %w", err))
	}
	return reading{date: date.UTC(), ahead: date.Sub(at)}
}
