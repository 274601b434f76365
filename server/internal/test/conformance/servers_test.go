//go:build unix

package conformance

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/test/distinct"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// buildFirn builds the command once.
var buildFirn = sync.OnceValues(func() (string, error) {
	file := filepath.Join(temporary, "firn")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", file, "./cmd/firn")
	cmd.Dir = filepath.Join(root, "server")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return file, nil
})

// A server is a process of firn serve, perhaps one after another at the same
// address.
type server struct {
	t    *testing.T
	url  string
	args []string
	*proc.Process
}

// startServers starts servers on one store in a directory.
func startServers(t *testing.T, n int, scheme string, args ...string) []*server {
	t.Helper()
	store := "dir:" + filepath.Join(t.TempDir(), "store") + "?create=true&volatile=true"
	var all []*server
	for range n {
		address := nettest.FreeAddress(t)
		if scheme == "https" { // certificates name 127.0.0.1
			l := nettest.Listen(t)
			address = l.Addr().String()
			l.Close()
		}
		s := &server{t: t, url: scheme + "://" + address, args: append([]string{"serve", "--store", store, "--listen", address}, args...)}
		s.start()
		t.Cleanup(func() {
			s.Kill()
			if t.Failed() {
				t.Logf("%s logged:\n%s", s.url, s.Log())
			}
		})
		all = append(all, s)
	}
	return all
}

func urls(all []*server) (list []string) {
	for _, s := range all {
		list = append(list, s.url)
	}
	return list
}

// start starts the server and waits until it is ready.
func (s *server) start() {
	s.t.Helper()
	firn := must.Get(buildFirn())(s.t)
	s.Process = proc.Start(s.t, firn, s.args...)
	if !s.AwaitAnswer(s.url+"/readyz", true) {
		s.t.Fatalf("%s is not ready: %s", s.url, s.Log())
	}
}

// drain ends the server as its operator does.
func (s *server) drain() {
	s.t.Helper()
	if err := s.Stop(syscall.SIGTERM); err != nil {
		s.t.Errorf("%s after SIGTERM: %v\n%s", s.url, err, s.Log())
	}
}

// inOrder: the IDs of each server increase. IDs of two servers in one tick are
// in no order.
func inOrder[I any](t *testing.T, decompose func(I) (firn.Parts, error), compare func(I, I) int, ids []I) {
	t.Helper()
	last := make(map[uint64]I)
	for _, id := range ids {
		p, err := decompose(id)
		if err != nil || compare(id, last[p.Node]) <= 0 {
			t.Errorf("%v after %v of the same server: %v", id, last[p.Node], err)
		}
		last[p.Node] = id
	}
}

// A client gives IDs without an error while one of its servers works: servers
// are killed, stopped, drained and replaced one after the other. It continues
// after a fork. No ID comes twice.
func TestServersThatFail(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		n := 5_000
		if os.Getenv("FIRN_ALL") != "" {
			n = 100_000
		}
		l.command(t) // skips before servers are started
		servers := startServers(t, 3, "http")
		d := l.start(t, urls(servers))
		all := d.ids("next", 1000)
		inOrder(t, firn.Default().Decompose, cmp.Compare, all)
		batch := d.ids("take", 100)
		if !slices.IsSorted(batch) {
			t.Errorf("take gave %v, which are not in order", batch)
		}
		all = append(all, batch...)
		all = append(all, d.during(n, servers[0].Kill)...)
		servers[0].start()
		all = append(all, d.during(n, func() { servers[1].Signal(syscall.SIGSTOP) })...)
		all = append(all, d.during(n, func() {
			servers[1].Signal(syscall.SIGCONT)
			for _, s := range servers { // a rolling restart
				s.drain()
				s.start()
			}
		})...)
		file := filepath.Join(t.TempDir(), "forked")
		switch answer := d.ask("fork %d %s", n, file); answer {
		case "ok":
			ids, err := readIDs(file)
			if err != nil || len(ids) < 2*n {
				t.Errorf("fork: %d IDs, want %d or more: %v", len(ids), 2*n, err)
			}
			all = append(all, ids...)
		case "skip":
		default:
			t.Errorf("fork: %s", answer)
		}
		for _, s := range servers {
			s.Kill()
		}
		if answer := d.ask("take 1"); !strings.HasPrefix(answer, "error ") || !strings.Contains(answer, strings.TrimPrefix(servers[0].url, "http://")) {
			t.Errorf("without a server: %s, want an error that names them", answer)
		}
		servers[2].start()
		all = append(all, d.ids("take", 3)...)
		d.ok("stats")
		d.ok("close")
		wantDistinct(t, all)
	})
}

