package auth

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
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

// Errors of edits.
var (
	ErrNoEntry = errors.New("entry not found in the file")
	errByHand  = errors.New("the entry shares its lines with something else: edit the file by hand")
)

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
		if e.subject != (subject{}) {
			all[i].Certificate = e.subject.kind + " " + e.subject.name
		}
	}
	return all
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
	return edit(data, file, name, func(e *entry, want *Entry, lines []string) ([]string, error) {
		switch {
		case len(e.hashes) == 0:
			return nil, fmt.Errorf("entry %q is for a certificate (%s) and has no token", name, want.Certificate)
		case len(e.hashes) >= maxTokens:
			return nil, &RotationError{name}
		}
		want.Hashes = append(want.Hashes, hash)
		last := e.hashes[0]
		i, begin, end := span(last, lines)
		switch line := lines[i]; {
		case e.value.Kind == yaml.ScalarNode:
			lines[i] = line[:begin] + "[" + line[begin:end] + ", " + hash + "]" + line[end:]
		case e.value.Style&yaml.FlowStyle != 0:
			lines[i] = line[:end] + ", " + hash + line[end:]
		default:
			lines = slices.Insert(lines, i+1, line[:begin]+hash+"\n")
		}
		return lines, nil
	})
}

// RemoveOld removes the token that a rotation has replaced.
func RemoveOld(data []byte, file, name string) ([]byte, error) {
	return edit(data, file, name, func(e *entry, want *Entry, lines []string) ([]string, error) {
		if len(e.hashes) < maxTokens {
			return nil, fmt.Errorf("entry %q has no old token", name)
		}
		want.Hashes = want.Hashes[1:]
		from, begin, _ := span(e.value, lines)
		i, start, end := span(e.hashes[1], lines)
		if e.value.Style&yaml.FlowStyle == 0 {
			old, _, _ := span(e.hashes[0], lines)
			return slices.Delete(lines, old, old+1), nil
		}
		rest := strings.TrimLeft(lines[i][end:], " ,")
		if !strings.HasPrefix(rest, "]") {
			return nil, errByHand
		}
		lines[from] = lines[from][:begin] + lines[i][start:end] + rest[1:]
		return slices.Delete(lines, from+1, i+1), nil
	})
}

// Remove removes an entry with its tokens.
func Remove(data []byte, file, name string) ([]byte, error) {
	return edit(data, file, name, func(e *entry, want *Entry, lines []string) ([]string, error) {
		*want = Entry{}
		first, begin, _ := span(e.node, lines)
		if strings.Trim(lines[first][:begin], " -") != "" || !strings.Contains(lines[first][:begin], "-") {
			return nil, errByHand
		}
		return slices.Delete(lines, first, lastLine(e.node)), nil
	})
}

// edit changes the lines of a file. It checks that only the entry with that
// name has changed, and as wanted. A zero wanted Entry means that the entry is
// removed.
func edit(data []byte, file, name string, change func(e *entry, want *Entry, lines []string) ([]string, error)) ([]byte, error) {
	old, err := read(data, file)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(old, func(e *entry) bool { return e.Name == name })
	if at < 0 {
		return nil, ErrNoEntry
	}
	want := entriesOf(old)
	whole := strings.TrimSuffix(string(data), "\n") + "\n"
	lines, err := change(old[at], &want[at], strings.SplitAfter(whole, "\n"))
	if err != nil {
		return nil, err
	}
	if want[at].Name == "" {
		want = slices.Delete(want, at, at+1)
	}
	text := strings.Join(lines, "")
	if len(want) == 0 {
		text = strings.Replace(text, "tokens:", emptyList, 1)
	}
	if now, err := Entries([]byte(text), file); err != nil || !reflect.DeepEqual(now, want) {
		return nil, errByHand
	}
	return []byte(text), nil
}

// span returns where a node begins and a scalar ends: the index of its line,
// and offsets in it.
func span(n *yaml.Node, lines []string) (line, begin, end int) {
	line = n.Line - 1
	left := n.Column // in characters, from 1
	for begin = range lines[line] {
		if left--; left == 0 {
			break
		}
	}
	end = begin + len(n.Value)
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		end += 2
	}
	return line, begin, min(end, len(lines[line]))
}

// lastLine returns the last line of a node, counted from 1.
func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, c := range n.Content {
		last = max(last, lastLine(c))
	}
	return last
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
