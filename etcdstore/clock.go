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

var _ grant.Clock = (*Store)(nil)

const (
	// timeLimit is how long Time waits. It is a hint, and whoever claims a node ID
	// waits for it.
	timeLimit = 2 * time.Second

	// dateResolution is that of the header Date.
	dateResolution = time.Second

	// alikeMost is by how much two readings of right clocks can differ: each is up
	// to a second old, and the machines' clocks are those of NTP.
	alikeMost = 2 * time.Second

	// maxAnswer is how much of an answer is read at most.
	maxAnswer = 64 << 10
)

// Time returns what the members of etcd have for the time. etcd answers HTTP at
// the addresses where it serves its clients, and each answer has a Date, to the
// second. All endpoints are asked. The result is the middle one of their
// clocks, so that of three members one may have a wrong clock; it is there as
// soon as most of them agree.
//
// It is an error if no endpoint answers within two seconds, or none answers
// HTTP: an etcd with --listen-client-http-urls does not at its other addresses.
func (s *Store) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
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
		return time.Time{}, 0, s.failed(ctx, "read the time", errors.Join(faults...))
	}
	return read[(len(read)-1)/2].date, dateResolution, nil
}

// A reading is what an endpoint has for the time.
type reading struct {
	date  time.Time
	ahead time.Duration // of this machine's clock, when the answer came
	err   error
}

// date asks an endpoint, on a connection of its own: members ask once a minute
// at most, and a Transport of net/http would log what an address without HTTP
// says. No redirect is followed, and no proxy used, as by the client of etcd.
func (s *Store) date(ctx context.Context, endpoint string) reading {
	failed := func(err error) reading { return reading{err: fmt.Errorf("%s: %w", endpoint, err)} }
	// /version is answered without a user, and by each member alone.
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
	at := time.Now() // the body is of no interest
	if r.StatusCode != http.StatusOK {
		return failed(fmt.Errorf("GET /version answers %s", r.Status))
	}
	date, err := http.ParseTime(r.Header.Get("Date"))
	if err != nil {
		return failed(fmt.Errorf("the Date of its answer is not a time: %w", err))
	}
	return reading{date: date.UTC(), ahead: date.Sub(at)}
}
