package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/lines"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

func newConvert(a *app) *cobra.Command {
	c := convertCmd{idInput: idInput{app: a}, to: form.Of(firn.Decimal)}
	var (
		prefix string
		veiled veilFlags
		layout firn.Layout
	)
	cmd := command("convert", wantArgs("the ID", 1, -1), func(cmd *cobra.Command, args []string) error {
		if c.from.IsTyped() {
			c.from = form.TypedAs(prefix)
		}
		if c.to.IsTyped() || !c.from.IsTyped() {
			if err := usePrefix(&c.to, "to", prefix); err != nil {
				return err
			}
		}
		if c.to.IsVeiled() || c.from.IsVeiled() {
			v, err := veiled.veil(a, layout)
			if err != nil {
				return err
			}
			if c.from.IsVeiled() {
				c.from = form.VeiledBy(v)
			}
			if c.to.IsVeiled() {
				c.to = form.VeiledBy(v)
			}
		} else if err := noVeil(cmd); err != nil {
			return err
		}
		if err := c.check(); err != nil {
			return err
		}
		c.out = lines.NewWriter(a.stdout.Writer)
		if c.asJSON {
			c.onBad = c.badJSON
		}
		if err := c.each(cmd.Context(), args, c.convert); err != nil {
			return err
		}
		return c.result(a, "IDs")
	})
	fromVar(cmd, &c.from)
	formVar(cmd, &c.to, "to", "", "output format (default dec)")
	prefixVar(cmd, &prefix, "prefix of typed text")
	veiled.flags(cmd)
	layoutVar(cmd, &layout, firn.ParseLayout, "layout of veiled IDs (default default, or uuidv7 for 128 bits)")
	bitsVar(cmd, &c.bits, "size of the IDs: auto, 64 or 128")
	csvVar(cmd, &c.csv)
	jsonVar(cmd, &c.asJSON)
	return cmd
}

// A convertCmd converts IDs to another format.
type convertCmd struct {
	idInput
	to     form.Form
	asJSON bool
}

// check rejects flags that exclude each other.
func (c *convertCmd) check() error {
	from, isFormat := c.from.Format()
	switch {
	case c.to.Is(firn.UUID) && c.bits == 64:
		return misuse("", "--to uuid needs IDs of 128 bits")
	case c.to.Is(firn.UUID):
		c.bits = 128
	}
	if err := c.app.checkRaw("to", &c.to, c.asJSON); err != nil {
		return err
	}
	if c.bits != 0 && isFormat {
		if err := from.CheckBits(c.bits); err != nil {
			return misuse("", "--from %s: %w", from, textfmt.Plain(err))
		}
	}
	return nil
}

// convert converts one ID. Those of 96 and 160 bits have few formats.
func (c *convertCmd) convert(_ lines.Place, from string) (bad, err error) {
	id, _, bad := c.from.Decode(from, c.bits)
	if _, ok := errors.AsType[*form.AmbiguousError](bad); ok {
		bad = fmt.Errorf("%w with --from", bad)
	}
	if bad != nil {
		return bad, nil
	}
	var text []byte
	switch short := len(id) == 8 || len(id) == 16; {
	case !short && c.to.Is(firn.Decimal):
		text = new(big.Int).SetBytes(id).Append(nil, 10)
	case !short && c.to.Is(firn.Hex):
		text = hex.AppendEncode(nil, id)
	case !short:
		return fmt.Errorf("an ID of %d bits can only be written as dec or hex", 8*len(id)), nil
	default:
		if bad := c.to.Check(id); bad != nil {
			return bad, nil
		}
		text = id.Append(c.out.AvailableBuffer(), c.to)
	}
	if c.asJSON {
		return nil, json.NewEncoder(c.out).Encode(struct {
			ID     string `json:"id"`
			Format string `json:"format"`
			Bits   int    `json:"bits"`
		}{string(text), c.to.String(), 8 * len(id)})
	}
	if !c.to.Is(firn.Raw) {
		text = append(text, '\n')
	}
	_, err = c.out.Write(text)
	return nil, err
}
