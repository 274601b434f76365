package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// An entry is a file of an archive, or a directory if its name ends in a slash.
type entry struct {
	name  string // with slashes
	data  []byte
	mode  int64
	owner int // user and group; 0 is root
}

// file returns an entry for a file.
func file(name string, data []byte, mode int64) entry {
	return entry{name: name, data: data, mode: mode}
}

// makeArchives packs the binary of each target with the manual pages and
// completions: a .zip for Windows and a .tar.gz for the rest.
func (r *release) makeArchives() error {
	for _, t := range r.targets {
		data, err := os.ReadFile(r.binary(t))
		if err != nil {
			return err
		}
		name := r.name(t)
		common, err := entriesBelow(filepath.Join(r.work(), "docs"), name)
		if err != nil {
			return err
		}
		entries := append([]entry{file(path.Join(name, filepath.Base(r.binary(t))), data, 0o755)}, common...)
		suffix := ".tar.gz"
		if t.os == "windows" {
			suffix = ".zip"
		}
		if err := r.writeArchive(name+suffix, entries); err != nil {
			return err
		}
	}
	return nil
}

// makeDeploy packs the Helm chart as helm package does, and the other files in
// deploy/ into one archive.
func (r *release) makeDeploy() error {
	deploy := filepath.Join(r.src(), "deploy")
	chart, err := entriesBelow(filepath.Join(deploy, "helm", "firn"), "firn")
	if err != nil {
		return err
	}
	var rest []entry
	name := "firn_" + r.number() + "_deploy"
	for _, dir := range []string{"compose", "kubernetes", "prometheus"} {
		entries, err := entriesBelow(filepath.Join(deploy, dir), path.Join(name, dir))
		if err != nil {
			return err
		}
		rest = append(rest, entries...)
	}
	if err := r.writeArchive("firn-"+r.number()+".tgz", chart); err != nil {
		return err
	}
	return r.writeArchive(name+".tar.gz", rest)
}

// writeArchive writes a .zip, or a .tar.gz with any other name.
func (r *release) writeArchive(name string, entries []entry) error {
	return r.writeFile(name, func(w io.Writer) error {
		if strings.HasSuffix(name, ".zip") {
			return writeZip(w, entries, r.time)
		}
		z := gzip.NewWriter(w)
		if err := writeTar(z, entries, r.time); err != nil {
			return err
		}
		return z.Close()
	})
}

// writeFile writes a file of the release.
func (r *release) writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// writeTar writes a .tar.
func writeTar(w io.Writer, entries []entry, at time.Time) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data)), Uid: e.owner,
			Gid: e.owner, ModTime: at, Format: tar.FormatPAX,
		}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(e.data); err != nil {
			return err
		}
	}
	return t.Close()
}

// entriesBelow returns the files below a directory, as entries below another
// one.
func entriesBelow(dir, as string) (all []entry, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		all = append(all, file(path.Join(as, name), data, 0o644))
		return err
	})
	return all, err
}

// writeZip writes a .zip.
func writeZip(w io.Writer, entries []entry, at time.Time) error {
	z := zip.NewWriter(w)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(e.mode))
		f, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.data); err != nil {
			return err
		}
	}
	return z.Close()
}
