package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/readfile"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/veil"
)

// warnOfReaders warns if other users can read a file of keys. Windows has no
// such modes.
func warnOfReaders(path string, warn func(string)) {
	info, err := os.Stat(path)
	if err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 {
		warn(fmt.Sprintf("%s is readable by other users (mode %04o), who can then unveil and forge IDs: run chmod 640 %[1]s", path, info.Mode().Perm()))
	}
}

// readVeilKeys reads a file of keys; "" has none.
func readVeilKeys(path string) (veil.Keys, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readfile.ReadTrusted(path)
	if err != nil {
		return nil, err
	}
	// Half of a longer key would be another key.
	if last := text[bytes.LastIndexByte(text, '\n')+1:]; len(bytes.TrimSpace(last)) > 0 && last[0] != '#' && len(bytes.TrimSpace(last[bytes.IndexByte(last, ':')+1:])) < 64 {
		return nil, fmt.Errorf("%s: the last line has fewer than 64 hexadecimal digits and does not end with a newline: it may be incomplete", path)
	}
	keys, err := veil.ParseKeys(string(text))
	return keys, textfmt.Plain(err)
}

// veilFlags are the flags of commands that write or read veiled IDs.
type veilFlags struct{ file, sequencer string }

func (f *veilFlags) flags(cmd *cobra.Command) {
	cmd.Flags().Var(&value[string]{&f.file, notEmpty, asIs, "FILE"}, "veil-key-file", "file with the keys of veiled IDs")
	f.sequencer = "default"
	name := func(s string) (string, error) { return s, grant.CheckName(s) }
	cmd.Flags().Var(&value[string]{&f.sequencer, name, asIs, "NAME"}, "sequencer", "sequencer of veiled IDs")
}

// veil returns the Veil for a layout. Without one, it is for the layout default,
// and for uuidv7 if an ID has 128 bits.
func (f *veilFlags) veil(a *app, l firn.Layout) (v form.Veil, err error) {
	if f.file == "" {
		return v, misuse("make a key with openssl rand -hex 32 > keys, and add --veil-key-file keys", "veiled IDs need --veil-key-file")
	}
	warnOfReaders(f.file, func(text string) { a.note("%s", text) })
	keys, err := readVeilKeys(f.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return v, failed("make a key with openssl rand -hex 32 > "+f.file, "--veil-key-file: %w", err)
	case err != nil:
		return v, failed("", "--veil-key-file: %w", err)
	case !l.IsZero():
		v, err = form.NewVeil(keys, f.sequencer, l)
	default:
		if v.Of64, err = keys.Text(f.sequencer, firn.Default()); err == nil {
			v.Of128, err = keys.Text(f.sequencer, firn.MustParseLayout("uuidv7"))
		}
	}
	if err != nil {
		return v, misuse("", "%w", err)
	}
	return v, nil
}

// noVeil rejects the flags of veiled IDs if there are none.
func noVeil(cmd *cobra.Command) error {
	for _, name := range []string{"veil-key-file", "sequencer", "layout"} {
		if cmd.Flags().Changed(name) {
			return misuse("", "--%s needs --from veiled or --to veiled", name)
		}
	}
	return nil
}
