package main

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/form"
)

// veilFlags are the flags of commands that write or read veiled IDs.
type veilFlags struct{ file, sequencer string }

func (f *veilFlags) flags(cmd *cobra.Command) {
	textVar(cmd, &f.file, "veil-key-file", "FILE", "file with the keys of veiled IDs")
	f.sequencer = "default"
	parsedVar(cmd, &f.sequencer, "sequencer", "NAME", "sequencer of veiled IDs",
		func(s string) (string, error) { return s, grant.CheckName(s) })
}

// veil returns the Veil for a layout. Without one, it is for the layout default,
// and for uuidv7 if an ID has 128 bits.
func (f *veilFlags) veil(a *app, l firn.Layout) (v form.Veil, err error) {
	if f.file == "" {
		return v, misuse("make a key with openssl rand -hex 32 > keys, and add --veil-key-file keys",
			"veiled IDs need --veil-key-file")
	}
	form.WarnOfReaders(f.file, func(text string) { a.note("%s", text) })
	keys, err := form.ReadKeys(f.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return v, failed("make a key with openssl rand -hex 32 > "+f.file, "--veil-key-file: %w", err)
	case err != nil:
		return v, failed("", "--veil-key-file: %w", err)
	case !l.IsZero():
		v, err = form.NewVeil(keys, f.sequencer, l)
	default:
		if v.Of64, err = keys.Codec(f.sequencer, firn.Default()); err == nil {
			v.Of128, err = keys.Codec(f.sequencer, firn.MustParseLayout("uuidv7"))
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
