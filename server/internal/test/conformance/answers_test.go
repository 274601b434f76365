//go:build unix

package conformance

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/test/distinct"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A fakeServer answers a request for n IDs with any bytes, and closes the
// connection. It does not answer if the bytes are nil.
type fakeServer struct {
	url    string
	asked  atomic.Int64 // connections
	answer func(request *http.Request, n int) []byte
}

func startFake(t *testing.T, secure bool, answer func(request *http.Request, n int) []byte) *fakeServer {
	t.Helper()
	l := nettest.Listen(t)
	f := &fakeServer{url: "http://" + l.Addr().String(), answer: answer}
	if secure {
		f.url = "https://" + l.Addr().String()
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{nettest.NewAuthority(t).Issue(t, "server", 2, time.Hour)}})
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return f
}

func (f *fakeServer) serve(conn net.Conn) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	f.asked.Add(1)
	data := []byte("HTTP/1.1 400 Bad Request\r\n\r\n")
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err == nil {
		n, _ := strconv.Atoi(request.FormValue("count"))
		data = f.answer(request, n)
	}
	conn.Write(data)
	if c, ok := conn.(*net.TCPConn); ok { // no reset, which would take bytes along
		if data != nil && err == nil { // the JDK may see an end before bytes that are not TLS
			c.CloseWrite()
		}
		io.Copy(io.Discard, conn)
	}
}

// A counter makes the IDs of fake servers.
type counter struct{ last atomic.Uint64 }

// body returns n new IDs as the request asks for them, and their type.
func (c *counter) body(request *http.Request, n int) (data []byte, media string) {
	first := c.last.Add(uint64(n)) - uint64(n) + 1
	if request.FormValue("runs") != "" {
		return fmt.Appendf(nil, `{"runs":[{"first":"%016x","step":"1","count":%d}]}`, first, n), "application/json"
	}
	for i := range uint64(n) {
		data = binary.BigEndian.AppendUint64(data, first+i)
	}
	return data, "application/octet-stream"
}

// whole returns a complete answer with n IDs.
func (c *counter) whole(request *http.Request, n int) []byte {
	data, media := c.body(request, n)
	nonce := "\r\nFirn-Nonce: " + request.Header.Get("Firn-Nonce") + "\r\n"
	return bytes.Replace(answer(media, len(data), data), []byte("\r\n"), []byte(nonce), 1)
}

func answer(media string, length int, data []byte) []byte {
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", media, length)
	return append([]byte(head), data...)
}

// bad is where the IDs in answers that must not be used begin.
const bad = 1 << 60

// A client uses no ID of an answer that is cut, too short, too long or not one
// at all, and gets IDs from another server. Each of these answers has a server
// of its own, so that one call meets many of them.
func TestAnswersThatCannotBeUsed(t *testing.T) {
	var good, wrong counter
	wrong.last.Store(bad)
	servers := []*fakeServer{}
	add := func(f func(request *http.Request, n int) []byte) {
		servers = append(servers, startFake(t, false, f))
	}
	packed, _ := http.NewRequest(http.MethodPost, "http://fake/", nil)
	runs, _ := http.NewRequest(http.MethodPost, "http://fake/?runs=true", nil)
	for _, r := range []*http.Request{packed, runs} {
		r.Header.Set("Firn-Nonce", strings.Repeat("0", 32))
	}
	// The lengths of the answers for the 3 IDs that are requested.
	size := max(len(wrong.whole(packed, 3)), len(wrong.whole(runs, 3)))
	for cut := range size {
		add(func(request *http.Request, n int) []byte {
			data := wrong.whole(request, n)
			return data[:min(cut, len(data)-1)]
		})
	}
	for _, by := range []int{-9, -8, -1, 1, 8, 9} {
		add(func(request *http.Request, n int) []byte { // a length that is not that of n IDs
			data, media := wrong.body(request, n)
			data = append(data, make([]byte, 16)...)[:max(0, len(data)+by)]
			return answer(media, len(data), data)
		})
	}
	add(func(request *http.Request, n int) []byte { // cut after an ID, and without a length
		data, media := wrong.body(request, n)
		return fmt.Appendf(nil, "HTTP/1.0 200 OK\r\nContent-Type: %s\r\n\r\n%s", media, data[:len(data)-8])
	})
	add(func(request *http.Request, n int) []byte { // the same ID n times
		_, media := wrong.body(request, n)
		data := bytes.Repeat([]byte("abcdefgh"), n)
		return answer(media, len(data), data)
	})
	add(func(request *http.Request, n int) []byte { // the ID 0
		_, media := wrong.body(request, n)
		return answer(media, 8*n, make([]byte, 8*n))
	})
	add(func(request *http.Request, n int) []byte { // the answer to another request
		request.Header.Set("Firn-Nonce", "0")
		return wrong.whole(request, n)
	})
	for _, text := range []string{
		"", "\x15\x03\x01\x00\x02\x02\x46", "SSH-2.0-OpenSSH_9.2p1\r\n", "-ERR unknown command 'POST'\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 24\r\n\r\n<p>abcdefghijklmnopqrstu",
		"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nabcdefgh\r\nzz\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n18\r\nabcdefghijklmnop",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 200) + "\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops", "HTTP/1.1 999 x\r\n\r\n", strings.Repeat("x", 1<<17),
	} {
		add(func(*http.Request, int) []byte { return []byte(text) })
	}
	eachLanguage(t, func(t *testing.T, l language) {
		l.command(t)
		last := startFake(t, false, good.whole)
		list := []string{last.url}
		for _, f := range servers {
			f.asked.Store(0)
			list = append(list, f.url)
		}
		d := l.start(t, list, patient...)
		var all distinct.IDs[firn.ID]
		note := func(how string, ids []firn.ID) {
			all.Add(t, how, ids...)
			if most := slices.Max(ids); most > bad {
				t.Fatalf("%s gave the ID %v of an answer that must not be used", how, most)
			}
		}
		// A client prefers servers that have not failed, so it soon has met all.
		for calls, left := 0, len(servers); left > 0; calls++ {
			if calls > 100*len(servers) {
				t.Fatalf("after %d calls, %d servers were not asked", calls, left)
			}
			note("take", d.ids("take", 3))
			left = 0
			for _, f := range servers {
				if f.asked.Load() == 0 {
					left++
				}
			}
		}
		note("next", d.ids("next", 1000))
	})
}
