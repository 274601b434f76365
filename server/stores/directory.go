package stores

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

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
	u := &parsed{scheme: "dir", query: values}
	if o.Create, err = u.flag("create"); err == nil {
		o.AllowVolatile, err = u.flag("volatile")
	}
	if err == nil {
		err = u.nothingElse("create and volatile")
	}
	return path, o, err
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
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	s, err := dirstore.Open(ctx, path, &o)
	if err == nil {
		return s, nil
	}
	e := &Error{Err: err, Directory: true}
	if errors.Is(err, dirstore.ErrNoStore) {
		e.Hint = fmt.Sprintf("check the path and that it is mounted; only if no store was there before, create one: 'dir:%s?create=true'", path)
	}
	return nil, e
}
