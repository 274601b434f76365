//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// Minimal clients, so that the server is measured. Each checks that the answers
// match the requests.

// A caller makes one call for some IDs over its own connection.
type caller interface {
	call() (ids int, err error)
	Close() error
}

// A load is the number of calls in a period, and of their IDs.
type load struct {
	calls, ids int
	took       time.Duration
}

// drive makes all callers call concurrently until d has passed.
func drive(callers []caller, d time.Duration) (load, error) {
	var mu sync.Mutex
	var sum load
	var failures error
	var all sync.WaitGroup
	begin := time.Now()
	end := begin.Add(d)
	for _, c := range callers {
		all.Go(func() {
			var mine load
			for time.Now().Before(end) {
				n, err := c.call()
				if err != nil {
					mu.Lock()
					failures = errors.Join(failures, err)
					mu.Unlock()
					return
				}
				mine.calls++
				mine.ids += n
			}
			mu.Lock()
			sum.calls += mine.calls
			sum.ids += mine.ids
			mu.Unlock()
		})
	}
	all.Wait()
	sum.took = time.Since(begin)
	return sum, failures
}

// callers makes n callers, or none.
func callers(n int, make func() (caller, error)) (all []caller, closeAll func(), err error) {
	closeAll = func() {
		for _, c := range all {
			_ = c.Close()
		}
	}
	for range n {
		c, err := make()
		if err != nil {
			closeAll()
			return nil, func() {}, err
		}
		all = append(all, c)
	}
	return all, closeAll, nil
}

// A respCaller sends one command many times in a pipeline, and reads the
// answers.
type respCaller struct {
	net.Conn
	r        *bufio.Reader
	request  []byte
	pipeline int
	packed   int // IDs in a binary answer; 0: the answer is one ID
	buf      []byte
	last     []byte // the greatest ID of the last packed answer
}

// respConn connects to a RESP server. pack is the number of IDs of NEXTB.
func respConn(ctx context.Context, address, command string, pipeline, pack int) (*respCaller, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	return &respCaller{conn, bufio.NewReaderSize(conn, 256<<10), bytes.Repeat([]byte(command), pipeline), pipeline, pack, make([]byte, 8*pack), nil}, nil
}

// respCommand returns a command in its wire format.
func respCommand(words ...string) string {
	s := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		s += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return s
}

func (c *respCaller) call() (ids int, err error) {
	if _, err := c.Write(c.request); err != nil {
		return 0, err
	}
	for range c.pipeline {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return ids, err
		}
		switch {
		case len(line) > 3 && line[0] == ':' && c.packed == 0:
			ids++
		case len(line) > 3 && line[0] == '$':
			n, err := strconv.Atoi(string(line[1 : len(line)-2]))
			if err != nil || n < 0 {
				return ids, fmt.Errorf("the answer is %q", line)
			}
			if c.packed == 0 {
				if _, err := c.r.Discard(n + 2); err != nil {
					return ids, err
				}
				ids++
				continue
			}
			if n != len(c.buf) {
				return ids, fmt.Errorf("%d bytes, want %d", n, len(c.buf))
			}
			if err := c.readPacked(); err != nil {
				return ids, err
			}
			ids += c.packed
		default:
			return ids, fmt.Errorf("the answer is %q", line)
		}
	}
	return ids, nil
}

func (c *respCaller) readPacked() error {
	if _, err := io.ReadFull(c.r, c.buf); err != nil {
		return err
	}
	if _, err := c.r.Discard(2); err != nil {
		return err
	}
	return increasing(&c.last, c.buf)
}

// increasing checks that packed IDs increase from one answer to the next. It
// compares only the first and last IDs, because comparing all would dominate
// the measurement.
func increasing(last *[]byte, packed []byte) error {
	first, end := packed[:8], packed[len(packed)-8:]
	if bytes.Compare(*last, first) >= 0 || bytes.Compare(first, end) > 0 {
		return fmt.Errorf("IDs %x to %x after %x", first, end, *last)
	}
	*last = append((*last)[:0], end...)
	return nil
}

// An httpCaller sends one HTTP/1.1 request again and again.
type httpCaller struct {
	net.Conn
	r       *bufio.Reader
	request []byte
	packed  int
	buf     []byte
	last    []byte
}

func httpConn(ctx context.Context, address, path, accept string, pack int) (*httpCaller, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\nContent-Length: 0\r\n\r\n", path, address, accept)
	return &httpCaller{conn, bufio.NewReaderSize(conn, 256<<10), []byte(request), pack, make([]byte, 8*pack), nil}, nil
}

// authorize makes it send a token.
func (c *httpCaller) authorize(token string) {
	head := bytes.TrimSuffix(c.request, []byte("\r\n"))
	c.request = fmt.Appendf(nil, "%sAuthorization: Bearer %s\r\n\r\n", head, token)
}

func (c *httpCaller) call() (ids int, err error) {
	if _, err := c.Write(c.request); err != nil {
		return 0, err
	}
	length, chunked := -1, false
	for i := 0; ; i++ {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if i == 0 && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
			return 0, fmt.Errorf("the answer is %q", line)
		}
		if len(line) <= 2 {
			break
		}
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		switch {
		case bytes.EqualFold(key, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, err
			}
		case bytes.EqualFold(key, []byte("Transfer-Encoding")):
			chunked = true
		}
	}
	if c.packed == 0 {
		if chunked || length < 0 {
			return 0, errors.New("the answer has no length")
		}
		_, err := c.r.Discard(length)
		return 1, err
	}
	if !chunked {
		if length != len(c.buf) {
			return 0, fmt.Errorf("%d bytes, want %d", length, len(c.buf))
		}
		if _, err := io.ReadFull(c.r, c.buf); err != nil {
			return 0, err
		}
		return c.whole()
	}
	for at := 0; ; {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return 0, err
		}
		if at+int(n) > len(c.buf) {
			return 0, fmt.Errorf("more than %d bytes", len(c.buf))
		}
		if _, err := io.ReadFull(c.r, c.buf[at:at+int(n)]); err != nil {
			return 0, err
		}
		if _, err := c.r.Discard(2); err != nil {
			return 0, err
		}
		if at += int(n); n == 0 {
			if at != len(c.buf) {
				return 0, fmt.Errorf("%d bytes, want %d", at, len(c.buf))
			}
			return c.whole()
		}
	}
}

// whole checks a packed answer that has arrived.
func (c *httpCaller) whole() (ids int, err error) {
	if err := increasing(&c.last, c.buf); err != nil {
		return 0, err
	}
	return c.packed, nil
}
