package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// makePackages makes a .deb and a .rpm for each Linux target. deploy/package
// contains their other files besides the binary.
func (r *release) makePackages(context.Context) error {
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.makePackage(t, format); err != nil {
				return fmt.Errorf("%s for %s: %w", format, t, err)
			}
		}
	}
	return nil
}

// makePackage makes one package.
func (r *release) makePackage(t target, format string) error {
	contents, err := r.contents(t, format)
	if err != nil {
		return err
	}
	script := func(name string) string { return filepath.Join(r.src, "deploy", "package", name+".sh") }
	info := nfpm.WithDefaults(&nfpm.Info{
		Name:       "firn",
		Arch:       t.arch,
		Platform:   "linux",
		Version:    r.version,
		Section:    "net",
		Priority:   "optional",
		Maintainer: "The Firn authors <firnid@users.noreply.github.com>",
		Vendor:     "Firn",
		Homepage:   "https://github.com/firnid/firn",
		License:    "Apache-2.0",
		Description: "Unique, time-ordered IDs for distributed systems\n" +
			"A server that hands out IDs over HTTP, gRPC and the protocol of Redis,\n" +
			"and a command that makes, reads and explains IDs.",
		MTime: r.time,
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts: nfpm.Scripts{
				PostInstall: script("postinstall"),
				PreRemove:   script("preremove"),
				PostRemove:  script("postremove"),
			},
			Deb: nfpm.Deb{Compression: "zstd"}, // Debian 12, Ubuntu 18.10 and later can read it
			RPM: nfpm.RPM{Compression: "zstd", Summary: "Unique, time-ordered IDs for distributed systems", BuildHost: "localhost"},
		},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return r.writeFile(packager.ConventionalFileName(info), func(w io.Writer) error { return packager.Package(info, w) })
}

// contents returns the files of a package. /var/lib/firn is not among them: a
// package manager would remove it.
func (r *release) contents(t target, format string) (files.Contents, error) {
	var all files.Contents
	add := func(kind, source, to string, mode os.FileMode) {
		all = append(all, &files.Content{Source: source, Destination: to, Type: kind,
			FileInfo: &files.ContentFileInfo{Mode: mode, Owner: "root", Group: "root", MTime: r.time}})
	}
	from := func(name string) string { return filepath.Join(r.src, filepath.FromSlash(name)) }
	add("", r.binaries[t], "/usr/bin/firn", 0o755)
	add("", from("deploy/systemd/firn.service"), "/usr/lib/systemd/system/firn.service", 0o644)
	add("", from("deploy/package/sysusers.conf"), "/usr/lib/sysusers.d/firn.conf", 0o644)
	add("", from("deploy/package/tmpfiles.conf"), "/usr/lib/tmpfiles.d/firn.conf", 0o644)
	add(files.TypeConfigNoReplace, from("deploy/package/firn.yaml"), "/etc/firn/firn.yaml", 0o644)
	add("", from("README.md"), "/usr/share/doc/firn/README.md", 0o644)
	if format == "deb" {
		add("", from("LICENSE"), "/usr/share/doc/firn/copyright", 0o644)
	} else {
		add("", from("LICENSE"), "/usr/share/licenses/firn/LICENSE", 0o644)
	}

	// Generated contents must be read from a file.
	made := map[string][]byte{
		"/usr/share/bash-completion/completions/firn":       r.docs.completions["bash"],
		"/usr/share/fish/vendor_completions.d/firn.fish":    r.docs.completions["fish"],
		"/usr/share/zsh/" + zshDirectory[format] + "/_firn": r.docs.completions["zsh"],
	}
	changes, err := os.ReadFile(from("CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	compressed := map[string][]byte{"/usr/share/doc/firn/CHANGELOG.md.gz": changes}
	for name, page := range r.docs.man {
		compressed["/usr/share/man/man1/"+name+".gz"] = page
	}
	for to, data := range compressed {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		if _, err := z.Write(data); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		made[to] = b.Bytes()
	}
	for to, data := range made {
		source := filepath.Join(r.work, "package", format, filepath.FromSlash(to))
		if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(source, data, 0o644); err != nil {
			return nil, err
		}
		add("", source, path.Clean(to), 0o644)
	}
	slices.SortFunc(all, func(a, b *files.Content) int { return cmp.Compare(a.Destination, b.Destination) })
	return all, nil
}

// zshDirectory is the directory for zsh completions of packages in a
// distribution.
var zshDirectory = map[string]string{"deb": "vendor-completions", "rpm": "site-functions"}
