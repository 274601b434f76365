//go:build linux

package main

import (
	"cmp"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A hog is what each of many clients sends, without reading any answer, to have
// a server take memory.
type hog struct {
	first string // once
	then  string // again and again
	conns int    // 0 means 64
	args  string // of the server
}

// hogNode is the node ID of a server that makes as many IDs as a client wants.
const hogNode = "--node 7 --layout bits=time:40.node:4.seq:20,unit=1ms,epoch=2026-01-01T00:00:00Z "

// many returns what f returns for the first n streams of a client.
func many(n int, f func(stream uint32) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(uint32(2*i + 1)))
	}
	return b.String()
}

// names returns n short names, with text before and after each.
func names(n int, before, after string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	var b strings.Builder
	for i := range n {
		b.WriteString(before)
		for i++; i > 0; i /= len(letters) {
			b.WriteByte(letters[i%len(letters)])
		}
		b.WriteString(after)
	}
	return b.String()
}

// tableFields and references are parts of header blocks: fields that fill the table of
// a connection, and n references to them, of a byte or two.
func tableFields() string {
	var b strings.Builder
	for i := range tableLen {
		b.WriteString("\x40\x02" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + "\x00")
	}
	return b.String()
}

// tableLen is how many of the shortest fields a table has.
const tableLen = 4096 / (32 + 2)

func references(n int) string {
	var b strings.Builder
	for i := range n {
		if i %= tableLen; i < 0x7f-62 {
			b.WriteByte(0x80 | byte(62+i))
		} else {
			b.WriteString("\xff" + string(byte(i-(0x7f-62))))
		}
	}
	return b.String()
}

// hello is the first message of a client of TLS that speaks so many protocols.
func hello(t *testing.T, protocols string) string {
	client, server := net.Pipe()
	defer client.Close()
	go func() {
		_ = tls.Client(client, &tls.Config{InsecureSkipVerify: true, NextProtos: append(strings.Fields(protocols), "http/1.1")}).Handshake()
	}()
	b := make([]byte, 128<<10)
	_ = server.SetReadDeadline(time.Now().Add(time.Second))
	n := 0
	for {
		more, err := server.Read(b[n:])
		if n += more; err != nil {
			return string(b[:n])
		}
		_ = server.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	}
}

