// Package stores opens the stores of node IDs that a URL names: directories,
// etcd, Kubernetes, PostgreSQL, MySQL and MariaDB.
//
// It is the only place where stores and the clients of databases are chosen.
package stores

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn/grant"
)

// Help says for a person what the URLs are.
const Help = `  etcd://HOST[:2379][,HOST…][/PREFIX]      an etcd of version 3.5.5 or newer
  kubernetes://[NAMESPACE][/PREFIX]        Leases of a Kubernetes cluster; in a
                                           pod its own, by its service account
  postgres://USER@HOST[:5432]/DATABASE     a PostgreSQL of version 11 or newer
  mysql://USER@HOST[:3306]/DATABASE        a MySQL 5.7, a MariaDB 10.3, or newer
    all:       ?password-file=PATH reads the password from a file, &timeout=5s
               is how long to wait for the first answer
    etcd:      ?tls=true&ca=FILE&cert=FILE&key=FILE
    kubernetes: ?kubeconfig=FILE&context=NAME where kubectl's are not meant
    mysql:     ?tls=true&ca=FILE&cert=FILE&key=FILE, &socket=PATH in place of HOST
    postgres:  what PostgreSQL's own URLs take, such as ?sslmode=verify-full
    databases: ?create=true makes the table where there is none yet, &table=NAME
               names it (default firn_grants)`

// Schemes are what the URLs begin with, before the colon.
func Schemes() []string { return []string{"etcd", "kubernetes", "mysql", "postgres", "postgresql"} }

// An Error says why a store was not opened. Its text has no password.
type Error struct {
	Err  error
	Hint string // what to do about it; may be empty
	URL  bool   // the URL is wrong, whatever is there
	Dir  bool   // the store is a directory, and Err one of dirstore

	// Unreachable: the store did not answer. It may, later, with the same URL.
	Unreachable bool
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

func wrong(hint, format string, args ...any) *Error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint, URL: true}
}

func fault(hint, format string, args ...any) *Error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint}
}

// Options are what Open can be told.
type Options struct {
	// Warn is called with a sentence for each thing that is dangerous about a
	// store although it can be used: in Open, and for databases and Kubernetes
	// also when that changes, by one goroutine at a time until the store is
	// closed. It must not call the store. Nil means that the store is not asked.
	Warn func(string)

	// Create makes the store of a directory that has none.
	Create bool
}

// defaultTimeout is how long a store may take for its first answer.
const defaultTimeout = 5 * time.Second

// Open opens the store that a URL names, once it has answered. Every error is
// an *Error.
func Open(ctx context.Context, text string, o Options) (grant.Store, error) {
	if rest, ok := strings.CutPrefix(text, "dir:"); ok {
		return openDirURL(rest, o.Create)
	}
	u, err := parse(text)
	if err != nil {
		return nil, err
	}
	s, err := openRemote(ctx, u, o)
	if err == nil {
		return s, nil
	}
	return nil, u.hide(err)
}

// Check finds what is wrong with a URL, and with the files that it names,
// without asking the store. Every error is an *Error.
func Check(text string) error {
	if rest, ok := strings.CutPrefix(text, "dir:"); ok {
		_, _, err := parseDir(rest)
		return err
	}
	u, err := parse(text)
	if err != nil {
		return err
	}
	if err := checkRemote(u); err != nil {
		return u.hide(err)
	}
	return nil
}

// hide makes err an *Error that does not have the password.
func (u *parsed) hide(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = fault("", "%s: %w", u.scheme, err)
		e.Unreachable = isNetwork(err)
	}
	if u.password != "" && strings.Contains(e.Err.Error(), u.password) {
		e.Err = errors.New(strings.ReplaceAll(e.Err.Error(), u.password, redacted))
	}
	return e
}

// A parsed is a URL taken apart as far as all have it in common.
type parsed struct {
	scheme   string
	user     string
	password string
	hosts    string
	path     string // without the first slash
	query    url.Values
	timeout  time.Duration
}

// parse reads a URL. It does not use net/url for the whole, whose errors show
// the password, and which knows one host only.
func parse(text string) (*parsed, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || !slices.Contains(Schemes(), scheme) {
		return nil, wrong("it is machine, dir:PATH, etcd://HOST, kubernetes://NAMESPACE, postgres://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE", "%q: there is no such kind of store", Redact(text))
	}
	bad := func(what string) error {
		return wrong("in a user, a password or a path, %2F is a slash, %40 an @, %3A a colon, %3F a ? and %25 a %", "%q: %s", Redact(text), what)
	}
	u := &parsed{scheme: scheme, timeout: defaultTimeout}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.HasPrefix(scheme, "postgres") {
		query = strings.ReplaceAll(query, "+", "%2B") // there a plus is a plus
	}
	var err error
	if u.query, err = url.ParseQuery(query); err != nil {
		return nil, bad("what follows the ? is not KEY=VALUE&KEY=VALUE")
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
		return nil, bad("there is an @ behind the first slash, perhaps of a password that has a slash")
	}
	for key, values := range u.query {
		if len(values) > 1 {
			return nil, wrong("", "%q: %s is said twice", Redact(text), key)
		}
	}
	if strings.HasPrefix(scheme, "postgres") { // one of PostgreSQL's own parameters
		if password := u.take("password"); password != "" {
			u.password = password
		}
	}
	if file := u.take("password-file"); file != "" {
		if u.password != "" {
			return nil, wrong("leave one of them out", "%q: there is a password and a password-file", Redact(text))
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
			return nil, wrong("it is such as 5s", "timeout is %q", value)
		}
	}
	return u, nil
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
		return false, wrong("", "%s is %q: it is true or false", key, value)
	}
	return set, nil
}

