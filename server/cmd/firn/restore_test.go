//go:build linux

package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// A restoreCase is a way in which docs/restore.md restores a store. Its scripts
// are run by bash in $DIR, with $PORT; see restorePrelude for what they call.
type restoreCase struct {
	name    string
	program string // which must be installed, from the Debian package
	pkg     string
	account string            // who runs the scripts, and owns $DIR
	store   string            // the URL of members
	calls   string            // functions in place of the system's programs
	setup   string            // makes the store, and starts it
	backup  string            // while one server uses it
	fails   string            // before the procedure: the store is lost
	blocks  []string          // the code blocks of the page, by what they contain
	as      map[string]string // texts of these blocks, and what the test has instead
	restart bool              // members have to be restarted
	always  bool              // it runs without FIRN_ALL=1 too
}

// restorePrelude makes commands of the page those of the test.
const restorePrelude = `set -e
cd "$DIR"
export TMPDIR="$DIR" HOME="$DIR" PATH="$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1):$PATH:/usr/sbin"
firn() { FIRN_TEST_SERVE="$*" GORACE=atexit_sleep_ms=0 "$DIR/firn-test"; }
`

const (
	callsPostgreSQL = `export PGDATA="$DIR/data" PGPORT=$PORT
systemctl() {
	pg_ctl start -w -D "$PGDATA" -l "$DIR/log" -o "-c listen_addresses=127.0.0.1 -c unix_socket_directories=$DIR" >/dev/null
}
finally() { for d in "$DIR"/data "$DIR"/replica; do pg_ctl stop -D $d -m immediate || true; done; }
`
	setupPostgreSQL = `initdb -D "$PGDATA" -U postgres -A trust --no-sync --locale=C --encoding=UTF8
systemctl start postgresql
psql -h "$DIR" -c 'CREATE ROLE firn LOGIN' -c 'CREATE DATABASE firn OWNER firn' postgres
`
	callsMariaDB = `
configure() { # PORT SETTING…; the files of a replica end with $N
	printf '%s\n' '[mysqld]' "datadir=$DIR/mysql$N" "tmpdir=$DIR" bind-address=127.0.0.1 "port=$1" "socket=$DIR/s$N" "pid-file=$DIR/pid$N" \
		innodb-buffer-pool-size=16M innodb-log-file-size=8M log-bin=log sync-binlog=1 "${@:2}" >my$N.cnf
}
mariadbd() { exec mariadbd --defaults-file="$DIR/my$N.cnf" "$@"; }
mariadb() { command mariadb --no-defaults -u root "$@"; }
mariadb-admin() { command mariadb-admin --no-defaults -u root "$@"; }
mariadb-install-db() { command mariadb-install-db --defaults-file="$DIR/my$N.cnf" --auth-root-authentication-method=normal --skip-test-db "$@"; }
systemctl() {
	if [ $1 = stop ]; then
		mariadb-admin --socket="$DIR/s$N" shutdown
		while [ -e "$DIR/pid$N" ]; do sleep 0.1; done
		return
	fi
	mariadbd --user=mysql >>"$DIR/log" 2>&1 &
	until mariadb --socket="$DIR/s$N" -e 'SELECT 1'; do sleep 0.2; done
}
`
	setupMariaDB = `configure $PORT server-id=1
mariadb-install-db --user=mysql
systemctl start mariadb
mariadb --socket="$DIR/s" -e "CREATE DATABASE firn; CREATE USER firn@'127.0.0.1'; GRANT ALL ON firn.* TO firn@'127.0.0.1'"
`
)

