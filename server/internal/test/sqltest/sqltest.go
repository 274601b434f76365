//go:build unix

// Package sqltest starts real database servers for tests, each on loopback in
// its own directory, and ends them with the test. It skips tests if a server is
// not installed.
package sqltest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// User, Password and Database are the same for every server.
const (
	User     = "firn"
	Password = "secret:/@?"
	Database = "ids"
)

// A Server is a database server that can be killed and restarted. It is not
// safe for concurrent use.
type Server struct {
	// Standby starts a replica, which answers queries and takes no writes. A
	// MariaDB must have been started with ReplicationMariaDB; its replica is
	// then semi-synchronous.
	Standby func() *Server

	// Archive starts pg_receivewal, which stores the log of a PostgreSQL and
	// confirms it like a standby, and ends it with the test.
	Archive func()

	t       testing.TB
	scheme  string
	address string
	start   func() *exec.Cmd
	sql     []string // the command that runs SQL from its input as the superuser
	query   []string // the same, and prints rows
	process *proc.Process
}

// URL returns the URL of a store in it, with parameters such as "create=true".
func (s *Server) URL(parameters ...string) string {
	u := url.URL{Scheme: s.scheme, User: url.UserPassword(User, Password), Host: s.address, Path: Database,
		RawQuery: strings.Join(parameters, "&")}
	return u.String()
}

// Address returns HOST:PORT.
func (s *Server) Address() string { return s.address }

// Kill kills all its processes with SIGKILL.
func (s *Server) Kill() {
	select {
	case <-s.process.Ended:
		return
	default:
	}
	for _, pid := range s.stopped() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-s.process.Ended
}

// Stop pauses all its processes, and Continue resumes them.
func (s *Server) Stop() {
	for _, pid := range s.stopped() {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
}

// Continue resumes the server after Stop.
func (s *Server) Continue() {
	for _, pid := range s.stopped() {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// stopped pauses the server's first process, so that it neither starts another
// nor reaps one that has ended, whose PID might then be reused. It returns all
// processes of the server, that one last. PostgreSQL gives each of its
// processes its own session, so a signal to the group would not reach them.
func (s *Server) stopped() []int {
	first := s.process.PID()
	_ = syscall.Kill(first, syscall.SIGSTOP)
	var all []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // empty outside Linux
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// PID (NAME) STATE PARENT …; a name may contain brackets and spaces.
		_, after, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
		if f := strings.Fields(after); len(f) > 1 && f[1] == strconv.Itoa(first) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			all = append(all, pid)
		}
	}
	return append(all, first)
}

// Exec runs statements as the superuser.
func (s *Server) Exec(sql string) {
	s.t.Helper()
	run(s.t, "", nil, sql, s.sql[0], s.sql[1:]...)
}

// Query runs statements as the superuser and returns the rows: one line each,
// with tabs or bars between the columns.
func (s *Server) Query(sql string) string {
	s.t.Helper()
	return strings.TrimSpace(run(s.t, "", nil, sql, s.query[0], s.query[1:]...))
}

// Start starts the server again after Kill. Wait waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.process = proc.StartCommand(s.t, s.start())
}

// Wait waits until the server answers.
func (s *Server) Wait() {
	s.t.Helper()
	var err error
	if !s.process.Await(func() bool {
		cmd := exec.Command(s.sql[0], s.sql[1:]...)
		cmd.Stdin = strings.NewReader("SELECT 1;")
		err = cmd.Run()
		return err == nil
	}) {
		s.t.Fatalf("%s does not answer: %v: %s", s.scheme, err, s.process.Log())
	}
}

// Find returns the path of a program, from PATH or from Debian's directories
// for servers.
func Find(t testing.TB, name, pkg string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a database server")
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	for _, path := range append(found, "/usr/sbin/"+name) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skipf("SKIPPED: %s is not installed (Debian: apt-get install %s)", name, pkg)
	return ""
}

// Directory makes a directory for a server, owned by another user if necessary:
// the servers refuse to run as root.
func Directory(t testing.TB, prefix string, account string) (dir string, as *syscall.SysProcAttr) {
	t.Helper()
	dir, err := os.MkdirTemp("", "firn-"+prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as = new(syscall.SysProcAttr)
	if os.Geteuid() != 0 {
		return dir, as
	}
	u, err := user.Lookup(account)
	if err != nil {
		t.Skipf("SKIPPED: %s does not run as root, and user %s does not exist", prefix, account)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	must.Do(t, os.Chown(dir, uid, gid))
	as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return dir, as
}

// run runs a program to its end and returns its output.
func run(t testing.TB, dir string, as *syscall.SysProcAttr, stdin string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), must.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Stdin = dir, as, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", filepath.Base(name), err, out)
	}
	return string(out)
}

// PostgreSQL starts a PostgreSQL server, with additional settings such as
// "fsync=off".
func PostgreSQL(t testing.TB, settings ...string) *Server {
	t.Helper()
	initdb := Find(t, "initdb", "postgresql")
	Find(t, "postgres", "postgresql")
	Find(t, "psql", "postgresql-client")
	dir, as := Directory(t, "postgres", "postgres")
	run(t, dir, as, "", initdb, "-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust", "--no-sync",
		"--locale=C", "--encoding=UTF8")
	// Only the superuser can use the socket; other users need a password.
	access := "local all,replication postgres trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "data", "pg_hba.conf"), []byte(access), 0o600))
	s := postgreSQL(t, dir, as, settings)
	s.Exec(fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s';\nCREATE DATABASE %s OWNER %s;\n", User, Password, Database,
		User))
	return s
}