// nothingElse reports parameters that nobody has taken.
func (u *parsed) nothingElse(known string) error {
	for key := range u.query {
		return wrong("there are "+known, "%s: there is no parameter %q", u.scheme, key)
	}
	return nil
}

// tls makes the configuration of TLS from tls, ca, cert and key; nil if there
// is none of them.
func (u *parsed) tls() (*tls.Config, error) {
	on, err := u.flag("tls")
	if err != nil {
		return nil, err
	}
	ca, cert, key := u.take("ca"), u.take("cert"), u.take("key")
	if !on {
		if ca+cert+key != "" {
			return nil, wrong("add tls=true", "ca, cert and key are for TLS")
		}
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fault("", "ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fault("it begins with -----BEGIN CERTIFICATE-----", "ca: there is no certificate in %s", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, wrong("", "cert and key belong together: one is missing")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fault("", "cert and key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// addresses are the hosts with their ports.
func (u *parsed) addresses(port string) ([]string, error) {
	var all []string
	for host := range strings.SplitSeq(u.hosts, ",") {
		switch {
		case host == "":
			return nil, wrong("it is such as "+u.scheme+"://10.0.0.1:"+port, "%s: a host is missing", u.scheme)
		case strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]"), !strings.Contains(host, ":"):
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		if _, p, err := net.SplitHostPort(host); err != nil || !isPort(p) {
			return nil, wrong("an IPv6 address stands in brackets, such as [::1]:"+port+"; a user and a password stand before an @ and the host", "%s: %q is not HOST:PORT", u.scheme, redactHosts(host))
		}
		all = append(all, host)
	}
	return all, nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// redacted stands where a password was.
const redacted = "xxxxx"

// Redact is a URL without its password, whatever else is wrong with it. What
// may be a password is taken for one.
func Redact(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || strings.Contains(scheme, "@") {
		if at := strings.LastIndexByte(text, '@'); at >= 0 && !strings.HasPrefix(text, "dir:") {
			return redacted + redactHosts(text[at:])
		}
		if kind, _, ok := strings.Cut(text, ":"); ok && kind != "dir" {
			return kind + ":…"
		}
		return text
	}
	user := ""
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		name, _, ok := strings.Cut(rest[:at], ":")
		user, rest = name+"@", rest[at+1:]
		if ok {
			user = name + ":" + redacted + "@"
		}
		if before, query, ok := strings.Cut(user, "?"); ok { // the @ is one of a parameter
			return scheme + "://" + redactHosts(before) + "?" + redactQuery(query+rest)
		}
	}
	before, query, ok := strings.Cut(rest, "?")
	before = redactHosts(before)
	if ok {
		before += "?" + redactQuery(query)
	}
	return scheme + "://" + user + before
}

// redactHosts is HOST:PORT,HOST:PORT/PATH without what is no port: the password
// of one who has forgotten the host. It may have a slash.
func redactHosts(text string) string {
	hosts, _, _ := strings.Cut(text, "/")
	end := 0
	for host := range strings.SplitSeq(hosts, ",") {
		name, port, ok := strings.Cut(host, ":")
		if strings.HasPrefix(host, "[") {
			if inside, after, found := strings.Cut(host, "]"); found {
				name, port, ok = inside+"]", strings.TrimPrefix(after, ":"), strings.HasPrefix(after, ":")
			}
		}
		if ok && !isPort(port) {
			return text[:end+len(name)] + ":" + redacted
		}
		end += len(host) + 1
	}
	return text
}

// redactQuery is KEY=VALUE&KEY=VALUE without what may be passwords.
func redactQuery(query string) string {
	parts := strings.Split(query, "&")
	for i, p := range parts {
		key, _, ok := strings.Cut(p, "=")
		plain, err := url.QueryUnescape(key)
		if err != nil {
			plain = "password"
		}
		plain = strings.ToLower(plain)
		if plain == "password-file" || plain == "passfile" {
			continue
		}
		for _, word := range []string{"pas", "pw", "secret", "token"} { // with what is misspelt
			if ok && strings.Contains(plain, word) {
				parts[i] = key + "=" + redacted
			}
		}
	}
	return strings.Join(parts, "&")
}