// hogs returns all of them. Without tokens, a client is known once the server
// has accepted one of its requests, and some of these are.
func hogs(t *testing.T) map[string]hog {
	dir := t.TempDir()
	nettest.Certificates(t, dir)
	secure := hogNode + "--tls-cert " + filepath.Join(dir, "server.crt") + " --tls-key " + filepath.Join(dir, "server.key")
	_, hash := auth.NewToken()
	file := filepath.Join(dir, "tokens.yaml")
	must.Do(t, os.WriteFile(file, []byte("tokens:\n- {name: all, role: admin, sha256: "+hash+"}\n"), 0o600))
	guarded := hogNode + "--tokens " + file

	frame := nettest.H2Frame
	h2 := nettest.H2Preface + frame(4, 0, 0, "")
	next := nettest.CallHeaders("/firn.v1.IDs/Next")
	message := nettest.CallMessage("\x10" + string(binary.AppendUvarint(nil, service.MaxCount))) // count
	header := "PUT /v1/sequencers/made HTTP/1.1\r\nHost: localhost\r\n"
	form := "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 262144\r\n\r\n"
	watch := nettest.CallHeaders("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
	describe := nettest.CallMessage("\x22\x0bfirn.v1.IDs")
	all := map[string]hog{
		// Of clients that the server does not know.
		"http tiny headers":      {first: "GET / HTTP/1.1\r\nHost: localhost\r\n" + names(4000, "", ":\n"), conns: 1000},
		"http same headers":      {first: "GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("a:\n", 6000), conns: 1000},
		"http long line":         {first: "GET /?" + names(5000, "", "&"), conns: 1000},
		"http queries unread":    {then: "GET /sign-in?" + names(3500, "", "&") + " HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n", conns: 1000, args: guarded},
		"http cookies":           {then: "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nCookie: " + names(2900, "", "=;") + "\r\n\r\n", conns: 1000, args: guarded},
		"http public unread":     {then: "GET /openapi.yaml HTTP/1.1\r\nHost: localhost\r\n\r\n", conns: 1000, args: guarded},
		"http trailers":          {first: header + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + names(4000, "", ":\n"), conns: 1000},
		"http body unfinished":   {first: header + "Content-Length: 65536\r\n\r\n{" + strings.Repeat(" ", 65000), conns: 1000},
		"http chunks unfinished": {first: header + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;aaaaaaaaaaaaaaaa\r\n \r\n", 60_000), conns: 1000},
		"sign-in":                {first: form + "token=" + strings.Repeat("x", 262_000), conns: 1000, args: guarded},
		"sign-in fields":         {first: form + names(60_000, "", "&"), conns: 1000, args: guarded},
		"grpc references": {first: h2 + many(4, func(id uint32) string {
			if id == 1 {
				return frame(1, 4, id, next+tableFields()+references(300))
			}
			return frame(1, 4, id, next+references(448))
		}), conns: 1000},
		"grpc calls":         {first: h2 + many(100, func(id uint32) string { return frame(1, 4, id, next) }), conns: 1000},
		"grpc calls guarded": {first: h2 + many(500, func(id uint32) string { return frame(1, 4, id, next) }), conns: 1000, args: guarded},
		"grpc continuations": {first: h2 + frame(1, 0, 1, next) + frame(9, 0, 1, tableFields()) + strings.Repeat(frame(9, 0, 1, references(100)), 30), conns: 1000},
		"grpc reflection": {first: h2 + frame(8, 0, 0, "\x40\x00\x00\x00") + many(4, func(id uint32) string {
			return frame(1, 4, id, watch) + strings.Repeat(frame(0, 0, id, describe), 100)
		}), conns: 1000, args: guarded},
		"grpc prefaces":         {first: h2, conns: 4000},
		"grpc long frame":       {first: h2 + frame(0xbe, 0, 0, strings.Repeat("x", 16383)), conns: 1000},
		"grpc settings unread":  {then: frame(4, 0, 0, strings.Repeat("\x00\x04\x00\x00\xff\xff", 32)), first: h2, conns: 1000},
		"resp bulk unfinished":  {first: "*2\r\n$65536\r\n" + strings.Repeat("x", 65536) + "\r\n$65000\r\n" + strings.Repeat("x", 60_000), conns: 1000},
		"resp errors unread":    {then: strings.Repeat("*1\r\n$1\r\nA\r\n", 100), conns: 1000, args: guarded},
		"resp before AUTH":      {first: "*2\r\n$4\r\nAUTH\r\n$16384\r\n" + strings.Repeat("x", 16000), conns: 1000, args: guarded},
		"tls protocols":         {first: hello(t, strings.Repeat("a ", 31_000)), conns: 1000, args: secure},
		"tls hellos":            {first: hello(t, ""), conns: 1000, args: secure},
		"tls unfinished record": {first: "\x16\x03\x01\x40\x00\x01\x00\xff\xf0" + strings.Repeat("x", 16000), conns: 1000, args: secure},
		"silent":                {conns: 4000},
		"first byte":            {first: "G", conns: 4000},

		// Of any.
		"http header":        {first: "GET / HTTP/1.1\r\nHost: localhost\r\nX: ", then: strings.Repeat("x", 1<<10)},
		"http headers":       {first: "GET / HTTP/1.1\r\n", then: strings.Repeat("X: y\r\n", 100)},
		"http body":          {first: header + "Content-Length: 1073741824\r\n\r\n", then: strings.Repeat(" ", 1<<10)},
		"http chunks":        {first: header + "Transfer-Encoding: chunked\r\n\r\n", then: "400\r\n" + strings.Repeat(" ", 1<<10) + "\r\n"},
		"http unread":        {then: "GET /v1/sequencers/hog/next?count=100000 HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		"resp bulk":          {first: "*1\r\n$1073741824\r\n", then: strings.Repeat("x", 1<<10)},
		"resp inline":        {then: strings.Repeat("x", 1<<10)},
		"resp arguments":     {first: "*1048576\r\n", then: "$1\r\nx\r\n"},
		"resp unread":        {then: "NEXT hog 100000\r\nNEXTB hog 100000\r\n"},
		"resp names":         {then: "ECHO " + strings.Repeat("x", 30<<10) + "\r\n"},
		"resp arrays":        {then: "*1048576\r\n"},
		"grpc header":        {first: h2 + frame(1, 0, 1, next), then: frame(9, 0, 1, strings.Repeat("x", 1<<10))},
		"grpc message":       {first: h2 + frame(1, 4, 1, next) + frame(0, 0, 1, "\x00\xff\xff\xff\xff"), then: frame(0, 0, 1, strings.Repeat("x", 1<<10))},
		"grpc pings":         {first: h2, then: frame(6, 0, 0, "firnfirn")},
		"grpc settings":      {first: h2, then: frame(4, 0, 0, "")},
		"grpc unread":        {first: h2 + many(250, func(id uint32) string { return frame(1, 4, id, next) + frame(0, 1, id, message) })},
		"grpc long settings": {first: h2, then: frame(4, 0, 0, strings.Repeat("\xbe\xef\x00\x00\x00\x01", 2000))},
		"grpc acks":          {first: h2, then: frame(6, 1, 0, "firnfirn") + frame(4, 1, 0, "")},
		"grpc windows":       {first: h2, then: frame(8, 0, 0, "\x00\x00\x00\x01")},
		"grpc priorities":    {first: h2, then: frame(2, 0, 1, "\x00\x00\x00\x00\x01")},
		"grpc resets":        {first: h2 + many(20_000, func(id uint32) string { return frame(1, 5, id, next) + frame(3, 0, id, "\x00\x00\x00\x08") })},
		// A header of 4,000 bytes for the table, and a byte for each repetition.
		"grpc header table": {first: h2 + frame(1, 5, 1, next+"\x40\x01x\x7f\xa1\x1e"+strings.Repeat("y", 4000)+strings.Repeat("\xbe", 4000))},
		"grpc no header":    {first: h2 + frame(1, 0, 1, next), then: frame(9, 0, 1, "")},
		"grpc open calls":   {first: h2 + many(20_000, func(id uint32) string { return frame(1, 4, id, next) })},
		"grpc unknown":      {first: h2, then: frame(0xbe, 0, 0, strings.Repeat("x", 1000))},
		"grpc empty data":   {first: h2 + frame(1, 4, 1, next), then: frame(0, 0, 1, "")},
		"bytes of no use":   {first: "\x16\x03\x01", then: strings.Repeat("\x00", 1<<10)},
	}
	return all
}

// hogMiB is how much more memory than an idle server one with hogs may take. The
// limit of Go's memory is that of the chart and of the service of systemd.
const (
	hogMiB   = 100
	hogLimit = "200MiB"
)

// worst are those that took most before there were Strangers; make test has them.
var worst = []string{"grpc references", "http same headers", "http tiny headers", "resp bulk unfinished", "sign-in", "sign-in fields", "tls protocols"}

// TestHogs: many clients that send without end or stop within a request, and
// read nothing, cost a server no more memory than its limits allow, and do not
// affect others.
func TestHogs(t *testing.T) {
	t.Setenv("GOMEMLIMIT", hogLimit)
	all := hogs(t)
	var report []string
	for _, what := range slices.Sorted(maps.Keys(all)) {
		row := all[what]
		row.conns, row.args = cmp.Or(row.conns, 64), cmp.Or(row.args, hogNode)
		t.Run(what, func(t *testing.T) {
			if !slices.Contains(worst, what) {
				nettest.Long(t)
			}
			report = append(report, row.run(t, what))
		})
	}
	t.Logf("report: memory that clients which send without end and read nothing cost a server, and the slowest answer to another client: %s", strings.Join(report, ", "))
}

// run returns how much memory a server takes with the hogs.
func (h hog) run(t *testing.T, what string) string {
	const (
		most     = 32 << 20 // bytes that a client sends, where it can
		patience = time.Second
	)
	server := startProcess(t, "127.0.0.1:0", h.args)
	client := &http.Client{Timeout: must.Patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	var slowest time.Duration
	ask := func() {
		begin := time.Now()
		r := must.Get(client.Get(server.url + "/healthz"))(t)
		r.Body.Close()
		if slowest = max(slowest, time.Since(begin)); r.StatusCode != 200 {
			t.Errorf("another client: %s, want 200", r.Status)
		}
	}
	ask()
	idle := memoryOf(t, server.cmd.Process.Pid, "VmRSS")
	slowest = 0
	_, addr, _ := strings.Cut(server.url, "://")
	var hogs sync.WaitGroup
	var sent atomic.Int64
	many := []byte(strings.Repeat(h.then, 1+16<<10/(1+len(h.then))))
	begin := time.Now()
	for range h.conns {
		conn := must.Get(net.Dial("tcp", addr))(t)
		defer conn.Close()
		hogs.Go(func() {
			_ = conn.SetWriteDeadline(begin.Add(patience))
			n, err := io.WriteString(conn, h.first)
			for total := n; ; total += n {
				sent.Add(int64(n))
				if err != nil || h.then == "" || total >= most {
					return
				}
				n, err = conn.Write(many)
			}
		})
	}
	for time.Since(begin) < 3*patience/2 { // the server works on what was sent
		ask()
		time.Sleep(10 * time.Millisecond)
	}
	hogs.Wait()
	ask()
	limit := hogMiB
	if nettest.Raced() {
		limit *= 8
	}
	more := (memoryOf(t, server.cmd.Process.Pid, "VmHWM") - idle) >> 10
	if more > limit {
		t.Errorf("the server took %d MiB more than the %d when idle, want %d at most", more, idle>>10, limit)
	}
	server.stop()
	if strings.Contains(server.log.String(), "panic") {
		t.Errorf("%s", server.log)
	}
	t.Logf("%d connections, %d KiB sent: %d MiB, %v", h.conns, sent.Load()>>10, more, slowest.Round(time.Millisecond))
	return fmt.Sprintf("%s %d MiB %d ms", what, more, slowest.Milliseconds())
}
