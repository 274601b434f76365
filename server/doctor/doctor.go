// Package doctor looks for what would keep a server from handing out IDs, or
// make their times wrong: the clock, the store, the system's limits, addresses,
// certificates, and the other servers of the store. It changes nothing.
//
// It is for the command firn doctor, and for programs that embed a server. What
// a running server knows of itself is in its metrics.
package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/members"
)

// A Level says what a Finding asks for.
type Level string

// The levels.
const (
	OK      Level = "ok"      // as it should be
	Unknown Level = "unknown" // could not be found out here
	Fix     Level = "fix"     // something needs fixing
)

// A Finding is the result of one check.
type Finding struct {
	Check string `json:"check"` // clock, store, members, file system, limits, address, TLS
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"` // what to do, where Level is Fix
}

// Config says what to look at. Fields that are zero leave their checks out.
type Config struct {
	// Store is open, or nil with StoreError and StoreHint: why not, and what to
	// do.
	Store      grant.Store
	StoreError error
	StoreHint  string

	// Missing: Directory has no store yet, and the server makes it when it starts.
	Missing bool

	// Warnings are what the store warned of when it was opened.
	Warnings []string

	// Directory is that of the store, if it is one.
	Directory string

	// Version is that of this program.
	Version string

	// Listen are the addresses of the server: HOST:PORT, or unix:PATH.
	Listen []string

	// Connections is how many the server takes at an address.
	Connections uint64

	// Certificates are files in PEM.
	Certificates []string

	// Now is the clock; nil means the system's.
	Now func() time.Time
}

// Run makes all checks.
func Run(ctx context.Context, c Config) []Finding {
	if c.Now == nil {
		c.Now = time.Now
	}
	r := &report{c: c}
	begin := time.Now()
	r.synchronized()
	r.store(ctx)
	r.directory()
	r.limits()
	for _, address := range c.Listen {
		r.address(ctx, address)
	}
	for _, file := range c.Certificates {
		r.certificate(file)
	}
	r.stepped(begin)
	return r.found
}

// A report is what was found so far.
type report struct {
	c     Config
	found []Finding
}

func (r *report) add(check string, level Level, fix, format string, args ...any) {
	r.found = append(r.found, Finding{check, level, fmt.Sprintf(format, args...), fix})
}

const ntpHint = "let chrony, ntpd or systemd-timesyncd set the clock, and check that they reach their servers"

// synchronized asks the system whether its clock follows others.
func (r *report) synchronized() {
	synced, bound, err := clockState()
	switch {
	case err != nil:
		r.add("clock", Unknown, "", "this system does not tell whether its clock is synchronized: %v", err)
	case !synced:
		r.add("clock", Fix, ntpHint, "the clock is not synchronized")
	default:
		r.add("clock", OK, "", "the clock is synchronized, to within %v", bound)
	}
}

// mostStep is by how much a synchronized clock may differ from a counter after
// seconds.
const mostStep = 100 * time.Millisecond

// stepped compares the clock with the counter that nobody sets, over the time
// of the other checks.
func (r *report) stepped(begin time.Time) {
	end := time.Now()
	step := end.Round(0).Sub(begin.Round(0)) - end.Sub(begin)
	if step.Abs() > mostStep {
		r.add("clock", Fix, "set the clock slowly (slew); IDs stay unique over steps, and callers may wait",
			"the clock was set by %v while this command ran", step.Round(time.Millisecond))
	}
}

// How many requests are timed, the latency from which the store is slow, and
// the clock differences that are an error: members refuse node IDs from ten
// seconds on.
const (
	requests   = 9
	slowStore  = 250 * time.Millisecond
	mostOffset = time.Second
)

