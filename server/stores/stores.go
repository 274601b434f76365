// Package stores opens the stores of node IDs that a URL names: directories,
// etcd, Kubernetes, PostgreSQL, MySQL and MariaDB, buckets of S3.
//
// It is the only place where stores and the clients of databases are chosen.
package stores

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/tlsconf"
)

// An Error says why a store was not opened. Its text contains no password.
type Error struct {
	Err  error
	Hint string // what to do about it; may be empty

	InvalidURL  bool // the URL itself is invalid
	Directory   bool // the store is a directory, and Err is from dirstore
	Unreachable bool // the store did not answer, but may do so later
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

func wrong(hint, format string, args ...any) *Error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint, InvalidURL: true}
}

func fault(hint, format string, args ...any) *Error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint}
}

// defaultTimeout is how long a store may take for its first answer.
const defaultTimeout = 5 * time.Second

// Open opens the store with a URL, such as dir:/var/lib/firn, etcd://HOST,
// kubernetes://NAMESPACE, postgres://USER@HOST/DATABASE,
// mysql://USER@HOST/DATABASE or s3://BUCKET/PREFIX, and waits for its first
// answer. The parameters of URLs are in docs/stores.md. Every error is an
// *Error.
//
// A Store in anything but a directory also implements grant.Dangers. Call its
// method now and then; package server does so by itself.
func Open(ctx context.Context, text string) (grant.Store, error) {
	u, open, err := prepare(text)
	if err == nil {
		var s grant.Store
		if s, err = open(ctx); err == nil {
			return s, nil
		}
	}
	return nil, u.hide(err)
}

// Check checks a URL, and the files that it names, without asking the store.
// Every error is an *Error.
func Check(text string) error {
	if u, _, err := prepare(text); err != nil {
		return u.hide(err)
	}
	return nil
}

// An opener opens the store of a URL that was checked.
type opener func(context.Context) (grant.Store, error)

// prepare checks a URL.
func prepare(text string) (*parsed, opener, error) {
	if rest, ok := strings.CutPrefix(text, "dir:"); ok {
		open, err := prepareDirectory(rest)
		return new(parsed), open, err
	}
	u, err := parse(text)
	if err != nil {
		return new(parsed), nil, err
	}
	open, err := prepareRemote(u)
	return u, open, err
}

// hide makes err an *Error that does not contain the password.
func (u *parsed) hide(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Err: err, InvalidURL: errors.Is(err, grant.ErrOptions),
			Unreachable: errors.Is(err, grant.ErrUnreachable)}
	}
	if u.password != "" && strings.Contains(e.Err.Error(), u.password) {
		e.Err = errors.New(strings.ReplaceAll(e.Err.Error(), u.password, redacted))
	}
	return e
}

// A parsed is a URL split into the parts that all kinds have in common.
type parsed struct {
	scheme   string
	user     string
	password string
	hosts    string
	path     string // without the leading slash
	query    url.Values
	timeout  time.Duration
}

// parse parses a URL. It cannot use net/url for the whole, whose errors show
// the password, and which supports only one host.
func parse(text string) (*parsed, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if scheme == "redis" || scheme == "rediss" {
		return nil, wrong("docs/redis.md says what to do instead",
			"%q: Redis cannot be a store, because it may lose writes that it has confirmed", Redact(text))
	}
	if !ok || !slices.Contains([]string{"etcd", "kubernetes", "mysql", "postgres", "postgresql", "s3"}, scheme) {
		return nil, wrong("write machine, dir:PATH, etcd://HOST, kubernetes://NAMESPACE, postgres://USER@HOST/DATABASE, "+
			"mysql://USER@HOST/DATABASE or s3://BUCKET/PREFIX",
			"%q: unknown kind of store", Redact(text))
	}
	bad := func(what string) error {
		return wrong("in a user, a password or a path, %2F is a slash, %40 an @, %3A a colon, %3F a ? and %25 a %",
			"%q: %s", Redact(text), what)
	}
	u := &parsed{scheme: scheme, timeout: defaultTimeout}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.HasPrefix(scheme, "postgres") {
		query = strings.ReplaceAll(query, "+", "%2B") // here a plus is a plus
	}
	var err error
	if u.query, err = url.ParseQuery(query); err != nil {
		return nil, bad("the part after the ? is not KEY=VALUE&KEY=VALUE")
	}
	authority, path, _ := strings.Cut(rest, "/")
	if u.path, err = url.PathUnescape(path); err != nil {
		return nil, bad("the path has a % that is not followed by two hex digits")
	}
	u.hosts = authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		u.hosts = authority[at+1:]
		user, password, _ := strings.Cut(authority[:at], ":")
		var e1, e2 error
		u.user, e1 = url.PathUnescape(user)
		u.password, e2 = url.PathUnescape(password)
		if e1 != nil || e2 != nil {
			return nil, bad("the user or the password has a % that is not followed by two hex digits")
		}
	} else if strings.Contains(u.path, "@") && scheme != "etcd" {
		return nil, bad("there is an @ after the first slash; a slash in a password must be written as %2F")
	}
	if err := once(u.query); err != nil {
		return nil, wrong("", "%q: %w", Redact(text), err)
	}
	if strings.HasPrefix(scheme, "postgres") { // one of PostgreSQL's own parameters
		if password := u.take("password"); password != "" {
			if u.password != "" {
				return nil, wrong("leave one of them out", "%q: a password is given before the @ and as a parameter", Redact(text))
			}
			u.password = password
		}
	}
	if file := u.take("password-file"); file != "" {
		if u.password != "" {
			return nil, wrong("leave one of them out", "%q: both a password and a password-file are given", Redact(text))
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fault("", "password-file: %w", err)
		}
		u.password = strings.TrimRight(string(content), "\r\n")
		if u.password == "" {
			return nil, fault("", "password-file %s is empty", file)
		}
	}
	if value := u.take("timeout"); value != "" {
		if u.timeout, err = time.ParseDuration(value); err != nil || u.timeout <= 0 {
			return nil, wrong("write a duration such as 5s", "invalid timeout %q", value)
		}
	}
	return u, nil
}

