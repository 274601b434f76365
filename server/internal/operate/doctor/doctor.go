// Package doctor looks for problems that would keep a server from handing out
// IDs, or make their times wrong: the clock, the store, the system's limits,
// addresses, certificates, and the other servers of the store. It changes
// nothing.
//
// It is used by the command firn doctor. Problems of a running server are
// visible in its metrics.
package doctor

import (
	"cmp"
	"context"
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
	"github.com/firnid/firn/server/internal/access/tlsconf"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/config"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service/forwarding"
)

// A Level is the severity of a Finding.
type Level string

// The levels.
const (
	OK      Level = "ok"      // no problem
	Unknown Level = "unknown" // could not be determined
	Fix     Level = "fix"     // needs fixing
)

// A Finding is the result of one check.
type Finding struct {
	Check string `json:"check"` // config, clock, store, other store, records, members, forward, file system, limits, address, TLS
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"` // what to do if Level is Fix
}

// Config says what to check. The checks of zero fields are skipped.
type Config struct {
	// Store is an open store; nil with StoreError and StoreHint means that it
	// could not be opened.
	Store      grant.Store
	StoreError error
	StoreHint  string

	// Other is an open store whose IDs meet those of Store in one database. It is
	// nil if no other store was given, or with OtherError and OtherHint if it could
	// not be opened.
	Other      grant.Store
	OtherError error
	OtherHint  string

	// Missing means that Directory has no store yet; the server creates it when it
	// starts.
	Missing bool

	// Directory is the directory of the store, if it is one.
	Directory string

	// IssueLog is the path of the issue log, if it is a file.
	IssueLog string

	// Version is the version of this program.
	Version string

	// Listen lists the server's addresses: HOST:PORT, or unix:PATH.
	Listen []string

	// Connections is how many connections the server accepts per address.
	Connections int

	// TLS has the server's certificates, as it would load them; nil means none.
	TLS *tlsconf.Loader

	// Forward is how the server asks others for IDs.
	Forward forwarding.Config

	// Now is the clock; nil means the system's.
	Now func() time.Time
}

// Run runs all checks.
func Run(ctx context.Context, c Config) []Finding {
	if c.Now == nil {
		c.Now = time.Now
	}
	r := &report{config: c}
	r.synchronized()
	r.store(ctx)
	r.ranges(ctx)
	r.forwards(ctx)
	if c.Directory != "" {
		r.space(c.Directory, "windows cannot be renewed and no more IDs are made")
	}
	if c.IssueLog != "" {
		r.space(filepath.Dir(c.IssueLog), "lines of the issue log are lost")
	}
	r.limits()
	for _, address := range c.Listen {
		r.address(ctx, address)
	}
	r.certificates()
	return r.found
}

// ranges compares the node IDs of sequencers that two stores have, and whether
// one has given node IDs to the other too early.
func (r *report) ranges(ctx context.Context) {
	const check = "other store"
	if r.config.OtherError != nil {
		r.add(check, Fix, cmp.Or(r.config.OtherHint, "check the URL and the network"), "%v", r.config.OtherError)
	}
	if r.config.Store == nil || r.config.Other == nil {
		return
	}
	here, all := make(map[string]grant.Info), 0
	var pairs [][2]grant.Info // that use different node IDs
	err := grant.Sequencers(ctx, r.config.Store, func(name string, i grant.Info, err error) bool {
		if err == nil && i.MovedTo == "" {
			here[name] = i
		}
		return true
	})
	if err == nil {
		err = grant.Sequencers(ctx, r.config.Other, func(name string, there grant.Info, err error) bool {
			i, both := here[name]
			if err != nil || !both || there.MovedTo != "" {
				return true
			}
			all++
			a, b := i.Config.Nodes, there.Config.Nodes
			apart := a != nil && b != nil && (a.Hi < b.Lo || b.Hi < a.Lo)
			if apart || i.State >= grant.Detached || there.State >= grant.Detached { // which uses none
				pairs = append(pairs, [2]grant.Info{i, there})
			} else {
				r.add(check, Fix,
					fmt.Sprintf("give the two stores ranges that do not overlap: firn sequencer nodes %s LO..HI, for each --store", name),
					"%s may use the node IDs %v in this store, and %v in the other: their IDs can be equal", name, a, b)
			}
			if !i.Config.Layout.SameIDs(there.Config.Layout) {
				r.add(check, Fix,
					"IDs of two layouts can be equal whatever their node IDs are: use one layout, or separate columns",
					"%s has layout %s in this store, and %s in the other", name, i.Config.Layout, there.Config.Layout)
			}
			return true
		})
	}
	for _, pair := range pairs {
		if err == nil {
			err = errors.Join(r.handedOver(ctx, check, r.config.Store, pair[0], pair[1], "this"),
				r.handedOver(ctx, check, r.config.Other, pair[1], pair[0], "the other"))
		}
	}
	switch {
	case err != nil:
		r.add(check, Unknown, "", "the sequencers of both stores cannot be compared: %v", err)
	case !slices.ContainsFunc(r.found, func(f Finding) bool { return f.Check == check }):
		r.add(check, OK, "", "%d sequencers are in both stores, and no node ID is in both", all)
	}
}

