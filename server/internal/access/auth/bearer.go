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
	path string
	warn func(string)
	text atomic.Pointer[string]

	mu    sync.Mutex // guards the fields below; held by the call that reads the file again
	read  time.Time
	wrong bool // and that was logged
}

// OpenBearer reads the token in a file, or returns nil if the path is empty. It
// passes warn a sentence when the file has become invalid.
func OpenBearer(path string, warn func(string)) (*Bearer, error) {
	if path == "" {
		return nil, nil
	}
	f := &Bearer{path: path, warn: warn, read: time.Now()}
	text, err := f.load()
	f.text.Store(&text)
	return f, err
}

func (f *Bearer) load() (string, error) {
	data, err := readfile.ReadTrusted(f.path)
	text := strings.TrimSpace(string(data))
	if err == nil && text == "" {
		err = fmt.Errorf("%s: the file is empty", f.path)
	}
	return text, err
}

// tokenEvery is the minimum time between reads of the file.
const tokenEvery = 5 * time.Second

// Token returns the token, which is up to tokenEvery old. If the file cannot be
// read, or while another call reads it, that is the previous one.
func (f *Bearer) Token() string {
	if f.mu.TryLock() {
		defer f.mu.Unlock()
		if time.Since(f.read) >= tokenEvery {
			f.read = time.Now()
			text, err := f.load()
			if err == nil {
				f.text.Store(&text)
			} else if !f.wrong {
				f.warn(fmt.Sprintf("keeping the previous token: %v", err))
			}
			f.wrong = err != nil
		}
	}
	return *f.text.Load()
}
