package auth

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn/server/internal/access/readfile"
)

// An Entry is an entry of a token file, for display.
type Entry struct {
	Name        string
	Role        Role
	Hashes      []string // of its tokens, the newest last; empty for a certificate
	Certificate string   // a name in the certificate, such as "dns ops.example.com"; "" for tokens
	Sequencers  []string // empty means all
	NoCreate    bool     // it may not create sequencers by using them
	Expires     time.Time
}

// ErrNoEntry is the error for a name that no entry has.
var ErrNoEntry = errors.New("entry not found in the file")

// A RotationError means that an entry already has two tokens.
type RotationError struct{ Name string }

func (e *RotationError) Error() string {
	return fmt.Sprintf("entry %q already has two tokens: remove the old one first", e.Name)
}

// Entries returns the entries of a token file, in the order of the file.
func Entries(data []byte, file string) ([]Entry, error) {
	read, err := read(data, file)
	if err != nil {
		return nil, err
	}
	return entriesOf(read), nil
}

func entriesOf(read []*entry) []Entry {
	all := make([]Entry, len(read))
	for i, e := range read {
		all[i] = Entry{Name: e.Name, Role: e.Role, Sequencers: e.sequencers, NoCreate: e.noCreate, Expires: e.expires}
		for _, sum := range e.sums {
			all[i].Hashes = append(all[i].Hashes, hex.EncodeToString(sum[:]))
		}
		all[i].Certificate = e.certificate()
	}
	return all
}

// certificate returns the name in a certificate, or "".
func (e *entry) certificate() string {
	if e.subject == (subject{}) {
		return ""
	}
	return e.subject.kind + " " + e.subject.name
}

// Add adds an entry, given as text that is indented by two spaces.
func Add(data []byte, file, entry string) ([]byte, error) {
	text := string(data)
	if strings.TrimSpace(text) == "" {
		text = "tokens:\n"
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if old, err := read([]byte(text), file); err == nil && len(old) == 0 {
		text = strings.Replace(text, emptyList, "tokens:", 1)
	}
	text += entry
	if _, err := read([]byte(text), file); err != nil {
		return nil, err
	}
	return []byte(text), nil
}

// emptyList is the list of a file without entries.
const emptyList = "tokens: []"

// Rotate adds the hash of a new token to an entry. The old token remains valid
// until it is removed.
func Rotate(data []byte, file, name, hash string) ([]byte, error) {
	return edit(data, file, name, func(e *entry) error {
		switch {
		case len(e.hashes) == 0:
			return fmt.Errorf("entry %q is for a certificate (%s) and has no token", name, e.certificate())
		case len(e.hashes) >= maxTokens:
			return &RotationError{name}
		}
		old := *e.hashes[0]
		old.LineComment = ""
		e.setHashes(&old, &yaml.Node{Kind: yaml.ScalarNode, Value: hash})
		return nil
	})
}

// RemoveOld removes the token that a rotation has replaced.
func RemoveOld(data []byte, file, name string) ([]byte, error) {
	return edit(data, file, name, func(e *entry) error {
		if len(e.hashes) < maxTokens {
			return fmt.Errorf("entry %q has no old token", name)
		}
		e.setHashes(e.hashes[1])
		return nil
	})
}

// setHashes writes the hashes of an entry.
func (e *entry) setHashes(all ...*yaml.Node) {
	comment := cmp.Or(e.value.LineComment, e.hashes[0].LineComment)
	*e.value = yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: all, LineComment: comment}
}

// Remove removes an entry with its tokens.
func Remove(data []byte, file, name string) ([]byte, error) {
	return edit(data, file, name, func(e *entry) error {
		e.list.Content = slices.DeleteFunc(e.list.Content, func(n *yaml.Node) bool { return n == e.node })
		return nil
	})
}

// edit changes an entry of a file. Comments stay, and blank lines go.
func edit(data []byte, file, name string, change func(*entry) error) ([]byte, error) {
	old, err := read(data, file)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(old, func(e *entry) bool { return e.Name == name })
	if at < 0 {
		return nil, ErrNoEntry
	}
	if err := change(old[at]); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	out := yaml.NewEncoder(&b)
	out.SetIndent(2)
	if err := out.Encode(old[at].file); err != nil {
		return nil, err
	}
	_, err = read(b.Bytes(), file)
	return b.Bytes(), err
}

// EditFile changes a token file in one step: a server that reads it meanwhile
// sees either the old or the new version. The new file has the mode and owner
// of the old one; a missing file is created. Meanwhile the new file is beside
// the old one, as FILE.new, and keeps other calls from changing it: their error
// matches fs.ErrExist.
func EditFile(file string, change func(data []byte) ([]byte, error)) (err error) {
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
		if err := cmp.Or(f.Chmod(old.Mode().Perm()), ownAs(f, old)); err != nil {
			return err
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