// Clients hand out IDs of 128 bits, also while a server fails.
func TestWideIDs(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		l.command(t)
		servers := startServers(t, 2, "http", "--layout", "uuidv7")
		d := l.start(t, urls(servers), "--wide")
		file := filepath.Join(t.TempDir(), "ids")
		var all []firn.ID128
		for _, command := range []string{"next 1000", "take 100"} {
			var ids []firn.ID128
			for text := range strings.FieldsSeq(d.ok("%s", command)) {
				id, err := firn.ParseID128(text)
				if err != nil || id.String() != text {
					t.Fatalf("%s gave %s, want UUIDs: %v", command, text, err)
				}
				ids = append(ids, id)
			}
			inOrder(t, firn.MustParseLayout("uuidv7").Decompose128, firn.ID128.Compare, ids)
			all = append(all, ids...)
		}
		servers[0].Kill()
		d.ok("burst 5000 4 %s", file)
		data := must.Get(os.ReadFile(file))(t)
		for id := range slices.Chunk(data, 16) {
			all = append(all, firn.ID128(id))
		}
		if len(all) != 1000+100+4*5000 {
			t.Errorf("%d IDs, want %d", len(all), 1000+100+4*5000)
		}
		new(distinct.IDs[firn.ID128]).Add(t, "a server", all...)
		if i := slices.IndexFunc(all, func(id firn.ID128) bool { return id[6]>>4 != 7 }); i >= 0 {
			t.Fatalf("the ID %v is not of version 7", all[i])
		}
		d.ok("close")
	})
}

// A client of a server with a small limit of IDs per request asks for fewer at
// a time: a batch comes in parts, and fetches grow no further.
func TestSmallLimit(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		l.command(t)
		for _, s := range startServers(t, 1, "http", "--max-ids-per-call", "300") {
			addresses := []string{s.url}
			if l.name == "go" {
				addresses = append(addresses, "firn"+strings.TrimPrefix(s.url, "http"))
			}
			for _, address := range addresses {
				d := l.start(t, []string{address})
				all := d.during(5000, func() {})
				wantDistinct(t, append(all, d.ids("take", 1000)...))
				d.ok("close")
			}
		}
	})
}

// All clients draw from one sequencer at once, and no ID comes twice. With
// FIRN_ALL=1, these are 10 million.
func TestAllTogether(t *testing.T) {
	var usable []language
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			l.command(t) // says what is missing
			usable = append(usable, l)
		})
	}
	if len(usable) == 0 {
		t.Skip("skipped: no client of another language can run here")
	}
	servers := startServers(t, 3, "http")
	var drivers []*driver
	for _, l := range usable {
		drivers = append(drivers, l.start(t, urls(servers), "--patient"))
	}
	total := 200_000
	if os.Getenv("FIRN_ALL") != "" {
		total = 10_000_000
	}
	n := total / len(drivers) / 4
	answers := make([]string, len(drivers))
	files := make([]string, len(drivers))
	var wait sync.WaitGroup
	for i, d := range drivers {
		files[i] = filepath.Join(t.TempDir(), d.name)
		wait.Go(func() { answers[i] = d.ask("burst %d 4 %s", n, files[i]) })
	}
	wait.Wait()
	var all []firn.ID
	for i, d := range drivers {
		if !strings.HasPrefix(answers[i], "ok ") {
			t.Fatalf("%s: %s, want ok", d.name, answers[i])
		}
		ids, err := readIDs(files[i])
		if err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		all = append(all, ids...)
	}
	t.Logf("%d IDs of %d clients", len(all), len(drivers))
	if len(all) != 4*n*len(drivers) {
		t.Errorf("%d IDs, want %d", len(all), 4*n*len(drivers))
	}
	wantDistinct(t, all)
}

