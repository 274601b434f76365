package auth

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/server/internal/access/readfile"
)

// A Bearer has the token with which this program authenticates itself, in a
// file that may change. It must be made by OpenBearer, and is safe for
// concurrent use.
type Bearer struct {
	warn func(string)
	text atomic.Pointer[string]

	mu    sync.Mutex // guards the fields below; held by the call that reads the file again
	files readfile.Files
	read  time.Time
}

// OpenBearer reads the token in a file, or returns nil if the path is empty. It
// passes warn a sentence when the file has become invalid.
func OpenBearer(path string, warn func(string)) (*Bearer, error) {
	if path == "" {
		return nil, nil
	}
	f := &Bearer{warn: warn, files: readfile.Files{Paths: []string{path}}}
	if _, err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// load reads the file. changed is true once for each change, and for each error.
func (f *Bearer) load() (changed bool, err error) {
	f.read = time.Now()
	data, changed, err := f.files.Read()
	if err != nil || !changed {
		return changed, err
	}
	text := strings.TrimSpace(string(data[0]))
	if text == "" {
		return true, fmt.Errorf("%s: the file is empty", f.files.Paths[0])
	}
	f.text.Store(&text)
	return true, nil
}

// tokenEvery is the minimum time between reads of the file.
const tokenEvery = 5 * time.Second

// Token returns the token, which is up to tokenEvery old. If the file cannot be
// read, or while another call reads it, that is the previous one.
func (f *Bearer) Token() string {
	if f.mu.TryLock() {
		defer f.mu.Unlock()
		if time.Since(f.read) >= tokenEvery {
			if changed, err := f.load(); changed && err != nil {
				f.warn(fmt.Sprintf("keeping the previous token: %v", err))
			}
		}
	}
	return *f.text.Load()
}
