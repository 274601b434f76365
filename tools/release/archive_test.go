package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// untar unpacks a .tar into a separate directory, and returns its headers.
func untar(t *testing.T, from io.Reader, to string) (all []*tar.Header) {
	t.Helper()
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsLocal(h.Name) {
			t.Fatalf("the archive has the name %q", h.Name)
		}
		all = append(all, h)
		name := filepath.Join(to, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			mustDo(t, os.MkdirAll(name, 0o755))
			continue
		}
		data := must(io.ReadAll(r))(t)
		write(t, name, data, h.FileInfo().Mode())
	}
}

// untarGz unpacks a .tar.gz of the release, and returns where it is and its
// headers.
func (r *release) untarGz(t *testing.T, name string) (dir string, all []*tar.Header) {
	t.Helper()
	z := must(gzip.NewReader(bytes.NewReader(read(t, filepath.Join(r.out, name)))))(t)
	dir = t.TempDir()
	return dir, untar(t, z, dir)
}

// TestArchive unpacks the archive and uses its contents.
func TestArchive(t *testing.T) {
	r := theRelease(t)
	dir, headers := r.untarGz(t, r.name(host())+".tar.gz")
	for _, h := range headers {
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(r.time) {
			t.Errorf("%s belongs to %d:%d and is of %v, want root and the time of the commit, %v", h.Name, h.Uid, h.Gid, h.ModTime, r.time)
		}
	}
	dir = filepath.Join(dir, r.name(host()))
	firn := filepath.Join(dir, "firn")
	if got := mustRun(t, dir, nil, firn, "version"); !strings.HasPrefix(got, "firn "+testVersion+" ") {
		t.Errorf("firn version prints %q, want version %s", got, testVersion)
	}
	for _, name := range []string{
		"LICENSE", "README.md", "CHANGELOG.md", "man/man1/firn.1", "man/man1/firn-serve.1",
		"completions/firn.bash", "completions/_firn", "completions/firn.fish", "completions/firn.ps1",
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("the archive has no %s, or it is empty: %v", name, err)
		}
	}
	if page := string(read(t, filepath.Join(dir, "man", "man1", "firn-serve.1"))); !strings.Contains(page, testVersion) {
		t.Errorf("the manual page does not name the version %s", testVersion)
	}
	if _, err := exec.LookPath("bash"); err == nil {
		mustRun(t, dir, nil, "bash", "-n", "completions/firn.bash")
	}

	// Symbols are for debugging, which needs the sources anyway.
	info := must(buildinfo.ReadFile(firn))(t)
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["-trimpath"] != "true" || settings["CGO_ENABLED"] != "0" || settings["vcs.revision"] != r.commit || settings["vcs.modified"] != "false" {
		t.Errorf("the binary was built with %v, want -trimpath, no cgo and commit %s", settings, r.commit)
	}
	// See docs/decisions/templates.md.
	if bytes.Contains(read(t, firn), []byte("text/template.(*state).evalField")) {
		t.Error("the binary has text/template, so the linker keeps the exported methods of all types")
	}
	for _, place := range []string{testDir, mustRun(t, dir, nil, "go", "env", "GOROOT")} {
		if place != "" && bytes.Contains(read(t, firn), []byte(place+"/")) {
			t.Errorf("the binary has the path %s of the machine that built it", place)
		}
	}
}

// TestDeploy: the files for Kubernetes and Compose name the version, in the
// archive and in the commit of the release.
func TestDeploy(t *testing.T) {
	r := theRelease(t)
	chart, _ := r.untarGz(t, "firn-0.99.0.tgz")
	rest, _ := r.untarGz(t, "firn_0.99.0_deploy.tar.gz")
	for name, want := range map[string]string{
		chart + "/firn/Chart.yaml":                          "\nversion: 0.99.0\nappVersion: \"0.99.0\"\n",
		rest + "/firn_0.99.0_deploy/kubernetes/firn.yaml":   " image: " + imageName + ":0.99.0\n",
		rest + "/firn_0.99.0_deploy/compose/compose.yaml":   " image: " + imageName + ":0.99.0\n",
		rest + "/firn_0.99.0_deploy/prometheus/alerts.yaml": "groups:",
		r.src() + "/deploy/kubernetes/firn.yaml":            " image: " + imageName + ":0.99.0\n",
	} {
		if text := string(read(t, name)); !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", name, want, text)
		}
	}
}

// TestZip: the archive for Windows is readable, and its program can run.
func TestZip(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	var b bytes.Buffer
	mustDo(t, writeZip(&b, []entry{file("firn/firn.exe", []byte("a program"), 0o755)}, at))
	z := must(zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len())))(t)
	data, err := fs.ReadFile(z, "firn/firn.exe")
	if f := z.File[0]; err != nil || string(data) != "a program" || f.Mode().Perm() != 0o755 || !f.Modified.Equal(at) {
		t.Errorf("the file is %q, %v, with mode %v and of %v", data, err, f.Mode(), f.Modified)
	}
}

// TestSBOM: the bill of materials contains exactly the modules in the binary.
func TestSBOM(t *testing.T) {
	r := theRelease(t)
	var bom struct {
		BomFormat string
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version string }
	}
	mustDo(t, json.Unmarshal(read(t, filepath.Join(r.out, r.name(host())+".cdx.json")), &bom))
	if bom.BomFormat != "CycloneDX" || bom.Metadata.Component.Name != "firn" || bom.Metadata.Component.Version != testVersion {
		t.Errorf("the bill of materials is of %+v in %q, want firn %s in CycloneDX", bom.Metadata.Component, bom.BomFormat, testVersion)
	}
	dir, _ := r.untarGz(t, r.name(host())+".tar.gz")
	info := must(buildinfo.ReadFile(filepath.Join(dir, r.name(host()), "firn")))(t)
	var got, want []string
	for _, c := range bom.Components {
		got = append(got, c.Name+" "+c.Version)
	}
	for _, dep := range info.Deps {
		want = append(want, dep.Path+" "+dep.Version)
	}
	if want = append([]string{"std " + info.GoVersion}, want...); !slices.Equal(got, want) || !slices.Contains(got, "github.com/firnid/firn "+testVersion) {
		t.Errorf("the bill of materials has\n%s\nwant what the binary has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
