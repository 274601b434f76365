package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// need skips a test where a program is missing, or the user is not root.
func need(t *testing.T, program, of string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not here (of the package %s)", program, of)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root installs packages")
	}
}

// packageFile returns the package of a format for the system on which the test
// runs.
func packageFile(t *testing.T, r *release, format string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.out, "*."+format))
	if err != nil || len(found) != 1 {
		t.Fatalf("the release has the packages %v, want one .%s: %v", found, format, err)
	}
	return found[0]
}

// sbin is the path with the programs that scripts of packages run.
var sbin = "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"

// A dpkg is a root directory with its own dpkg.
type dpkg struct {
	t    *testing.T
	root string
}

func newDpkg(t *testing.T) *dpkg {
	d := &dpkg{t, t.TempDir()}
	for name, text := range map[string]string{
		"var/lib/dpkg/status": "", "var/lib/dpkg/available": "", "var/lib/dpkg/info/format": "1\n", "var/lib/dpkg/updates/tmp.i": "", "var/lib/dpkg/triggers/File": "",
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n",
	} {
		write(t, d.path(name), []byte(text), 0o644)
	}
	return d
}

// run runs dpkg. Scripts of packages get the root in DPKG_ROOT, as they do when
// a system image is made without running its own programs.
func (d *dpkg) run(args ...string) string {
	d.t.Helper()
	args = append([]string{"--root=" + d.root, "--force-script-chrootless", "--force-not-root", "--log=/dev/null", "--no-triggers"}, args...)
	return mustRun(d.t, "/", []string{sbin, "LC_ALL=C"}, "dpkg", args...)
}

func (d *dpkg) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// ids returns the user ID and the group ID of the user firn.
func (d *dpkg) ids() (uid, gid uint32) {
	d.t.Helper()
	_, line, _ := strings.Cut(string(read(d.t, d.path("etc/passwd"))), "\nfirn:x:")
	if _, err := fmt.Sscanf(line, "%d:%d:", &uid, &gid); err != nil {
		d.t.Fatalf("the package made no user firn: %v", err)
	}
	return uid, gid
}

// serve runs the ExecStart of the unit as its user, inside the root, and takes an
// ID from it.
func (d *dpkg) serve(address string) (id string) {
	d.t.Helper()
	unit := string(read(d.t, d.path("usr/lib/systemd/system/firn.service")))
	_, line, ok := strings.Cut(unit, "\nExecStart=")
	line, _, _ = strings.Cut(line, "\n")
	if !ok || !strings.Contains(unit, "\nUser=firn\n") {
		d.t.Fatalf("the unit has no ExecStart, or another user than firn:\n%s", unit)
	}
	uid, gid := d.ids()
	cmd := chrooted(d.t.Context(), d.t, d.root, uid, gid, strings.Fields(line), "FIRN_LISTEN="+address)
	cmd.SysProcAttr.Credential.Groups = []uint32{gid}
	s := start(d.t, address, cmd)
	id = s.take("orders")[0]
	s.stop()
	return id
}

// marks returns the files of the store.
func (d *dpkg) marks() []string {
	d.t.Helper()
	return strings.Fields(mustRun(d.t, d.root, nil, "find", "var/lib/firn", "-type", "f"))
}

// TestDeb installs the .deb, runs its service, removes and purges it, and
// installs it again: the store must have stayed, or IDs would repeat.
func TestDeb(t *testing.T) {
	need(t, "dpkg", "dpkg")
	r := theRelease(t)
	deb := packageFile(t, r, "deb")
	d := newDpkg(t)
	if said := d.run("--install", deb); !strings.Contains(said, "systemctl enable --now firn") {
		t.Errorf("the installation does not say how to start the service:\n%s", said)
	}
	uid, gid := d.ids()
	info := must(os.Stat(d.path("var/lib/firn")))(t)
	if st := info.Sys().(*syscall.Stat_t); st.Uid != uid || st.Gid != gid || info.Mode().Perm() != 0o770 || info.Mode()&fs.ModeSetgid == 0 {
		t.Errorf("/var/lib/firn is of %d:%d with mode %v, want the user firn (%d:%d) and 2770", st.Uid, st.Gid, info.Mode(), uid, gid)
	}
	for _, name := range []string{"usr/bin/firn", "usr/share/man/man1/firn-serve.1.gz", "usr/share/bash-completion/completions/firn", "usr/share/zsh/vendor-completions/_firn", "usr/share/doc/firn/copyright"} {
		if _, err := os.Stat(d.path(name)); err != nil {
			t.Errorf("the package has no /%s: %v", name, err)
		}
	}
	mustRun(t, t.TempDir(), nil, d.path("usr/bin/firn"), "config", "check", d.path("etc/firn/firn.yaml"))
	address := freeAddress(t)
	first := d.serve(address)

	// A changed configuration is kept across an upgrade and a removal.
	changed := append(read(t, d.path("etc/firn/firn.yaml")), "\n# changed\n"...)
	write(t, d.path("etc/firn/firn.yaml"), changed, 0o644)
	before := d.marks()
	d.run("--install", deb)
	said := d.run("--remove", "firn")
	if !strings.Contains(said, "kept") || !strings.Contains(said, "/var/lib/firn") || !strings.Contains(said, "repeat IDs") {
		t.Errorf("the removal does not say that the store stays, and why:\n%s", said)
	}
	if _, err := os.Stat(d.path("usr/bin/firn")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the removal left /usr/bin/firn: %v", err)
	}
	if got := read(t, d.path("etc/firn/firn.yaml")); !bytes.Equal(got, changed) {
		t.Errorf("the changed configuration is now\n%s", got)
	}
	said = d.run("--purge", "firn")
	if !strings.Contains(said, "kept") || !strings.Contains(said, "/var/lib/firn") {
		t.Errorf("the purge does not say that the store stays:\n%s", said)
	}
	if _, err := os.Stat(d.path("etc/firn/firn.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the purge left the configuration: %v", err)
	}
	if after := d.marks(); len(before) == 0 || !slices.Equal(before, after) {
		t.Errorf("the store had the files %v, and has %v after a purge", before, after)
	}
	d.run("--install", deb)
	if second := d.serve(address); len(second) < len(first) || len(second) == len(first) && second <= first {
		t.Errorf("the first ID is %s, and after a purge and a new installation %s: want a larger one", first, second)
	}
	t.Log("report: the .deb was installed, run, upgraded, removed, purged and installed again")
}

