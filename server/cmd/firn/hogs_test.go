//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A hog is what a client sends, without reading any answer, to have a server
// take memory.
type hog struct {
	first string // once
	then  string // again and again
}

// framed is a frame of HTTP/2 of a stream.
func framed(kind, flags byte, stream uint32, payload string) string {
	b := h2Frame(kind, flags, payload)
	binary.BigEndian.PutUint32(b[5:], stream)
	return string(b)
}

// callBlock is the header block of a call, without the table of the connection.
func callBlock(method string) string {
	var b strings.Builder
	for _, text := range []string{":method", "POST", ":scheme", "http", ":path", "/firn.v1.IDs/" + method, ":authority", "localhost", "content-type", "application/grpc", "te", "trailers"} {
		if b.Len() == 0 || text[0] == ':' || text == "content-type" || text == "te" {
			b.WriteByte(0) // a literal that is not kept
		}
		b.WriteByte(byte(len(text)))
		b.WriteString(text)
	}
	return b.String()
}

// callMessage is the message of a call.
func callMessage(m string) string {
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(m)))) + m
}

// TestHogs: many clients that send without end and read nothing cost a server
// no more memory than its limits allow, and do not affect other clients.
func TestHogs(t *testing.T) {
	nettest.Long(t)
	const (
		most     = 32 << 20 // bytes that a client sends, where it can
		patience = time.Second
		heap     = 16 // MiB to which a busy server lets it grow, whatever is in use
	)
	block := callBlock("Next")
	h2 := h2Preface + framed(4, 0, 0, "")
	message := callMessage("\x10" + string(binary.AppendUvarint(nil, service.MaxCount)))          // count
	credit := callMessage("\x10" + string(binary.AppendUvarint(nil, 1_000_000_000)) + "\x18\x01") // in batches of 1
	var calls, streams, resets, opened strings.Builder
	for id := uint32(1); id < 2*250; id += 2 {
		calls.WriteString(framed(1, 4, id, block) + framed(0, 1, id, message))
	}
	for id := uint32(1); id < 2*20_000; id += 2 {
		resets.WriteString(framed(1, 5, id, block) + framed(3, 0, id, "\x00\x00\x00\x08"))
		opened.WriteString(framed(1, 4, id, block))
	}
	// A header of 4,000 bytes for the table of the connection, and then a byte for
	// each of its repetitions.
	table := block + "\x40\x01x\x7f\xa1\x1e" + strings.Repeat("y", 4000) + strings.Repeat("\xbe", 4000)
	// Windows as large as they can be, and all credit for small messages.
	streams.WriteString(framed(4, 0, 0, "\x00\x04\x7f\xff\xff\xff") + framed(8, 0, 0, "\x40\x00\x00\x00"))
	for id := uint32(1); id < 2*100; id += 2 {
		streams.WriteString(framed(1, 4, id, callBlock("Stream")) + framed(0, 0, id, credit))
	}
	all := map[string]struct {
		hog
		conns int
		mib   int // that the server may have, with them
	}{
		"http header":        {hog{"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", strings.Repeat("x", 1<<10)}, 64, 84},
		"http headers":       {hog{"GET / HTTP/1.1\r\n", strings.Repeat("X: y\r\n", 100)}, 64, 84},
		"http body":          {hog{"PUT /v1/sequencers/made HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n", strings.Repeat(" ", 1<<10)}, 64, 84},
		"http chunks":        {hog{"PUT /v1/sequencers/made HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", "400\r\n" + strings.Repeat(" ", 1<<10) + "\r\n"}, 64, 84},
		"http unread":        {hog{"", "GET /v1/sequencers/hog/next?count=100000 HTTP/1.1\r\nHost: localhost\r\n\r\n"}, 64, 84},
		"resp bulk":          {hog{"*1\r\n$1073741824\r\n", strings.Repeat("x", 1<<10)}, 64, 84},
		"resp inline":        {hog{"", strings.Repeat("x", 1<<10)}, 64, 84},
		"resp arguments":     {hog{"*1048576\r\n", "$1\r\nx\r\n"}, 64, 84},
		"resp unread":        {hog{"", "NEXT hog 100000\r\nNEXTB hog 100000\r\n"}, 64, 84},
		"resp names":         {hog{"", "ECHO " + strings.Repeat("x", 30<<10) + "\r\n"}, 64, 84},
		"grpc header":        {hog{h2 + framed(1, 0, 1, block), framed(9, 0, 1, strings.Repeat("x", 1<<10))}, 64, 84},
		"grpc message":       {hog{h2 + framed(1, 4, 1, block) + framed(0, 0, 1, "\x00\xff\xff\xff\xff"), framed(0, 0, 1, strings.Repeat("x", 1<<10))}, 64, 84},
		"grpc pings":         {hog{h2, framed(6, 0, 0, "firnfirn")}, 64, 84},
		"grpc settings":      {hog{h2, framed(4, 0, 0, "")}, 64, 84},
		"grpc unread":        {hog{h2 + calls.String(), ""}, 64, 184},
		"grpc streams":       {hog{h2Preface + streams.String(), ""}, 64, 184},
		"grpc long settings": {hog{h2, framed(4, 0, 0, strings.Repeat("\xbe\xef\x00\x00\x00\x01", 2000))}, 64, 84},
		"grpc acks":          {hog{h2, framed(6, 1, 0, "firnfirn") + framed(4, 1, 0, "")}, 64, 84},
		"grpc windows":       {hog{h2, framed(8, 0, 0, "\x00\x00\x00\x01")}, 64, 184},
		"grpc priorities":    {hog{h2, framed(2, 0, 1, "\x00\x00\x00\x00\x01")}, 64, 84},
		"grpc resets":        {hog{h2 + resets.String(), ""}, 64, 84},
		"grpc header table":  {hog{h2 + framed(1, 5, 1, table), ""}, 64, 84},
		"grpc no header":     {hog{h2 + framed(1, 0, 1, block), framed(9, 0, 1, "")}, 64, 84},
		"grpc open calls":    {hog{h2 + opened.String(), ""}, 64, 184},
		"grpc unknown":       {hog{h2, framed(0xbe, 0, 0, strings.Repeat("x", 1000))}, 64, 84},
		"grpc empty data":    {hog{h2 + framed(1, 4, 1, block), framed(0, 0, 1, "")}, 64, 84},
		"resp arrays":        {hog{"", "*1048576\r\n"}, 64, 84},
		"bytes of no use":    {hog{"\x16\x03\x01", strings.Repeat("\x00", 1<<10)}, 64, 84},
	}
	var report []string
	for _, what := range slices.Sorted(maps.Keys(all)) {
		row := all[what]
		t.Run(what, func(t *testing.T) {
			server := startProcess(t, "127.0.0.1:0", "--node 7 --layout bits=time:40.node:4.seq:20,unit=1ms,epoch=2026-01-01T00:00:00Z")
			url := server.url
			var hogs sync.WaitGroup
			var sent atomic.Int64
			many := []byte(strings.Repeat(row.then, 1+16<<10/(1+len(row.then))))
			begin := time.Now()
			for range row.conns {
				conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				hogs.Go(func() {
					_ = conn.SetWriteDeadline(begin.Add(patience))
					n, err := io.WriteString(conn, row.first)
					for total := n; err == nil && row.then != "" && total < most; total += n {
						n, err = conn.Write(many)
						sent.Add(int64(n))
					}
				})
			}
			hogs.Wait()
			if row.then == "" {
				time.Sleep(patience) // no more is sent, and the server may work on it
			}
			// Among them.
			client := &http.Client{Transport: new(http.Transport), Timeout: nettest.Patience}
			defer client.CloseIdleConnections()
			r, err := client.Post(url+"/v1/sequencers/other/next", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			if r.StatusCode != 200 {
				t.Errorf("who else asks has %s", r.Status)
			}
			limit := row.mib + heap
			if raced() {
				limit *= 8
			}
			peak := memoryOf(t, server.cmd.Process.Pid, "VmHWM") >> 10
			if peak > limit {
				t.Errorf("the server has had %d MiB, want %d at most", peak, limit)
			}
			report = append(report, fmt.Sprintf("%s %d MiB", what, peak))
			server.stop()
			if strings.Contains(server.log.String(), "panic") {
				t.Errorf("%s", server.log)
			}
			t.Logf("%d connections, %d MiB sent, at most %d MiB of memory", row.conns, sent.Load()>>20, peak)
		})
	}
	t.Logf("report: the most memory of a server with 64 connections that send without end and read nothing: %s", strings.Join(report, ", "))
}
