package stores

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
)

// parseDirectory parses the URL of a directory without its scheme.
func parseDirectory(rest string) (path string, o dirstore.Options, err error) {
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
			o.AllowVolatile = set
		default:
			return "", o, wrong("the parameters are create and volatile", "%q: unknown parameter %q", text, key)
		}
	}
	return path, o, nil
}

// openDirectory opens the directory of a URL without its scheme.
func openDirectory(ctx context.Context, rest string) (grant.Store, error) {
	path, o, err := parseDirectory(rest)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, &Error{Err: err}
	}
	s, err := inTime(ctx, path, func() (grant.Store, error) { return dirstore.Open(path, &o) })
	if err == nil {
		return s, nil
	}
	e := &Error{Err: err, Dir: true}
	if errors.Is(err, dirstore.ErrNoStore) {
		e.Hint = fmt.Sprintf("check the path and that it is mounted; only if no store was there before, create one: 'dir:%s?create=true'", path)
	}
	return nil, e
}

// openDirTime is how long a disk may take to answer when a directory is opened:
// longer than the wait for the lock of a new store.
const openDirTime = 20 * time.Second

// inTime opens a directory, unless its disk does not answer: the system cannot
// interrupt a call. If the disk answers later, the store is closed again.
func inTime(ctx context.Context, path string, open func() (grant.Store, error)) (grant.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openDirTime)
	defer cancel()
	type result struct {
		store grant.Store
		err   error
	}
	results := make(chan result)
	go func() {
		s, err := open()
		select {
		case results <- result{s, err}:
		case <-ctx.Done():
			if err == nil {
				_ = s.Close()
			}
		}
	}()
	select {
	case r := <-results:
		return r.store, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("open %s: the disk has not answered in time: check the disk and its mount: %w", path, ctx.Err())
	}
}