// once returns an error if a parameter has two values, or an empty one, as from
// a variable that is not set: one would be ignored without a word.
func once(query url.Values) error {
	for key, values := range query {
		switch {
		case len(values) > 1:
			return fmt.Errorf("%s is given twice", key)
		case values[0] == "":
			return fmt.Errorf("%s has no value", key)
		}
	}
	return nil
}

// take removes a parameter and returns its value.
func (u *parsed) take(key string) string {
	value := u.query.Get(key)
	u.query.Del(key)
	return value
}

// flag removes a parameter that is true or false.
func (u *parsed) flag(key string) (bool, error) {
	value := u.take(key)
	if value == "" {
		return false, nil
	}
	set, err := strconv.ParseBool(value)
	if err != nil {
		return false, wrong("", "%s is %q: it must be true or false", key, value)
	}
	return set, nil
}

// nothingElse returns an error if unknown parameters are left.
func (u *parsed) nothingElse(known string) error {
	for key := range u.query {
		return wrong("the parameters are "+known, "%s: unknown parameter %q", u.scheme, key)
	}
	return nil
}

// tls makes the TLS configuration from tls, ca, cert and key; nil if none of
// them is given.
func (u *parsed) tls() (*tls.Config, error) {
	on, err := u.flag("tls")
	if err != nil {
		return nil, err
	}
	ca, cert, key := u.take("ca"), u.take("cert"), u.take("key")
	if !on {
		if ca+cert+key != "" {
			return nil, wrong("add tls=true", "ca, cert and key need TLS")
		}
		return nil, nil
	}
	if (cert == "") != (key == "") {
		return nil, wrong("", "cert and key are needed together: one is missing")
	}
	c, err := tlsconf.Dialer(ca, cert, key)
	if err != nil {
		return nil, fault("", "TLS: %w", err)
	}
	return c, nil
}

// addresses returns the hosts with their ports.
func (u *parsed) addresses(port string) ([]string, error) {
	var all []string
	for host := range strings.SplitSeq(u.hosts, ",") {
		switch {
		case host == "":
			return nil, wrong("write a URL such as "+u.scheme+"://10.0.0.1:"+port, "%s: a host is missing", u.scheme)
		case strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]"), !strings.Contains(host, ":"):
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		_, digits, err := net.SplitHostPort(host)
		if n, badPort := strconv.ParseUint(digits, 10, 16); err != nil || badPort != nil || n == 0 {
			return nil, wrong("put an IPv6 address in brackets, such as [::1]:"+port+"; a user and a password come before an "+
				"@ and the host",
				"%s: a host is not HOST:PORT", u.scheme)
		}
		all = append(all, host)
	}
	return all, nil
}

// redacted replaces a password.
const redacted = "xxxxx"

// shown is the form of URLs of which parts are shown. A password may contain
// anything but an @; no other part may contain one.
var shown = regexp.MustCompile(`^([a-z][a-z0-9]*://)(?:([^:@/?]*)(:[^@]*)?@)?((?:(?:[\w.-]*|\[[\w.:%]*\])(?::\d{1,5})?,?)*(?:/[^?@]*)?)(\?[^@]*)?$`)

// Redact returns a URL without its password. Of an invalid URL it returns the
// beginning, because anything may be a password.
func Redact(text string) string {
	if strings.HasPrefix(text, "dir:") || !strings.ContainsAny(text, ":@") {
		return text
	}
	m := shown.FindStringSubmatch(text)
	if m == nil {
		scheme, _, _ := strings.Cut(text, ":")
		if strings.Contains(scheme, "@") || strings.Contains(scheme, "/") {
			scheme = ""
		}
		return scheme + ":…"
	}
	scheme, user, password, place, query := m[1], m[2], m[3], m[4], m[5]
	if password != "" {
		user += ":" + redacted
	}
	if user != "" {
		user += "@"
	}
	if query != "" {
		query = "?" + redactQuery(query[1:])
	}
	return scheme + user + place + query
}

// Name returns a URL without its user and without parameters that have a
// password: what says which store it is.
func Name(text string) (string, error) {
	u, err := url.Parse(Redact(text))
	if err != nil {
		return "", err
	}
	query := u.Query()
	maps.DeleteFunc(query, func(_ string, v []string) bool { return slices.Contains(v, redacted) })
	u.User, u.RawQuery = nil, query.Encode()
	return u.String(), nil
}

// redactQuery removes from KEY=VALUE&KEY=VALUE what may be passwords, also
// under misspelled keys.
func redactQuery(query string) string {
	parts := strings.Split(query, "&")
	for i, p := range parts {
		key, _, ok := strings.Cut(p, "=")
		word := strings.ToLower(key)
		isFile := word == "password-file" || word == "passfile"
		isPart := func(part string) bool { return strings.Contains(word, part) }
		if ok && !isFile && slices.ContainsFunc([]string{"%", "pas", "pw", "secret", "token"}, isPart) {
			parts[i] = key + "=" + redacted
		}
	}
	return strings.Join(parts, "&")
}
