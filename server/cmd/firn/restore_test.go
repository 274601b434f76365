//go:build linux

package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/internal/test/s3test"
	"github.com/firnid/firn/server/internal/test/distinct"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/sqltest"
)

// A restoreCase is a way in which docs/restore.md restores a store. Bash runs
// its scripts in $DIR, with $PORT: see testdata/restore/prelude.sh.
type restoreCase struct {
	store, backup string            // the store's file in testdata/restore, and the kind of its backup
	program, pkg  string            // which must be installed, and its Debian package
	account       string            // who runs the scripts, and owns $DIR
	url           string            // of the store, for members
	blocks        []string          // the code blocks of the page, by what they contain
	as            map[string]string // texts of these blocks, and what the test has instead
	restart       bool              // members have to be restarted
	always        bool              // it runs without FIRN_ALL=1 too
}

const (
	urlPostgreSQL = "postgres://firn@127.0.0.1:$PORT/firn?sslmode=disable&create=true"
	urlMariaDB    = "mysql://firn@127.0.0.1:$PORT/firn?create=true"
	fencePrivate  = "private=$(mktemp -d)                                         #"
)

var restoreCases = []restoreCase{
	{
		store: "directory", program: "bash", pkg: "bash", account: "root",
		url:    "dir:$DIR/firn?volatile=true&create=true", // it creates a store wherever it can
		blocks: []string{"cp -a /backup/firn-2026-11-21"},
		as:     map[string]string{"dir:/var/lib/firn-restored": "dir:$DIR/firn-restored?volatile=true", "/var/lib/": "$DIR/", "/backup/": "$DIR/backup/"},

		restart: true, always: true,
	},
	{
		store: "bucket", program: "bash", pkg: "bash", account: "root",
		url:    "s3://ids/firn?endpoint=http://127.0.0.1:$PORT&path-style=true",
		blocks: []string{"cp -a /backup/objects-2026-11-21"},
		as:     map[string]string{"/var/lib/": "$DIR/", "/backup/": "$DIR/backup/", "17070": "$PORT3"},
	},
	{
		store: "postgresql", backup: "base", program: "initdb", pkg: "postgresql", account: "postgres", url: urlPostgreSQL,
		blocks: []string{"# restore into $PGDATA", fencePrivate, "pg_is_in_recovery", "export FIRN_STORE=\"postgres:"},
		as:     map[string]string{"# restore into $PGDATA": `cp -a "$DIR/base" "$PGDATA"`},
	},
	{
		store: "postgresql", backup: "dump", program: "initdb", pkg: "postgresql", account: "postgres", url: urlPostgreSQL,
		blocks: []string{"initdb -D", fencePrivate, "dump.sql postgres", "export FIRN_STORE=\"postgres:"},
		as:     map[string]string{"initdb -D": "initdb -U postgres -A trust --no-sync -D"},
	},
	{
		store: "postgresql", backup: "replica", program: "initdb", pkg: "postgresql", account: "postgres",
		url:    "postgres://firn@127.0.0.1:$PORT,127.0.0.1:$PORT2/firn?sslmode=disable&create=true",
		blocks: []string{"pg_ctl stop -D \"$PGDATA\" -m fast\n```", fencePrivate, "pg_promote", "export FIRN_STORE=\"postgres:"},
		always: true,
	},
	{
		store: "mariadb", backup: "base", program: "mariadbd", pkg: "mariadb-server", account: "mysql", url: urlMariaDB,
		blocks: []string{"# restore into /var/lib/mysql", "mariadbd --user=mysql ", "export FIRN_STORE=\"mysql:"},
		as:     map[string]string{"# restore into /var/lib/mysql": `cp -a "$DIR/base" "$DIR/mysql"`, "/var/lib/mysql": "$DIR/mysql", "chown mysql": ":"},
	},
	{
		store: "mariadb", backup: "dump", program: "mariadbd", pkg: "mariadb-server", account: "mysql", url: urlMariaDB,
		blocks: []string{"mariadb-install-db --user=mysql", "mariadbd --user=mysql ", "<dump.sql", "export FIRN_STORE=\"mysql:"},
		as:     map[string]string{"/var/lib/mysql": "$DIR/mysql", "chown mysql": ":"},
	},
	{
		store: "mariadb", backup: "replica", program: "mariadbd", pkg: "mariadb-server", account: "mysql", url: urlMariaDB,
		blocks: []string{"systemctl stop mariadb\n```", "mariadbd --user=mysql ", "RESET SLAVE ALL", "export FIRN_STORE=\"mysql:"},
		as:     map[string]string{"chown mysql": ":", "systemctl start mariadb": "configure $PORT server-id=2; systemctl start mariadb"},
	},
	{
		store: "etcd", program: "bash", pkg: "bash", account: "root", url: "etcd://127.0.0.1:$PORT/firn",
		blocks: []string{"--force-new-cluster \\"},
		as:     map[string]string{"/var/lib/etcd": "$DIR/etcd", "12379": "$PORT3"},
	},
}