// A client uses a new token and a new certificate while it runs.
func TestRotation(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		l.command(t)
		dir := t.TempDir()
		file := func(name string) string { return filepath.Join(dir, name) }
		write := func(name string, text []byte) {
			t.Helper()
			// As an operator should: no reader sees a part.
			must.Do(t, os.WriteFile(file(name+".new"), text, 0o600))
			must.Do(t, os.Rename(file(name+".new"), file(name)))
		}
		const first, second, wrong = "firn_first", "firn_second", "firn_wrong"
		tokens := func(valid ...string) {
			t.Helper()
			var hashes []string
			for _, token := range valid {
				hashes = append(hashes, auth.Hash(token))
			}
			write("tokens.yaml", []byte("tokens: [{name: app, role: generate, sha256: ["+strings.Join(hashes, ", ")+"]}]\n"))
		}
		certificate := func(a *nettest.Authority, serial int64) {
			t.Helper()
			cert, key := nettest.PEM(t, a.Issue(t, "server", serial, time.Hour))
			write("server.pem", append(cert, key...))
		}
		old, fresh := nettest.NewAuthority(t), nettest.NewAuthority(t)
		tokens(first)
		certificate(old, 2)
		write("ca.pem", old.PEM(t))
		write("token", []byte(first+"\n"))
		servers := startServers(t, 2, "https", "--tls-cert", file("server.pem"), "--tls-key", file("server.pem"), "--tokens", file("tokens.yaml"))
		d := l.start(t, urls(servers), "--token-file", file("token"), "--ca", file("ca.pem"))
		all := d.ids("take", 10)

		reload := func(what string, done func(s *server) bool) {
			t.Helper()
			for _, s := range servers {
				s.Signal(syscall.SIGHUP)
				must.Await(t, func() bool { return done(s) }, "%s %s", s.url, what)
			}
		}
		accepts := func(token string, status int) func(s *server) bool {
			return func(s *server) bool {
				req := must.Get(http.NewRequest(http.MethodPost, s.url+"/v1/sequencers/orders/next", nil))(t)
				req.Header.Set("Authorization", "Bearer "+token)
				c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
				resp, err := c.Do(req)
				if err != nil {
					return false
				}
				resp.Body.Close()
				return resp.StatusCode == status
			}
		}
		tokens(first, second)
		reload("accepts the new token", accepts(second, http.StatusOK))
		all = append(all, d.ids("take", 10)...)
		write("token", []byte(second+"\n"))
		all = append(all, d.ids("take", 10)...)
		tokens(second)
		reload("refuses the old token", accepts(first, http.StatusUnauthorized))
		all = append(all, d.ids("take", 10)...)
		write("token", []byte(wrong+"\n"))
		if answer := d.ask("take 1"); !strings.HasPrefix(answer, "error ") || !strings.Contains(answer, "401") || strings.Contains(answer, wrong) {
			t.Errorf("with a wrong token: %s, want an error with 401, and not the token", answer)
		}
		write("token", []byte(second+"\n"))
		all = append(all, d.ids("take", 10)...)

		// The new certificate is of another authority, so only a new connection
		// with the new file accepts it.
		write("ca.pem", append(old.PEM(t), fresh.PEM(t)...))
		certificate(fresh, 3)
		reload("has the new certificate", func(s *server) bool { return s.issuer(fresh) })
		all = append(all, d.ids("take", 10)...)
		for _, s := range servers {
			s.Kill() // ends all connections
			s.start()
			all = append(all, d.ids("take", 10)...)
		}
		write("ca.pem", old.PEM(t))
		other := l.start(t, urls(servers), "--token-file", file("token"), "--ca", file("ca.pem"))
		if answer := other.ask("take 1"); !strings.HasPrefix(answer, "error ") {
			t.Errorf("with another authority: %s, want an error", answer)
		}
		d.ok("close")
		wantDistinct(t, all)
	})
}

// issuer reports whether the server's certificate is of an authority.
func (s *server) issuer(a *nettest.Authority) bool {
	u := must.Get(url.Parse(s.url))(s.t)
	conn, err := tls.Dial("tcp", u.Host, &tls.Config{RootCAs: a.Pool()})
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
