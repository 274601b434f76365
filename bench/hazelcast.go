//go:build unix

package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
)

// hazelcastVersion is the measured release of Hazelcast.
const hazelcastVersion = "5.5.0"

//go:embed HazelcastPeer.java
var hazelcastPeer []byte

// A hazelcast is a process of HazelcastPeer.java: a member, or a client of one.
type hazelcast struct {
	*process
	in  io.WriteCloser
	out *bufio.Reader
}

// A taken is the number of IDs that one thread took in some time.
type taken struct {
	ids       int
	wall, cpu time.Duration
}

// startHazelcast starts a process and waits until it is ready.
func startHazelcast(ctx context.Context, command []string, role, port string) (*hazelcast, error) {
	cmd := exec.Command(command[0], append(command[1:len(command):len(command)], role, port)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = writer
	p, err := startCmd(cmd, io.Discard)
	_ = writer.Close()
	if err != nil {
		_ = reader.Close()
		return nil, err
	}
	h := &hazelcast{p, in, bufio.NewReader(reader)}
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	defer stop()
	timer := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	for line := ""; err == nil && line != "ready\n"; {
		line, err = h.out.ReadString('\n')
	}
	if err != nil {
		h.end()
		return nil, fmt.Errorf("the %s of Hazelcast does not start: %w", role, err)
	}
	return h, nil
}

// take makes it take IDs for d.
func (h *hazelcast) take(prefetch int, d time.Duration) (t taken, err error) {
	timer := time.AfterFunc(d+20*time.Second, func() { _ = h.cmd.Process.Kill() })
	defer timer.Stop()
	if _, err = fmt.Fprintf(h.in, "%d %d\n", prefetch, d.Milliseconds()); err != nil {
		return t, err
	}
	line, err := h.out.ReadString('\n')
	if err != nil {
		return t, err
	}
	_, err = fmt.Sscan(line, &t.ids, &t.wall, &t.cpu)
	return t, err
}

// take takes IDs for d, as HazelcastPeer.java does: run takes n of them. Its
// processor time is valid if the caller is locked to its thread.
func take(run func(n int), prefetch int, d time.Duration) (t taken) {
	cpu, begin := threadTime(), time.Now()
	for t.wall < d {
		run(prefetch)
		t.ids += prefetch
		t.wall = time.Since(begin)
	}
	t.cpu = threadTime() - cpu
	return t
}

// hazelcast compares the Go client and the library with Hazelcast: one thread
// each, alternating, each with its own batches of a fixed size.
func (r *run) hazelcast(program string) {
	const client, member = "client/prefetch-%d/firn:hazelcast", "prefetch/firn-%d:hazelcast-member"
	names := map[string][]int{client: {1, 100, 1000}, member: {100, 1000, 10_000}}
	wanted := false
	for name, all := range names {
		for _, count := range all {
			wanted = wanted || r.wants(fmt.Sprintf(name, count))
		}
	}
	if !wanted {
		return
	}
	dir, remove := temporary("hazelcast")
	defer remove()
	command, err := javaPeer(r.ctx, dir, "HazelcastPeer.java", hazelcastPeer, "dependency:copy", "-Dartifact=com.hazelcast:hazelcast:"+hazelcastVersion)
	failed(err)
	_, port, _ := net.SplitHostPort(freeAddress())
	hzMember, err := startHazelcast(r.ctx, command, "member", port)
	failed(err)
	defer hzMember.end()
	hzClient, err := startHazelcast(r.ctx, command, "client", port)
	failed(err)
	defer hzClient.end()
	r.withFirn(program, func(s *firnServer) {
		for _, count := range names[client] {
			name := fmt.Sprintf(client, count)
			if !r.wants(name) {
				continue
			}
			run, end := clientOf(r.ctx, s.url, count)
			r.beside(name, count, hzClient, run, 150*time.Millisecond, func(t taken) time.Duration { return t.wall })
			end()
		}
	})
	runtime.LockOSThread() // not above, where a wait would switch threads twice
	defer runtime.UnlockOSThread()
	for _, count := range names[member] {
		name := fmt.Sprintf(member, count)
		if !r.wants(name) {
			continue
		}
		run := firnValid("firn", count, 10*time.Minute).run // Hazelcast's default
		r.beside(name, count, hzMember, run, 40*time.Millisecond, func(t taken) time.Duration { return t.cpu })
	}
}

// clientOf returns a client's Next with batches of a fixed size.
func clientOf(ctx context.Context, url string, count int) (run func(n int), end func()) {
	c := must(client.New(client.Config{Servers: []string{url}, Prefetch: &firn.PrefetchOptions{Count: count, MaxCount: count}}))
	q := c.Sequencer("bench")
	return func(n int) {
		var x firn.ID
		for range n {
			id, err := q.Next(ctx)
			failed(err)
			x ^= id
		}
		sink.Store(uint64(x))
	}, func() { _ = c.Close(ctx) }
}

// beside adds how many times more IDs Firn makes than Hazelcast in the same
// time, in pairs of slices. The first second of each is not used, because the
// JVM compiles, and the client begins to use RESP.
func (r *run) beside(name string, count int, h *hazelcast, run func(n int), slice time.Duration, by func(taken) time.Duration) {
	_, err := h.take(count, time.Second)
	take(run, count, time.Second)
	var ours, theirs []float64
	for range 15 {
		var a, b taken
		if err == nil {
			b, err = h.take(count, slice)
		}
		a = take(run, count, slice)
		if err == nil && (by(a) <= 0 || by(b) <= 0) {
			err = errors.New("this system does not report the processor time of a thread")
		}
		if err != nil {
			r.skip(name, err.Error())
			return
		}
		ours = append(ours, float64(a.ids)/by(a).Seconds())
		theirs = append(theirs, float64(b.ids)/by(b).Seconds())
	}
	f := spreadOf(theirs)
	note := fmt.Sprintf("IDs in the same time, one thread; Hazelcast %s: %s ns an ID", hazelcastVersion, number(1e9/f.median))
	if strings.HasPrefix(name, "client/") {
		note = fmt.Sprintf("round trips in the same time, one thread; Hazelcast %s: %s k/s", hazelcastVersion, number(f.median/float64(count)/1e3))
	}
	r.add(name, spreadOf(ratios(ours, theirs)), "x", Figure{Note: note})
}