// postgreSQL starts a server over the directory data in dir.
func postgreSQL(t testing.TB, dir string, as *syscall.SysProcAttr, settings []string) *Server {
	t.Helper()
	postgres, psql := Find(t, "postgres", "postgresql"), Find(t, "psql", "postgresql-client")
	s := &Server{t: t, scheme: "postgres"}
	s.address = nettest.FreeAddress(t)
	host, port, _ := net.SplitHostPort(s.address)
	s.query = []string{psql, "-q", "-At", "-h", dir, "-p", port, "-U", "postgres", "-v", "ON_ERROR_STOP=1"}
	s.sql = append(slices.Clip(s.query), "-o", os.DevNull)
	s.start = func() *exec.Cmd {
		args := []string{"-D", filepath.Join(dir, "data"), "-p", port, "-c", "listen_addresses=" + host, "-c",
			"unix_socket_directories=" + dir}
		for _, setting := range settings {
			args = append(args, "-c", setting)
		}
		cmd := exec.Command(postgres, args...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.Credential}
		return cmd
	}
	s.Standby = func() *Server {
		t.Helper()
		backup := Find(t, "pg_basebackup", "postgresql-client")
		replica, as := Directory(t, "postgres", "postgres")
		run(t, replica, as, "", backup, "-D", filepath.Join(replica, "data"), "-h", dir,
			"-p", port, "-U", "postgres", "-R", "-X", "stream", "-c", "fast", "--no-sync")
		return postgreSQL(t, replica, as, settings)
	}
	s.Archive = func() {
		t.Helper()
		to, as := Directory(t, "archive", "postgres")
		cmd := exec.Command(Find(t, "pg_receivewal", "postgresql-client"), "-D", to, "-h", dir, "-p", port, "-U",
			"postgres", "--synchronous")
		cmd.Dir, cmd.SysProcAttr = to, as
		t.Cleanup(proc.StartCommand(t, cmd).Kill)
	}
	s.Start()
	t.Cleanup(s.Kill)
	s.Wait()
	return s
}

// ReplicationMariaDB returns the settings of a MariaDB with semi-synchronous
// standbys, which it gives up on after the timeout in milliseconds.
func ReplicationMariaDB(timeout int) []string {
	return []string{"server-id=1", "log-bin=log", "sync-binlog=1", "rpl-semi-sync-master-enabled=1",
		"rpl-semi-sync-master-wait-no-slave=1",
		fmt.Sprintf("rpl-semi-sync-master-timeout=%d", timeout)}
}

// MariaDB starts a MariaDB server, with additional settings such as
// "read-only=1".
func MariaDB(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := mariaDB(t, settings)
	s.Exec(fmt.Sprintf("CREATE DATABASE %[1]s; CREATE USER %[2]s@'127.0.0.1' IDENTIFIED BY '%[3]s'; GRANT ALL ON %[1]s.* "+
		"TO %[2]s@'127.0.0.1';\n",
		Database, User, Password))
	s.Standby = func() *Server {
		t.Helper()
		if !slices.Contains(settings, "log-bin=log") {
			t.Fatal("sqltest: a MariaDB with standbys must be started with ReplicationMariaDB")
		}
		s.Exec("CREATE USER IF NOT EXISTS replica@'127.0.0.1' IDENTIFIED BY 'replica'; GRANT REPLICATION SLAVE ON *.* TO " +
			"replica@'127.0.0.1';\n")
		host, port, _ := net.SplitHostPort(s.address)
		// The primary's log has everything that it has ever executed.
		replica := mariaDB(t, []string{"server-id=2", "log-bin=log", "log-slave-updates=1",
			"sync-binlog=1", "read-only=1", "rpl-semi-sync-slave-enabled=1"})
		replica.Exec("CHANGE MASTER TO MASTER_HOST='" + host + "', MASTER_PORT=" + port +
			", MASTER_USER='replica', MASTER_PASSWORD='replica', " +
			"MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1; START SLAVE;\n")
		return replica
	}
	return s
}

// mariaDB starts a server that has only its own users and databases.
func mariaDB(t testing.TB, settings []string) *Server {
	t.Helper()
	install, server := Find(t, "mariadb-install-db", "mariadb-server"), Find(t, "mariadbd", "mariadb-server")
	client := Find(t, "mariadb", "mariadb-client")
	dir, as := Directory(t, "mariadb", "mysql")
	data := filepath.Join(dir, "data")
	// Each server has its own directory for temporary files: servers that start at
	// the same time may use the same names, and delete each other's files.
	run(t, dir, as, "", install, "--no-defaults", "--datadir="+data, "--tmpdir="+dir,
		"--auth-root-authentication-method=normal", "--skip-test-db")
	s := &Server{t: t, scheme: "mysql"}
	s.address = nettest.FreeAddress(t)
	host, port, _ := net.SplitHostPort(s.address)
	socket := filepath.Join(dir, "s")
	s.start = func() *exec.Cmd {
		args := []string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + dir, "--bind-address=" + host, "--port=" +
			port, "--socket=" + socket,
			"--pid-file=" + filepath.Join(dir, "pid"), "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M"}
		for _, setting := range settings {
			args = append(args, "--"+setting)
		}
		cmd := exec.Command(server, args...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.Credential}
		return cmd
	}
	s.sql = []string{client, "--no-defaults", "-S", socket, "-u", "root"}
	s.query = append(slices.Clip(s.sql), "-N", "-B")
	s.Start()
	t.Cleanup(s.Kill)
	s.Wait()
	return s
}

// Kinds returns what starts each kind of server, by URL scheme.
func Kinds() map[string]func(testing.TB, ...string) *Server {
	return map[string]func(testing.TB, ...string) *Server{"postgres": PostgreSQL, "mysql": MariaDB}
}