// TestUnit lets systemd verify the unit in its installed form.
func TestUnit(t *testing.T) {
	need(t, "systemd-analyze", "systemd")
	need(t, "dpkg", "dpkg")
	r := theRelease(t)
	d := newDpkg(t)
	d.run("--install", packageFile(t, r, "deb"))
	// Units of the system that this one names.
	for _, unit := range []string{"network-online.target", "time-sync.target", "multi-user.target", "sysinit.target", "basic.target", "shutdown.target"} {
		write(t, d.path("usr/lib/systemd/system/"+unit), []byte("[Unit]\nDescription="+unit+"\n"), 0o644)
	}
	write(t, d.path("bin/kill"), []byte("#!/bin/sh\n"), 0o755) // for ExecReload
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", "--root="+d.root, "firn.service")
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out := mustRun(t, t.TempDir(), []string{"SYSTEMD_COLORS=0", "LC_ALL=C"}, "systemd-analyze", "security", "--offline=true", "--root="+d.root, "--threshold=25", "firn.service")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	t.Logf("report: the unit was verified; %s", strings.TrimSpace(lines[len(lines)-1]))
}

// TestRPM installs and removes the .rpm with rpm. Its scripts run outside the
// root, where they find their programs.
func TestRPM(t *testing.T) {
	need(t, "rpm", "rpm")
	r := theRelease(t)
	rpm := packageFile(t, r, "rpm")
	root := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		args = append([]string{"--root", root}, args...)
		return mustRun(t, "/", []string{"LC_ALL=C"}, "rpm", args...)
	}
	mustRun(t, "/", nil, "rpm", "--root", root, "--initdb")
	run("--install", "--noscripts", "--nosignature", "--nodeps", rpm)
	list := run("--query", "--list", "firn")
	for _, name := range []string{"/usr/bin/firn", "/etc/firn/firn.yaml", "/usr/lib/systemd/system/firn.service", "/usr/lib/sysusers.d/firn.conf", "/usr/share/zsh/site-functions/_firn", "/usr/share/licenses/firn/LICENSE"} {
		if !slices.Contains(strings.Fields(list), name) {
			t.Errorf("the package has no %s:\n%s", name, list)
		}
	}
	if strings.Contains(list, "/var/lib/firn") {
		t.Error("the package owns /var/lib/firn: rpm would remove it")
	}
	if got := run("--query", "--configfiles", "firn"); got != "/etc/firn/firn.yaml" {
		t.Errorf("the configuration files are %q", got)
	}
	if got := mustRun(t, root, nil, filepath.Join(root, "usr/bin/firn"), "version"); !strings.HasPrefix(got, "firn "+testVersion) {
		t.Errorf("the firn of the package prints %q", got)
	}
	scripts := run("--query", "--scripts", "firn")
	for _, name := range []string{"postinstall", "preremove", "postremove"} {
		text := string(read(t, filepath.Join(r.src(), "deploy", "package", name+".sh")))
		if !strings.Contains(scripts, strings.TrimSpace(text)) {
			t.Errorf("the scripts of the package are not those of deploy/package:\n%s", scripts)
		}
	}
	run("--erase", "--noscripts", "firn")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/firn")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the removal left /usr/bin/firn: %v", err)
	}
	t.Log("report: the .rpm was installed and removed")
}

// TestScripts runs the scripts with the arguments that rpm gives them.
func TestScripts(t *testing.T) {
	need(t, "sh", "dash")
	d := newDpkg(t)
	dir := filepath.Join(repository(t), "deploy", "package")
	write(t, d.path("usr/lib/sysusers.d/firn.conf"), read(t, filepath.Join(dir, "sysusers.conf")), 0o644)
	for _, step := range []struct {
		script string
		left   int // versions of the package
		want   string
	}{
		{"postinstall", 1, "systemctl enable"},
		// An upgrade: the new version is installed before the old one is removed.
		{"postinstall", 2, ""},
		{"preremove", 1, ""},
		{"postremove", 1, ""},
		{"preremove", 0, ""},
		{"postremove", 0, "kept"},
	} {
		said := mustRun(t, d.root, []string{"DPKG_ROOT=" + d.root, sbin}, "sh", filepath.Join(dir, step.script+".sh"), fmt.Sprint(step.left))
		if !strings.Contains(said, step.want) || step.want == "" && said != "" {
			t.Errorf("%s %d says %q, want %q", step.script, step.left, said, step.want)
		}
	}
	if _, err := os.Stat(d.path("var/lib/firn")); err != nil {
		t.Errorf("the scripts removed the store: %v", err)
	}
}
