package auth

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn/server/internal/access/readfile"
)

// Errors of a change.
var (
	ErrNoEntry = errors.New("entry not found in the file")
	ErrExists  = errors.New("entry already in the file")
	ErrRotated = errors.New("the entry already has two tokens: remove the old one first")
)

// Entries returns the entries of a token file, in the order of the file, with
// the limits of their roles.
func Entries(data []byte, file string) ([]*Entry, error) {
	doc, err := read(data, file)
	if err != nil {
		return nil, err
	}
	for _, e := range doc.entries {
		e.Quota = e.Quota.or(doc.roles[e.Role])
	}
	return doc.entries, nil
}

// Add adds an entry, also to an empty file.
func Add(data []byte, file string, e *Entry) ([]byte, error) {
	if text := strings.TrimSpace(string(data)); text == "" || text == "tokens:" {
		data = []byte("tokens: []")
	}
	doc, err := read(data, file)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(doc.entries, func(old *Entry) bool { return old.Name == e.Name }) {
		return nil, ErrExists
	}
	n := new(yaml.Node)
	if err := n.Encode(e); err != nil {
		return nil, err
	}
	list := doc.list()
	list.Content = append(list.Content, n)
	if len(list.Content) == 1 {
		list.Style = 0 // not [], which is for a list on one line
	}
	return doc.encode()
}

// Rotate adds the hash of a new token to an entry. The old token remains valid
// until it is removed.
func Rotate(data []byte, file, name, hash string) ([]byte, error) {
	doc, at, err := find(data, file, name)
	if err != nil {
		return nil, err
	}
	switch e := doc.entries[at]; {
	case len(e.SHA256) == 0:
		return nil, fmt.Errorf("entry %q is for a certificate (%s) and has no token", name, e.Certificate())
	case len(e.SHA256) >= maxTokens:
		return nil, ErrRotated
	default:
		return doc.setHashes(at, e.SHA256[0], hash)
	}
}

// RemoveOld removes the token that a rotation has replaced.
func RemoveOld(data []byte, file, name string) ([]byte, error) {
	doc, at, err := find(data, file, name)
	if err != nil {
		return nil, err
	}
	if e := doc.entries[at]; len(e.SHA256) == maxTokens {
		return doc.setHashes(at, e.SHA256[1])
	}
	return nil, fmt.Errorf("entry %q has no old token", name)
}

// Remove removes an entry with its tokens.
func Remove(data []byte, file, name string) ([]byte, error) {
	doc, at, err := find(data, file, name)
	if err != nil {
		return nil, err
	}
	list := doc.list()
	list.Content = slices.Delete(list.Content, at, at+1)
	return doc.encode()
}

// find reads a file, and finds the entry of a name.
func find(data []byte, file, name string) (doc *document, at int, err error) {
	if doc, err = read(data, file); err != nil {
		return nil, 0, err
	}
	if at = slices.IndexFunc(doc.entries, func(e *Entry) bool { return e.Name == name }); at < 0 {
		return nil, 0, ErrNoEntry
	}
	return doc, at, nil
}

// setHashes replaces the hashes of an entry.
func (d *document) setHashes(at int, all ...string) ([]byte, error) {
	value := valueOf(d.list().Content[at], "sha256")
	comment := value.LineComment
	if err := value.Encode(hashes(all)); err != nil {
		return nil, err
	}
	value.Style, value.LineComment = yaml.FlowStyle, comment
	return d.encode()
}

// encode returns the text of a changed file, in which comments stay, and blank
// lines go. It is refused if it is not copied completely; see
// config.CheckWhole.
func (d *document) encode() ([]byte, error) {
	b := bytes.NewBufferString("---\n")
	out := yaml.NewEncoder(b)
	out.SetIndent(2)
	if err := out.Encode(&d.root); err != nil {
		return nil, err
	}
	b.WriteString("...\n")
	_, err := read(b.Bytes(), d.file)
	return b.Bytes(), err
}

// EditFile changes a token file in one step: a server that reads it meanwhile
// sees either the old or the new version. The new file has the mode and owner
// of the old one; a missing file is created. A symbolic link stays, and the
// file that it names is changed. Meanwhile the new file is beside the old one,
// as FILE.new, and keeps other calls from changing it: their error matches
// fs.ErrExist.
func EditFile(file string, change func(data []byte) ([]byte, error)) (err error) {
	for range 40 { // as many as Linux follows
		target, err := os.Readlink(file)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(file), target)
		}
		file = target
	}
	temp := file + ".new"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(temp)
		}
	}()
	var data []byte
	old, err := os.Stat(file)
	if err == nil {
		data, err = readfile.Read(file)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := change(data)
	if err != nil {
		return err
	}
	if old != nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
		if uid, gid, ok := readfile.OwnerOf(old); ok {
			if err := f.Chown(uid, gid); err != nil {
				return err
			}
		}
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := cmp.Or(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(temp, file)
}