var restoreCases = []restoreCase{
	{
		name: "directory", program: "bash", pkg: "bash", account: "root",
		store:  "dir:$DIR/firn?volatile=true&create=true", // it creates a store wherever it can
		calls:  "systemctl() { :; }\n",                    // members keep running
		setup:  "mkdir backup",
		backup: "mkdir backup/firn-2026-11-21; tar -C firn -c --exclude='tmp+*' . | tar -C backup/firn-2026-11-21 -x",
		blocks: []string{"cp -a /backup/firn-2026-11-21"},
		as:     map[string]string{"dir:/var/lib/firn-restored": "dir:$DIR/firn-restored?volatile=true", "/var/lib/": "$DIR/", "/backup/": "$DIR/backup/"},

		restart: true, always: true,
	},
	{
		name: "bucket", program: "bash", pkg: "bash", account: "root",
		store: "s3://ids/firn?endpoint=http://127.0.0.1:$PORT&path-style=true",
		calls: `versitygw() { exec "$GATEWAY" --access "$AWS_ACCESS_KEY_ID" --secret "$AWS_SECRET_ACCESS_KEY" "$@"; }
systemctl() {
	if [ $1 = stop ]; then
		kill $(cat pid)
		while [ -e /proc/$(cat pid)/exe ]; do sleep 0.1; done
		return
	fi
	versitygw --port 127.0.0.1:$PORT --quiet posix "$DIR/objects" >>log 2>&1 &
	echo $! >pid
}
`,
		setup:  "mkdir -p backup objects/ids\nsystemctl start versitygw",
		backup: "cp -a objects backup/objects-2026-11-21",
		blocks: []string{"cp -a /backup/objects-2026-11-21"},
		as:     map[string]string{"/var/lib/": "$DIR/", "/backup/": "$DIR/backup/", "17070": "$PORT3"},
	},
	{
		name: "PostgreSQL from a base backup", program: "initdb", pkg: "postgresql", account: "postgres",
		store: "postgres://firn@127.0.0.1:$PORT/firn?sslmode=disable&create=true",
		calls: callsPostgreSQL, setup: setupPostgreSQL,
		backup: `pg_basebackup -D "$DIR/base" -h "$DIR" -U postgres -X fetch -c fast`,
		blocks: []string{"# restore into $PGDATA", "private=$(mktemp -d)                                         #", "pg_is_in_recovery", "export FIRN_STORE=\"postgres:"},
		as:     map[string]string{"# restore into $PGDATA": `cp -a "$DIR/base" "$PGDATA"`},
	},
	{
		name: "PostgreSQL from a dump", program: "initdb", pkg: "postgresql", account: "postgres",
		store: "postgres://firn@127.0.0.1:$PORT/firn?sslmode=disable&create=true",
		calls: callsPostgreSQL, setup: setupPostgreSQL,
		backup: `pg_dumpall -h "$DIR" -U postgres >dump.sql`,
		blocks: []string{"initdb -D", "private=$(mktemp -d)                                         #", "dump.sql postgres", "export FIRN_STORE=\"postgres:"},
		as:     map[string]string{"initdb -D": "initdb -U postgres -A trust --no-sync -D"},
	},
	{
		name: "PostgreSQL to a replica", program: "initdb", pkg: "postgresql", account: "postgres",
		store: "postgres://firn@127.0.0.1:$PORT,127.0.0.1:$PORT2/firn?sslmode=disable&create=true",
		calls: callsPostgreSQL, setup: setupPostgreSQL,
		backup: `pg_basebackup -D "$DIR/replica" -h "$DIR" -U postgres -R -X fetch -c fast`, // it is behind from here on
		fails: `pg_ctl stop -D "$PGDATA" -m immediate
PGDATA="$DIR/replica" PGPORT=$PORT2
systemctl start postgresql`,
		blocks: []string{"pg_ctl stop -D \"$PGDATA\" -m fast\n```", "private=$(mktemp -d)                                         #", "pg_promote", "export FIRN_STORE=\"postgres:"},
		always: true,
	},
	{
		name: "MariaDB from a data directory", program: "mariadbd", pkg: "mariadb-server", account: "mysql",
		store: "mysql://firn@127.0.0.1:$PORT/firn?create=true",
		calls: callsMariaDB, setup: setupMariaDB,
		backup: "systemctl stop mariadb\ncp -a mysql base\nsystemctl start mariadb",
		blocks: []string{"# restore into /var/lib/mysql", "mariadbd --user=mysql ", "export FIRN_STORE=\"mysql:"},
		as:     map[string]string{"# restore into /var/lib/mysql": `cp -a "$DIR/base" "$DIR/mysql"`, "/var/lib/mysql": "$DIR/mysql", "chown mysql": ":"},
	},
	{
		name: "MariaDB from a dump", program: "mariadbd", pkg: "mariadb-server", account: "mysql",
		store: "mysql://firn@127.0.0.1:$PORT/firn?create=true",
		calls: callsMariaDB, setup: setupMariaDB,
		backup: `command mariadb-dump --no-defaults -u root --socket="$DIR/s" --all-databases --single-transaction >dump.sql`,
		blocks: []string{"mariadb-install-db --user=mysql", "mariadbd --user=mysql ", "<dump.sql", "export FIRN_STORE=\"mysql:"},
		as:     map[string]string{"/var/lib/mysql": "$DIR/mysql", "chown mysql": ":"},
	},
	{
		name: "MariaDB to a replica", program: "mariadbd", pkg: "mariadb-server", account: "mysql",
		store: "mysql://firn@127.0.0.1:$PORT/firn?create=true",
		calls: callsMariaDB, setup: setupMariaDB,
		backup: `mariadb --socket="$DIR/s" -e "CREATE USER replica@'127.0.0.1'; GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'"
N=2
configure $PORT2 server-id=2 read-only=1
mariadb-install-db --user=mysql
systemctl start mariadb
mariadb --socket="$DIR/s2" -e "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$PORT, MASTER_USER='replica', MASTER_USE_GTID=slave_pos; START SLAVE"
until mariadb --socket="$DIR/s2" -e 'SELECT k FROM firn.firn_grants' | grep /n/; do sleep 0.2; done
mariadb --socket="$DIR/s2" -e 'STOP SLAVE'`, // it is behind from here on
		fails: `systemctl stop mariadb
N=2`,
		blocks: []string{"systemctl stop mariadb\n```", "mariadbd --user=mysql ", "RESET SLAVE ALL", "export FIRN_STORE=\"mysql:"},
		as:     map[string]string{"chown mysql": ":", "systemctl start mariadb": "configure $PORT server-id=2; systemctl start mariadb"},
	},
	{
		name: "etcd by --force-new-cluster from an old disk", program: "bash", pkg: "bash", account: "root",
		store: "etcd://127.0.0.1:$PORT/firn",
		calls: `etcd() { exec "$ETCD" --log-level error --listen-peer-urls http://127.0.0.1:$PORT2 --initial-advertise-peer-urls http://127.0.0.1:$PORT2 "$@"; }
systemctl() {
	if [ $1 = stop ]; then
		kill $(cat pid)
		while [ -e /proc/$(cat pid)/exe ]; do sleep 0.1; done
		return
	fi
	etcd --name etcd-1 --data-dir "$DIR/etcd" --initial-cluster etcd-1=http://127.0.0.1:$PORT2 \
		--listen-client-urls http://127.0.0.1:$PORT --advertise-client-urls http://127.0.0.1:$PORT >>log 2>&1 &
	echo $! >pid
	until (: </dev/tcp/127.0.0.1/$PORT) 2>/dev/null; do kill -0 $!; sleep 0.1; done # a unit starts others once etcd listens
}
`,
		setup:  "systemctl start etcd",
		backup: "systemctl stop etcd\ncp -a etcd base\nsystemctl start etcd",
		fails:  "systemctl stop etcd\nrm -r etcd\ncp -a base etcd",
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
		t.Run(r.name, func(t *testing.T) {
			if !r.always {
				nettest.Long(t)
			}
			t.Parallel()
			r.run(t, string(page))
		})
	}
}

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
	if strings.HasPrefix(r.store, "etcd") {
		env = append(env, "ETCD="+proc.Built(t, "etcd.sh"))
	}
	if strings.HasPrefix(r.store, "s3") {
		env = append(env, "GATEWAY="+proc.Built(t, "versitygw.sh"))
	}
	var groups []int
	script := func(text string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command("bash", "-c", restorePrelude+r.calls+text)
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
		if strings.Contains(r.calls, "finally") {
			_ = script("finally").Wait()
		}
		for _, pid := range groups {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	})

	do(r.setup)
	url := strings.NewReplacer(fill...).Replace(r.store)
	do(`firn sequencer create restore --window 15s --max-ahead 100ms --layout bits=time:44.node:5.seq:1,unit=1ms,epoch=0 --store '` + url + "'\n")
	url = strings.Replace(url, "create=true", "", 1)
	if r.name == "directory" {
		url += "create=true"
	}
	url = strings.TrimRight(url, "?&") + " --nodes 0..5"

	var all made
	servers := make([]testServer, 4)
	ctx, stop := context.WithCancel(t.Context())
	var takers sync.WaitGroup
	defer takers.Wait()
	defer stop()
	begin := func(i int) {
		servers[i].start(t, url)
		t.Cleanup(func() { servers[i].end(syscall.SIGKILL) })
		takers.Go(func() { all.take(ctx, t, i, &servers[i]) })
		all.await(t, i, &all.n[i], 100)
	}
	begin(0)
	do(r.backup)
	for i := range servers[1:] {
		begin(1 + i)
	}
	again := func() {
		if r.restart { // no server starts without the directory
			next := "next -n 1000 --sequencer restore --nodes 0..5 --store " + strings.Fields(url)[0]
			out, _ := firnCommand(t.Context(), next).Output()
			for line := range strings.Lines(string(out)) {
				if id, err := firn.ParseID(strings.TrimSpace(line)); err == nil {
					all.add(t, 0, id)
				}
			}
			return
		}
		servers[0].end(syscall.SIGKILL)
		servers[0].start(t, url)
		all.await(t, 0, &all.tried[0], 3)
	}

	text := r.fails + "\n"
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
		all.await(t, i, &all.n[i], 100)
	}
	stop()
	takers.Wait()
	t.Logf("report: restore of %s: %d IDs, none twice", r.name, all.Len())
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

