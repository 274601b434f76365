// Package doctor looks for problems that would keep a server from handing out
// IDs, or make their times wrong: the clock, the store, the system's limits,
// addresses, certificates, and the other servers of the store. It changes
// nothing.
//
// It is used by the command firn doctor. Problems of a running server are
// visible in its metrics.
package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/tlsconf"
	"github.com/firnid/firn/server/internal/ids/textfmt"
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
	// Check is config, clock, store, other store, records, members, forward,
	// file system, limits, address or TLS.
	Check string `json:"check"`
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

	// Other is an open store whose IDs meet those of Store in one database. It
	// is nil if no other store was given, or with OtherError and OtherHint if
	// it could not be opened.
	Other      grant.Store
	OtherError error
	OtherHint  string

	// Missing means that Directory has no store yet; the server creates it when
	// it starts.
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
	r.systemClock()
	r.store(ctx)
	r.otherStore(ctx)
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