// store looks at the store, its clock, and what other servers wrote into it.
func (r *report) store(ctx context.Context) {
	switch {
	case r.c.Missing:
		r.add("store", OK, "", "%s has no store yet: the server makes it when it starts", r.c.Directory)
		return
	case r.c.Store == nil && r.c.StoreError == nil:
		return
	case r.c.StoreError != nil:
		r.add("store", Fix, r.c.StoreHint, "%v", r.c.StoreError)
		return
	}
	var took []time.Duration
	for range requests {
		begin := time.Now()
		if _, err := r.c.Store.Get(ctx, "doctor/latency"); err != nil {
			r.add("store", Fix, "look at the store's own log, and at the network", "the store does not answer: %v", err)
			return
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	median, worst := took[requests/2], took[requests-1]
	text := fmt.Sprintf("the store answers in %v, at worst of %d in %v", median.Round(time.Microsecond), requests, worst.Round(time.Microsecond))
	if median > slowStore {
		r.add("store", Fix, "put it nearer, or give it a faster disk; longer windows need it less often (docs/operations.md)", "%s: slow", text)
	} else {
		r.add("store", OK, "", "%s", text)
	}
	for _, w := range r.c.Warnings {
		r.add("store", Fix, "docs/operations.md has what each store needs", "%s", w)
	}
	r.storeClock(ctx)
	r.members(ctx)
}

// storeClock compares the clocks of this machine and of the store.
func (r *report) storeClock(ctx context.Context) {
	c, ok := grant.As[grant.Clock](r.c.Store)
	if !ok {
		return
	}
	before := r.c.Now()
	told, resolution, err := c.Time(ctx)
	after := r.c.Now()
	if err != nil {
		r.add("clock", Unknown, "", "the store does not tell its time: %v", err)
		return
	}
	ahead, behind := before.Sub(told.Add(resolution)), told.Sub(after)
	switch {
	case ahead > mostOffset:
		r.add("clock", Fix, ntpHint+", here and on the store's machine", "this clock is at least %v ahead of the store's", ahead.Round(time.Millisecond))
	case behind > mostOffset:
		r.add("clock", Fix, ntpHint+", here and on the store's machine", "this clock is at least %v behind the store's", behind.Round(time.Millisecond))
	default:
		r.add("clock", OK, "", "this clock and the store's agree")
	}
}

// members compares this program with the servers of the store.
func (r *report) members(ctx context.Context) {
	now := r.c.Now()
	all, err := members.NewLister(r.c.Store).List(ctx, now)
	if err != nil {
		r.add("members", Unknown, "", "the servers of the store are not known: %v", err)
		return
	}
	versions := make(map[string][]string)
	for _, m := range all {
		name := m.Host
		if m.Address != "" {
			name = m.Address
		}
		versions[m.Version] = append(versions[m.Version], name)
		// It wrote this before now, by its own clock.
		if lead := m.Seen.Sub(now); lead > mostOffset {
			r.add("clock", Fix, ntpHint+", here and there", "the clock of server %s is at least %v ahead of this one", name, lead.Round(time.Millisecond))
		}
	}
	if len(all) == 0 {
		r.add("members", OK, "", "no server uses the store now")
		return
	}
	var texts []string
	for v, names := range versions {
		slices.Sort(names)
		if v == "" {
			v = "unknown version"
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", v, strings.Join(names, ", ")))
	}
	slices.Sort(texts)
	text := "servers of the store: " + strings.Join(texts, "; ")
	for v := range versions {
		for w := range versions {
			if apart(v, w) {
				r.add("members", Fix, "versions may be one minor version apart while a store is in use: upgrade the older ones (docs/upgrades.md)", "%s", text)
				return
			}
		}
		if apart(v, r.c.Version) {
			r.add("members", Fix, "versions may be one minor version apart: use a firn nearer to the servers' (docs/upgrades.md)", "%s; this firn is %s", text, r.c.Version)
			return
		}
	}
	r.add("members", OK, "", "%s", text)
}

// apart reports whether two versions are known not to go together on one store.
func apart(v, w string) bool {
	var a, b struct{ major, minor int }
	if n, _ := fmt.Sscanf(v, "v%d.%d.", &a.major, &a.minor); n != 2 {
		return false
	}
	if n, _ := fmt.Sscanf(w, "v%d.%d.", &b.major, &b.minor); n != 2 {
		return false
	}
	return a.major != b.major || a.minor-b.minor > 1 || b.minor-a.minor > 1
}

// A store of a directory needs little room, but without any it cannot renew
// windows.
const leastFree = 64 << 20

// directory looks at the file system of a store that is a directory. Which ones
// cannot hold a store is refused when it is opened.
func (r *report) directory() {
	if r.c.Directory == "" {
		return
	}
	free, err := freeBytes(existing(r.c.Directory))
	switch {
	case err != nil:
		r.add("file system", Unknown, "", "the free space of %s is not known: %v", r.c.Directory, err)
	case free < leastFree:
		r.add("file system", Fix, "make room: without any, windows are not renewed, and IDs end", "%s has %d MiB free", r.c.Directory, free>>20)
	default:
		r.add("file system", OK, "", "%s has %d MiB free", r.c.Directory, free>>20)
	}
}

// existing is the nearest directory above that exists.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// spare is how many files a server opens besides connections.
const spare = 64

// limits compares how many files a process may open with the connections that
// the server takes.
func (r *report) limits() {
	if r.c.Connections == 0 {
		return
	}
	most, err := openFiles()
	need := r.c.Connections*uint64(max(1, len(r.c.Listen))) + spare
	switch {
	case err != nil:
		r.add("limits", Unknown, "", "how many files a process may open is not known: %v", err)
	case most < need:
		r.add("limits", Fix, fmt.Sprintf("raise it to %d (LimitNOFILE= in systemd, ulimit -n in a shell), or lower limits.connections", need),
			"a process here may open %d files, and the server takes up to %d connections", most, need-spare)
	default:
		r.add("limits", OK, "", "a process here may open %d files", most)
	}
}

// address looks whether the server can listen, or does.
func (r *report) address(ctx context.Context, address string) {
	network, at := "tcp", address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, at = "unix", path
	}
	if network == "unix" {
		if _, err := os.Lstat(at); errors.Is(err, os.ErrNotExist) {
			r.add("address", OK, "", "%s is free", address)
			return
		}
	} else {
		var l net.ListenConfig
		listener, err := l.Listen(ctx, network, at)
		if err == nil {
			_ = listener.Close()
			r.add("address", OK, "", "%s is free", address)
			return
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			r.add("address", Fix, "choose another address, or run the server as a user who may listen there", "the server cannot listen on %s: %v", address, err)
			return
		}
	}
	if what := whoAnswers(ctx, network, at); what != "" {
		r.add("address", OK, "", "%s listens on %s", what, address)
		return
	}
	r.add("address", Fix, "stop that program, or choose another address", "another program listens on %s", address)
}

// whoAnswers is what a server says it is, or "" if it is not a Firn.
func whoAnswers(ctx context.Context, network, at string) string {
	if host, port, err := net.SplitHostPort(at); network == "tcp" && err == nil {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			at = net.JoinHostPort("127.0.0.1", port)
		}
	}
	for _, scheme := range []string{"http", "https"} {
		client := http.Client{Transport: transport(network, at), Timeout: 2 * time.Second}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://localhost/readyz", nil)
		if err != nil {
			return ""
		}
		answer, err := client.Do(request)
		if err != nil {
			continue
		}
		_ = answer.Body.Close()
		switch {
		case answer.Header.Get("X-Request-Id") == "": // which every Firn answers with
		case answer.StatusCode == http.StatusOK:
			return "a ready server"
		case answer.StatusCode == http.StatusServiceUnavailable:
			return "a server that is not ready"
		}
	}
	return ""
}

// soon is how long before its end a certificate should have been replaced.
const soon = 14 * 24 * time.Hour

// certificate looks at the time that is left to the certificates of a file.
func (r *report) certificate(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		r.add("TLS", Fix, "check the path, and that the server's user may read it", "%v", err)
		return
	}
	const hint = "replace it: the server takes the new file by itself"
	found := false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			r.add("TLS", Fix, hint, "%s: %v", file, err)
			return
		}
		found = true
		until := c.NotAfter.UTC().Format(time.RFC3339)
		switch left := c.NotAfter.Sub(r.c.Now()); {
		case left <= 0:
			r.add("TLS", Fix, hint, "%s: the certificate of %q expired at %s", file, c.Subject, until)
		case r.c.Now().Before(c.NotBefore):
			r.add("TLS", Fix, "check the clock, or replace the certificate", "%s: the certificate of %q is valid from %s on", file, c.Subject, c.NotBefore.UTC().Format(time.RFC3339))
		case left < soon:
			r.add("TLS", Fix, hint, "%s: the certificate of %q expires at %s", file, c.Subject, until)
		default:
			r.add("TLS", OK, "", "%s: the certificate of %q is valid until %s", file, c.Subject, until)
		}
	}
	if !found {
		r.add("TLS", Fix, "it begins with -----BEGIN CERTIFICATE-----", "%s has no certificate", file)
	}
}