// made are IDs, by the server that made them.
type made struct {
	distinct.IDs[firn.ID]
	n     [4]atomic.Int64 // by server
	tried [4]atomic.Int64 // requests, by server
}

// take takes every ID that a server makes, until the context ends.
func (m *made) take(ctx context.Context, t *testing.T, server int, s *testServer) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		var v struct{ IDs []firn.ID }
		resp, err := client.Post(*s.url.Load()+"/v1/sequencers/restore/next?count=50", "", nil)
		if err == nil {
			if resp.StatusCode == http.StatusOK {
				err = json.NewDecoder(resp.Body).Decode(&v)
			} else {
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			_ = resp.Body.Close()
		}
		m.tried[server].Add(1)
		if err != nil || len(v.IDs) == 0 {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		m.add(t, server, v.IDs...)
	}
}

// add notes IDs of a server.
func (m *made) add(t *testing.T, server int, ids ...firn.ID) {
	m.n[server].Add(int64(len(ids)))
	m.Add(t, "server "+strconv.Itoa(server), ids...)
}

// await waits until a server has made or tried so much more.
func (m *made) await(t *testing.T, server int, count *atomic.Int64, more int64) {
	t.Helper()
	want := count.Load() + more
	must.Await(t, func() bool { return count.Load() >= want }, "server %d makes IDs, or answers", server)
}