// handedOver checks that all clocks, or the floor elsewhere, have passed what was
// granted in a store of the node IDs that another store has now.
func (r *report) handedOver(ctx context.Context, check string, s grant.Store, i, elsewhere grant.Info, which string) error {
	if elsewhere.State >= grant.Detached {
		return nil
	}
	given := elsewhere.Config.Nodes
	i.Floor = time.Time{} // records reports it
	at, err := grant.HandOver(ctx, s, i, func(node uint64) bool { return given == nil || given.Lo <= node && node <= given.Hi })
	if err == nil && at.After(r.config.Now()) && at.After(elsewhere.Floor) {
		r.add(check, Fix,
			fmt.Sprintf("if they changed stores since, detach %s in the store that has them now until then, and look for IDs that exist twice", i.Name),
			"node IDs %v of %s may have been used in %s store up to %s, and are those of another", given, i.Name, which, textfmt.Stamp(at))
	}
	return err
}

// A report collects the findings.
type report struct {
	config Config
	found  []Finding
}

// add adds a finding. Errors in it lose the names of packages.
func (r *report) add(check string, level Level, fix, format string, args ...any) {
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			args[i] = textfmt.Message(err)
		}
	}
	r.found = append(r.found, Finding{check, level, fmt.Sprintf(format, args...), fix})
}

const ntpHint = "let chrony, ntpd or systemd-timesyncd set the clock, and check that they reach their servers"

// synchronized asks the system whether its clock is synchronized.
func (r *report) synchronized() {
	synced, bound, err := clockState()
	switch {
	case err != nil:
		r.add("clock", Unknown, "", "cannot determine whether the clock is synchronized: %v", err)
	case !synced:
		r.add("clock", Fix, ntpHint, "the clock is not synchronized")
	default:
		r.add("clock", OK, "", "the clock is synchronized, to within %v", bound)
	}
}

// The number of timed requests, the latency of a slow store, and the clock
// difference that is an error: from ten seconds on, members refuse node IDs.
const (
	timedReads = 9
	slowStore  = 250 * time.Millisecond
	maxOffset  = time.Second
)

// unusedKey is a key that no store has.
const unusedKey = "doctor/latency"

// store checks the store, its clock, and the records of other servers in it.
func (r *report) store(ctx context.Context) {
	switch {
	case r.config.Missing:
		r.add("store", OK, "", "%s has no store yet: the server creates it when it starts", r.config.Directory)
		return
	case r.config.Store == nil && r.config.StoreError == nil:
		return
	case r.config.StoreError != nil:
		r.add("store", Fix, r.config.StoreHint, "%v", r.config.StoreError)
		return
	}
	var took []time.Duration
	var err error
	for err == nil && len(took) < timedReads {
		begin := time.Now()
		_, err = r.config.Store.Get(ctx, unusedKey)
		took = append(took, time.Since(begin))
	}
	if err == nil {
		// Nothing is written, but a store that takes no writes refuses it.
		_, err = r.config.Store.CAS(ctx, unusedKey, []byte("never"), []byte("written"))
	}
	if err != nil {
		r.add("store", Fix, "check the store's own log and permissions, and the network",
			"cannot use the store: %v", err)
		return
	}
	slices.Sort(took)
	if median := took[timedReads/2].Round(time.Microsecond); median > slowStore {
		r.add("store", Fix,
			"move it closer, or give it a faster disk; with longer windows it is needed less often (docs/operations.md)",
			"the store answers in %v: slow", median)
	} else {
		r.add("store", OK, "", "the store answers in %v", median)
	}
	if c, ok := grant.As[grant.Checker](r.config.Store); ok {
		dangers, err := c.Check(ctx)
		if err != nil {
			r.add("store", Unknown, "", "cannot check the store: %v", err)
		}
		for _, d := range dangers {
			r.add("store", Fix, "see docs/stores.md for what each store needs", "%s", d)
		}
	}
	r.storeClock(ctx)
	r.records(ctx)
	r.members(ctx)
}

