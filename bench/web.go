//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// withBare starts this program with the bare handler, and ends it.
func (r *run) withBare(f func(p *process, address string)) {
	address := freeAddress()
	var log bytes.Buffer
	p, err := start(&log, must(os.Executable()), "-bare-http", address)
	failed(err)
	defer p.end()
	failed(answers(address))
	f(p, address)
}

// answers waits until a server that was just started accepts connections.
func answers(address string) error {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn.Close()
		}
		if time.Since(begin) > 10*time.Second {
			return fmt.Errorf("%s does not answer: %w", address, err)
		}
	}
}

// web measures one ID per request over 64 HTTP connections, with tokens, limits
// and metrics, compared with a bare handler of net/http.
func (r *run) web(program string) {
	const name, connections = "http/next", 64
	if !r.wants(name + "/firn:bare") {
		return
	}
	dir, remove := temporary("tokens")
	defer remove()
	tokens := filepath.Join(dir, "tokens.yaml")
	token, err := exec.CommandContext(r.ctx, program, "token", "new", "--name", "bench", "--role", "generate", "--file", tokens).Output()
	failed(err)
	r.withBare(func(bare *process, bareAddress string) {
		r.withFirn(program, func(s *firnServer) {
			servers := []*process{s.process, bare}
			var all [2][]caller
			for i, address := range []string{s.address, bareAddress} {
				made, closeAll, err := callers(connections, func() (caller, error) {
					c, err := httpConn(r.ctx, address, "/v1/sequencers/bench/next", "application/json", 0)
					if err != nil {
						return nil, err
					}
					c.authorize(strings.TrimSpace(string(token)))
					return c, nil
				})
				failed(err)
				defer closeAll()
				all[i] = made
				_, err = drive(made, 100*time.Millisecond)
				failed(err)
			}
			var rates, cpus [2][]float64 // k/s; µs of processor time per request
			for round := range 15 {
				for turn := range 2 {
					i := (round + turn) % 2
					before := servers[i].cpu()
					l, err := drive(all[i], 250*time.Millisecond)
					failed(err)
					rates[i] = append(rates[i], float64(l.calls)/l.took.Seconds()/1e3)
					cpus[i] = append(cpus[i], float64((servers[i].cpu()-before).Microseconds())/float64(max(l.calls, 1)))
				}
			}
			for i, who := range []string{"/firn", "/bare"} {
				r.add(name+who, spreadOf(rates[i]), "k/s", Figure{Note: fmt.Sprintf("%d connections", connections)})
				if onLinux() {
					r.add(name+who+"/cpu", spreadOf(cpus[i]), "us", Figure{Note: "of the server's processor for a request"})
				}
			}
			r.add(name+"/firn:bare", spreadOf(ratios(rates[0], rates[1])), "x", Figure{Note: "with tokens, limits and metrics"})
			if onLinux() {
				r.add(name+"/firn/cpu:bare", spreadOf(ratios(cpus[0], cpus[1])), "x", Figure{})
			}
		}, "--tokens", tokens)
	})
}

// clone measures how long it takes from a clone to the first ID by make run,
// with downloaded modules and an empty build cache.
func (r *run) clone() {
	const name = "clone/first-id"
	if !r.wants(name) {
		return
	}
	dir, remove := temporary("clone")
	defer remove()
	tree, cache := filepath.Join(dir, "firn"), filepath.Join(dir, "cache")
	address := freeAddress()
	begin := time.Now()
	if text, err := exec.CommandContext(r.ctx, "git", "clone", "-q", ".", tree).CombinedOutput(); err != nil {
		failed(fmt.Errorf("git clone: %w: %.300s", err, text))
	}
	cmd := exec.Command("make", "run", "ARGS=--listen "+address)
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "GOCACHE="+cache, "FIRN_STORE=", "FIRN_CONFIG=")
	p, err := startCmd(cmd, io.Discard)
	failed(err)
	defer p.end()
	for {
		answer, err := http.Post("http://"+address+"/v1/sequencers/orders/next", "", nil)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				failed(errors.New("the answer is " + answer.Status))
			}
			break
		}
		select {
		case <-p.ended:
			failed(errors.New("make run ended"))
		case <-time.After(20 * time.Millisecond):
		case <-time.After(time.Until(begin.Add(5 * time.Minute))):
			failed(errors.New("no ID after 5 minutes"))
		case <-r.ctx.Done():
			failed(r.ctx.Err())
		}
	}
	r.add(name, one(time.Since(begin).Seconds()), "s", Figure{Note: "make run, with downloaded modules and an empty build cache"})
}
