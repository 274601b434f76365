package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
)

// prepareDirectory checks the URL of a directory without its scheme.
func prepareDirectory(rest string) (opener, error) {
	path, query, _ := strings.Cut(rest, "?")
	text := "dir:" + rest
	switch {
	case path == "":
		return nil, wrong("write dir:PATH, such as dir:/var/lib/firn", "%q: the path is missing", text)
	case strings.HasPrefix(path, "//") && strings.Contains(path, "@"):
		// A URL of another kind may contain a user and a password.
		return nil, wrong("write dir:PATH, such as dir:/var/lib/firn", "a directory has no user or host")
	case strings.HasPrefix(path, "~"):
		return nil, wrong(`write the whole path; in a shell, "dir:$HOME/firn"`, "%q: ~ is not expanded here", text)
	}
	values, err := url.ParseQuery(query)
	if err = cmp.Or(err, once(values)); err != nil {
		return nil, wrong("", "%q: %w", text, err)
	}
	u := &parsed{scheme: "dir", query: values}
	var o dirstore.Options
	if o.Create, err = u.flag("create"); err == nil {
		o.AllowVolatile, err = u.flag("volatile")
	}
	if err == nil {
		err = u.nothingElse("create and volatile")
	}
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, &Error{Err: err}
	}
	return func(ctx context.Context) (grant.Store, error) { return openDirectory(ctx, path, &o) }, nil
}

func openDirectory(ctx context.Context, path string, o *dirstore.Options) (grant.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	s, err := dirstore.Open(ctx, path, o)
	if err == nil {
		return s, nil
	}
	e := &Error{Err: err, Directory: true}
	if errors.Is(err, dirstore.ErrNoStore) {
		e.Hint = fmt.Sprintf("check the path and that it is mounted; only if no store was there before, create one: "+
			"'dir:%s?create=true'", path)
	}
	return nil, e
}