// records reads all records of sequencers.
func (r *report) records(ctx context.Context) {
	const damaged = "do not delete it: its IDs would be handed out again; see \"Damaged and newer records\" in docs/runbooks.md"
	fine := 0
	found := func(what string, err error) {
		hint := damaged
		if errors.Is(err, grant.ErrNewerVersion) {
			hint = "use a newer firn"
		}
		r.add("records", Fix, hint, "%s: %v", what, err)
	}
	var names []string
	err := grant.Sequencers(ctx, r.config.Store, func(name string, i grant.Info, err error) bool {
		if err != nil {
			found("sequencer "+name+" cannot be used", err)
			return true
		}
		fine++
		names = append(names, name)
		r.state(name, i)
		if at := i.Floor.Add(-i.Config.MaxAhead); i.State == grant.Attached && at.After(r.config.Now()) {
			r.add("records", Fix, "wait: members begin by themselves",
				"sequencer %s makes no IDs before %s, in %v: it was fenced, or created to begin then",
				name, at.UTC().Format(time.RFC3339), at.Sub(r.config.Now()).Round(time.Second))
		}
		return true
	})
	for _, name := range names {
		if err == nil {
			err = grant.Nodes(ctx, r.config.Store, name, func(n grant.NodeInfo, err error) bool {
				if err != nil {
					found(fmt.Sprintf("node ID %d of sequencer %s cannot be used", n.Node, name), err)
				} else {
					fine++
				}
				return true
			})
		}
	}
	switch {
	case err != nil:
		r.add("records", Unknown, "", "cannot list the records of the store: %v", err)
	case fine > 0:
		r.add("records", OK, "", "%d records of sequencers can be read", fine)
	}
}

// wholeYear is how long before the end of a layout's time another sequencer is
// needed: programs that keep its IDs have to change too.
const wholeYear = 365 * 24 * time.Hour

// state reports a sequencer that an operator has stopped, and one whose layout
// ends.
func (r *report) state(name string, i grant.Info) {
	since := ""
	if c := i.LastChange; c != (grant.Change{}) {
		since = fmt.Sprintf(" (last change: %s by %s, %s)", c.What, c.By, c.At.Format(time.RFC3339))
	}
	switch end := config.End(i.Config.Layout); {
	case i.MovedTo != "":
		r.add("records", OK, "", "sequencer %s was moved to %s%s", name, i.MovedTo, since)
	case i.State >= grant.Destroyed:
	case i.State == grant.Destroying:
		r.add("records", Fix, "finish it: firn sequencer destroy "+name, "sequencer %s is destroying%s", name, since)
	case i.State != grant.Attached:
		r.add("records", Fix, "if its IDs are wanted: firn sequencer attach "+name,
			"sequencer %s is %s: no server gives its IDs%s", name, i.State, since)
	case end.Sub(r.config.Now()) < wholeYear:
		r.add("records", Fix, "create another sequencer with more time bits, and change its users to that",
			"sequencer %s has no IDs after %s: the time of layout %s ends",
			name, end.UTC().Format(time.RFC3339), i.Config.Layout)
	}
}

// storeClock compares this machine's clock with the store's.
func (r *report) storeClock(ctx context.Context) {
	by, _, err := Lead(ctx, r.config.Store, r.config.Now)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		r.add("clock", Unknown, "", "the store does not report its time: %v", err)
	case by.Abs() > maxOffset:
		r.add("clock", Fix, ntpHint+", here and on the store's machine", "this clock is at least %s the store's",
			AheadOf(by))
	default:
		r.add("clock", OK, "", "this clock and the store's agree")
	}
}

// Lead returns how far the clock now is ahead of the store's, at least, and its
// time; it is negative if the clock is behind, and 0 if the two may agree or
// with an error. That matches errors.ErrUnsupported if the store does not report
// its time.
func Lead(ctx context.Context, s grant.Store, now func() time.Time) (by time.Duration, at time.Time, err error) {
	c, ok := grant.As[grant.Clock](s)
	if !ok {
		return 0, now(), errors.ErrUnsupported
	}
	before := now()
	told, resolution, err := c.Time(ctx)
	at = now()
	switch ahead, behind := before.Sub(told.Add(resolution)), told.Sub(at); {
	case err != nil:
	case ahead > 0:
		by = ahead
	case behind > 0:
		by = -behind
	}
	return by.Round(time.Millisecond), at, err
}

// AheadOf formats how far a clock is ahead of another, or behind it.
func AheadOf(by time.Duration) string {
	if by < 0 {
		return fmt.Sprintf("%v behind", -by)
	}
	return fmt.Sprintf("%v ahead of", by)
}