// TestRestore: a store is restored by the commands of docs/restore.md, while
// servers run that the backup does not know, and another is killed and started
// again before the fence. No ID repeats, and all servers make IDs in the end.
func TestRestore(t *testing.T) {
	inFull(t)
	page, err := os.ReadFile("../../../docs/restore.md")
	if err != nil {
		t.Skip("the module stands alone, without the docs")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
	for _, r := range restoreCases {
		t.Run(r.name(), func(t *testing.T) {
			if !r.always {
				nettest.Long(t)
			}
			t.Parallel()
			r.run(t, string(page))
		})
	}
}

// name says which store is restored, and from what.
func (r *restoreCase) name() string { return strings.TrimSpace(r.store + " " + r.backup) }

func (r *restoreCase) run(t *testing.T, page string) {
	sqltest.Find(t, r.program, r.pkg)
	dir, as := sqltest.Directory(t, "restore", r.account)
	binary, err := os.ReadFile(os.Args[0]) // the account cannot reach it
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "firn-test"), binary, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "DIR="+dir)
	fill := []string{"$DIR", dir}
	for _, name := range []string{"PORT3", "PORT2", "PORT"} {
		_, port, _ := net.SplitHostPort(proc.FreeAddress(t)) // of 127.0.0.1, which all tests use
		env = append(env, name+"="+port)
		fill = append(fill, "$"+name, port)
	}
	if r.store == "etcd" {
		env = append(env, "ETCD="+proc.Built(t, "etcd.sh"))
	}
	if r.store == "bucket" {
		env = append(env, "GATEWAY="+proc.Built(t, "versitygw.sh"))
	}
	var groups []int
	functions := ""
	for _, file := range []string{"prelude", r.store} {
		functions += string(must.Get(os.ReadFile("testdata/restore/" + file + ".sh"))(t))
	}
	script := func(text string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command("bash", "-c", functions+text)
		cmd.Env, cmd.Dir = env, dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.Credential, Setpgid: true}
		log := must.Get(os.CreateTemp(dir, "script"))(t)
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log
		must.Do(t, cmd.Start())
		groups = append(groups, cmd.Process.Pid)
		t.Cleanup(func() {
			if t.Failed() {
				said, _ := os.ReadFile(log.Name())
				t.Logf("%s\n%s", text, said)
			}
		})
		return cmd
	}
	do := func(text string) {
		t.Helper()
		must.Do(t, script(text).Wait())
	}
	t.Cleanup(func() {
		_ = script("finally").Wait()
		for _, pid := range groups {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	})

	do("setup")
	url := strings.NewReplacer(fill...).Replace(r.url)
	const layout = "bits=time:44.node:5.seq:1,unit=1ms,epoch=0"
	do("firn sequencer create chaos --window 15s --max-ahead 100ms --layout " + layout + " --store '" + url + "'\n")
	url = strings.Replace(url, "create=true", "", 1)
	if r.store == "directory" {
		url += "create=true"
	}
	url = strings.TrimRight(url, "?&") + " --nodes 0..5"

	all := made{Slots: distinct.Slots{Layout: firn.MustParseLayout(layout)}}
	servers := make([]testServer, 4)
	ctx, stop := context.WithCancel(t.Context())
	var takers sync.WaitGroup
	defer takers.Wait()
	defer stop()
	begin := func(i int) {
		servers[i].start(t, url)
		t.Cleanup(func() { servers[i].end(syscall.SIGKILL) })
		takers.Go(func() { all.take(ctx, i, &servers[i]) })
		more(t, &all.answered[i], 2)
	}
	begin(0)
	do("backup " + r.backup)
	for i := range servers[1:] {
		begin(1 + i)
	}
	again := func() {
		if r.restart { // no server starts without the directory
			_, _ = nextChaos("-n 1000 --nodes 0..5 --store "+strings.Fields(url)[0], &all.Slots)
			return
		}
		servers[0].end(syscall.SIGKILL)
		servers[0].start(t, url)
		more(t, &all.tried[0], 3)
	}

	text := "fails " + r.backup + "\n"
	for _, part := range r.blocks {
		text += block(t, page, part)
	}
	for from := range r.as {
		if !strings.Contains(text, from) {
			t.Errorf("the page has no %q", from)
		}
	}
	pairs := []string{"firn sequencer list ", "touch look; until [ -e go ]; do sleep 0.1; done; firn sequencer list ", "--apply ", "--apply --longest-window 15s --skew 1s "}
	for from, to := range r.as {
		pairs = append(pairs, from, to)
	}
	procedure := script(strings.NewReplacer(fill...).Replace(strings.NewReplacer(pairs...).Replace(text)))
	ended := make(chan error, 1)
	go func() { ended <- procedure.Wait() }()
	looked := false
	for done := false; !done; {
		select {
		case err := <-ended:
			if err != nil || !looked {
				t.Fatalf("the procedure ended before the operator looked, or failed: %v", err)
			}
			done = true
		case <-time.After(50 * time.Millisecond):
			if _, err := os.Stat(filepath.Join(dir, "look")); err != nil || looked {
				continue
			}
			looked = true
			again()
			must.Do(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
		}
	}
	if r.restart {
		for i := range servers {
			servers[i].end(syscall.SIGKILL)
			servers[i].start(t, url)
		}
	}
	for i := range servers {
		more(t, &all.answered[i], 2)
	}
	stop()
	takers.Wait()
	all.Check(t)
	t.Logf("report: restore of %s: %d IDs, none twice", r.name(), all.Len())
}

// block returns the only code block of the page with a text.
func block(t *testing.T, page, part string) (found string) {
	t.Helper()
	for _, code := range strings.Split(page, "```sh\n")[1:] {
		if code, _, ok := strings.Cut(code, "\n```"); ok && strings.Contains(code+"\n```", part) {
			if found != "" {
				t.Fatalf("several code blocks have %q", part)
			}
			found = code + "\n"
		}
	}
	if found == "" {
		t.Fatalf("no code block has %q", part)
	}
	return found
}

// made are IDs, and how many requests were made and answered, by server.
type made struct {
	distinct.Slots
	tried, answered [4]atomic.Int64
}

// take takes every ID that a server makes, until the context ends.
func (m *made) take(ctx context.Context, server int, s *testServer) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		err := take(client, *s.url.Load(), 50, false, &m.Slots)
		if m.tried[server].Add(1); err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		m.answered[server].Add(1)
	}
}

// more waits until a number has grown by some.
func more(t *testing.T, count *atomic.Int64, by int64) {
	t.Helper()
	want := count.Load() + by
	must.Await(t, func() bool { return count.Load() >= want }, "a server makes IDs, or answers")
}
