package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"context"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// An entry is a file of an archive.
type entry struct {
	name string // with slashes
	data []byte
	mode int64
}

// name returns the base name of a target's files, such as
// firn_1.2.3_linux_amd64.
func (r *release) name(t target) string {
	return "firn_" + r.number() + "_" + t.os + "_" + t.arch
}

// makeArchives packs the binary of each target with the manual pages and
// completions: a .zip for Windows and a .tar.gz for the rest.
func (r *release) makeArchives(context.Context) error {
	common, err := r.commonEntries()
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		binary := r.binaries[t]
		data, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		name := r.name(t)
		entries := []entry{{path.Join(name, filepath.Base(binary)), data, 0o755}}
		for _, e := range common {
			entries = append(entries, entry{path.Join(name, e.name), e.data, e.mode})
		}
		if t.os == "windows" {
			err = r.writeFile(name+".zip", func(w io.Writer) error { return writeZip(w, entries, r.time) })
		} else {
			err = r.writeFile(name+".tar.gz", func(w io.Writer) error { return writeTarGz(w, entries, r.time) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commonEntries returns the files that all archives contain.
func (r *release) commonEntries() ([]entry, error) {
	var all []entry
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.src, name))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name, data, 0o644})
	}
	for _, name := range slices.Sorted(maps.Keys(r.docs.man)) {
		all = append(all, entry{path.Join("man", "man1", name), r.docs.man[name], 0o644})
	}
	for shell, name := range map[string]string{"bash": "firn.bash", "zsh": "_firn", "fish": "firn.fish", "powershell": "firn.ps1"} {
		all = append(all, entry{path.Join("completions", name), r.docs.completions[shell], 0o644})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return all, nil
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

// writeTarGz writes a .tar.gz in which everything belongs to root.
func writeTarGz(w io.Writer, entries []entry, at time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: at, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(e.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
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