// members compares this program with the servers of the store.
func (r *report) members(ctx context.Context) {
	now := r.config.Now()
	all, err := members.List(ctx, r.config.Store, now)
	switch {
	case err != nil:
		r.add("members", Unknown, "", "cannot list the servers of the store: %v", err)
		return
	case len(all) == 0:
		r.add("members", OK, "", "no server is listed in the store: none runs, or none can write there")
		return
	}
	texts, versions := make([]string, len(all)), []string{r.config.Version}
	for i, m := range all {
		name := cmp.Or(m.Address, m.Host)
		texts[i] = fmt.Sprintf("%s (%s)", name, cmp.Or(m.Version, "unknown version"))
		versions = append(versions, m.Version)
		for _, l := range m.Lacks {
			r.add("members", Fix, "its log has the cause; see docs/runbooks.md",
				"server %s gives no IDs of %s: %s", name, l.Sequencer, l.Problem)
		}
		// It wrote this in the past, by its own clock.
		if lead := m.Seen.Sub(now); lead > maxOffset {
			r.add("clock", Fix, ntpHint+", on both machines",
				"the clock of server %s is at least %v ahead of this one", name, lead.Round(time.Millisecond))
		}
	}
	slices.Sort(texts)
	text := "servers of the store: " + strings.Join(texts, ", ")
	for _, v := range versions {
		if slices.ContainsFunc(versions, func(w string) bool { return incompatible(v, w) }) {
			r.add("members", Fix, "versions on one store may be only one minor version apart (docs/upgrades.md)",
				"%s; this firn is %s", text, r.config.Version)
			return
		}
	}
	r.add("members", OK, "", "%s", text)
}

// incompatible reports whether two versions are known not to work together on one
// store.
func incompatible(v, w string) bool {
	var a, b struct{ major, minor int }
	if n, _ := fmt.Sscanf(v, "v%d.%d.", &a.major, &a.minor); n != 2 {
		return false
	}
	if n, _ := fmt.Sscanf(w, "v%d.%d.", &b.major, &b.minor); n != 2 {
		return false
	}
	return a.major != b.major || a.minor-b.minor > 1 || b.minor-a.minor > 1
}

// minFree is the free space that the directory of a store, or of an issue log,
// should have. A store needs little, but without any it cannot renew windows.
const minFree = 64 << 20

// space checks the free space of a directory, without any of which something
// happens. Opening a store already refuses unsuitable file systems.
func (r *report) space(directory, otherwise string) {
	there := directory // the nearest directory that exists
	free, err := freeBytes(there)
	for errors.Is(err, os.ErrNotExist) && there != filepath.Dir(there) {
		there = filepath.Dir(there)
		free, err = freeBytes(there)
	}
	switch {
	case err != nil:
		r.add("file system", Unknown, "", "cannot determine the free space of %s: %v", directory, err)
	case free < minFree:
		r.add("file system", Fix, "free some space: without any, "+otherwise, "%s has %d MiB free", directory, free>>20)
	default:
		r.add("file system", OK, "", "%s has %d MiB free", directory, free>>20)
	}
}

// limits compares the limit of open files with the number of connections that
// the server accepts.
func (r *report) limits() {
	if r.config.Connections == 0 {
		return
	}
	most, err := listen.OpenFiles()
	need := listen.FilesFor(len(r.config.Listen), r.config.Connections)
	switch {
	case err != nil:
		r.add("limits", Unknown, "", "cannot determine the limit of open files: %v", err)
	case most < need:
		r.add("limits", Fix,
			fmt.Sprintf("raise the limit to %d (LimitNOFILE= in systemd, ulimit -n in a shell), or lower limits.connections", need),
			"a process here may open %d files, too few for %d connections per address", most, r.config.Connections)
	default:
		r.add("limits", OK, "", "a process here may open %d files", most)
	}
}

// address checks whether the server can listen, or already does.
func (r *report) address(ctx context.Context, address string) {
	if network, at := split(address); network == "unix" {
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
			r.add("address", Fix, "choose another address, or run the server as a user that may listen there",
				"the server cannot listen on %s: %v", address, err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	answer, body, err := Ask(ctx, address, "/readyz")
	switch {
	case err != nil || answer.Header.Get("X-Request-Id") == "": // which every Firn sends
		r.add("address", Fix, "stop that program, or choose another address", "another program listens on %s", address)
	case answer.StatusCode == http.StatusOK:
		r.add("address", OK, "", "a ready server listens on %s", address)
	default:
		_, detail := Problem(body)
		r.add("address", Fix, "its log has the cause; see docs/runbooks.md",
			"a server that is not ready listens on %s: %s", address, cmp.Or(detail, answer.Status))
	}
}

// certificates judges the files of TLS as the server does. Those that it would
// not load are not here.
func (r *report) certificates() {
	if r.config.TLS == nil {
		return
	}
	for _, f := range r.config.TLS.Judge(r.config.Now()) {
		if f.Wrong {
			r.add("TLS", Fix, "see FirnCertificateExpiring in docs/runbooks.md: the server reloads its files by itself", "%s", f.Text)
		} else {
			r.add("TLS", OK, "", "%s", f.Text)
		}
	}
}
