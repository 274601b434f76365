package stores

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
)

// DirOptions configure OpenDir. The zero DirOptions are for a directory that
// already has a store, on a disk that outlives the machine's processes.
type DirOptions struct {
	Create   bool              // create the store if the directory has none
	Volatile bool              // accept a directory that is lost with the machine or container
	Created  func(path string) // called if the store was created; may be nil
}

// parseDir parses the URL of a directory without its scheme.
func parseDir(rest string) (path string, o DirOptions, err error) {
	path, query, _ := strings.Cut(rest, "?")
	text := "dir:" + rest
	switch {
	case path == "":
		return "", o, wrong("write dir:PATH, such as dir:/var/lib/firn", "%q: the path is missing", text)
	case strings.HasPrefix(path, "//") && strings.Contains(path, "@"):
		// A URL of another kind may contain a user and a password.
		return "", o, wrong("write dir:PATH, such as dir:/var/lib/firn", "a directory has no user or host")
	case strings.HasPrefix(path, "~"):
		return "", o, wrong(`write the whole path; in a shell, "dir:$HOME/firn"`, "%q: ~ is not expanded here", text)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", o, wrong("", "%q: %w", text, err)
	}
	if err := once(values); err != nil {
		return "", o, wrong("", "%q: %w", text, err)
	}
	for key := range values {
		set, err := strconv.ParseBool(values.Get(key))
		if err != nil {
			return "", o, wrong("", "%q: %s is %q: it must be true or false", text, key, values.Get(key))
		}
		switch key {
		case "create":
			o.Create = set
		case "volatile":
			o.Volatile = set
		default:
			return "", o, wrong("the parameters are create and volatile", "%q: unknown parameter %q", text, key)
		}
	}
	return path, o, nil
}

// openDirURL opens the directory of a URL without its scheme.
func openDirURL(rest string, create bool) (grant.Store, error) {
	path, o, err := parseDir(rest)
	if err != nil {
		return nil, err
	}
	o.Create = o.Create || create
	s, err := OpenDir(path, o)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, dirstore.ErrNoStore):
		return nil, &Error{Err: err, Dir: true, Hint: fmt.Sprintf("check the path and that it is mounted; only if no store was there before, create one: 'dir:%s?create=true'", path)}
	}
	return nil, &Error{Err: err, Dir: true}
}

// OpenDir opens a store in a directory, for the processes of one machine.
func OpenDir(path string, o DirOptions) (grant.Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	var missing error
	s, err := inTime(path, func() (_ grant.Store, err error) {
		_, missing = os.Lstat(filepath.Join(path, "firn-store")) // the marker
		return dirstore.Open(path, &dirstore.Options{Create: o.Create, AllowVolatile: o.Volatile})
	})
	if err != nil {
		return nil, &dirError{dirWords.Replace(err.Error()), err}
	}
	if errors.Is(missing, fs.ErrNotExist) && o.Created != nil {
		o.Created(path)
	}
	return s, nil
}

// openDirTime is how long a disk may take to answer when a directory is opened:
// longer than the wait for the lock of a new store.
const openDirTime = 20 * time.Second

// inTime opens a directory, unless its disk does not answer: the system cannot
// interrupt a call. If the disk answers later, the store is closed again.
func inTime(path string, open func() (grant.Store, error)) (grant.Store, error) {
	type result struct {
		store grant.Store
		err   error
	}
	results, left := make(chan result), make(chan struct{})
	go func() {
		s, err := open()
		select {
		case results <- result{s, err}:
		case <-left:
			if err == nil {
				_ = s.Close()
			}
		}
	}()
	timer := time.NewTimer(openDirTime)
	defer timer.Stop()
	select {
	case r := <-results:
		return r.store, r.err
	case <-timer.C:
		close(left)
		return nil, fmt.Errorf("open %s: the disk has not answered for %v: check the disk and its mount", path, openDirTime)
	}
}

// A dirError is an error of dirstore in terms of URLs.
type dirError struct {
	text string
	err  error
}

func (e *dirError) Error() string { return e.text }

func (e *dirError) Unwrap() error { return e.err }

// dirWords replaces what users of dirstore can do by what a URL can say;
// TestDirWords checks it.
var dirWords = strings.NewReplacer(
	"Create it (Options.Create) if no store was there before", "If no store was there before, ?create=true creates it",
	"set AllowVolatile", "add ?volatile=true",
	": every process that uses the store must be able to read and write its directory and all files in it; run them as one user, or give the directory to a group they share, with mode 2770", "", // the hint has it
)
