package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/records"
)

func newConvert(a *app) *cobra.Command {
	var (
		from   inspect.Encoding
		to     form.Form
		prefix string
		veiled veilFlags
		layout firn.Layout
		bits   int
		groups int
		csv    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "convert [--from FORMAT] [--to FORMAT] {ID|FILE|-}…",
		Short: "Convert IDs to another format",
		Long: `Convert writes IDs in another format. It reads IDs from arguments, from files with a
column of IDs, and from the standard input (-); with --from raw it reads bytes.

  firn convert --to base62 7130316800004390912

A text that is not an ID is an error; convert continues and exits with 1.

` + columnHelp + `

The text of an ID shows whether it has 64 or 128 bits: uuid, 32 hexadecimal digits,
26 of base32 and 128 of bin have 128 bits; in other formats an ID has 128 bits if
its number needs more than 64. Use --bits if that is wrong: a number whose upper
half is 0 has a different form in each size:

  firn convert --from dec --to hex --bits 128 7

The formats are dec, hex, bin, base32 (Crockford), base36, base58 (Bitcoin),
base62, base2 to base62, flake32 and flake58 (0-9A-Za-z), uuid and raw. Append
-fixed for leading zeros, or -short for none.

The format typed writes a prefix in front, and reads only texts with that prefix:

  firn convert --from dec --to typed --prefix order 117383499776000003

` + veilHelp,
		Example: `  firn convert --to base62 7130316800004390912
  firn convert --from base62 --to uuid AboKHPfZvePUStfgB6
  firn convert --to bin --group 8 0x8c20543b1
  firn convert --to hex --csv order_id orders.csv
  firn next -n 3 | firn convert --from dec --to hex -`,
		Args: takes("the ID", 1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := converter{a: a, from: from, to: to, bits: bits, groups: groups, asJSON: asJSON}
			if from.IsTyped() {
				c.from = inspect.Typed(prefix)
			}
			if to.IsTyped() || !from.IsTyped() {
				if err := usePrefix(&c.to, "to", prefix); err != nil {
					return err
				}
			}
			if to.IsVeiled() || from.IsVeiled() {
				v, err := veiled.veil(a, layout)
				if err != nil {
					return err
				}
				if from.IsVeiled() {
					c.from = inspect.Veiled(v)
				}
				if to.IsVeiled() {
					c.to = form.VeiledBy(v)
				}
			} else if err := noVeil(cmd); err != nil {
				return err
			}
			if err := c.check(cmd, args); err != nil {
				return err
			}
			out := records.NewWriter(a.stdout)
			var err error
			if f, _ := from.Format(); f == firn.Raw {
				err = c.bytes(out, a.stdin)
			} else {
				in := idInput{a: a, csv: csv, from: c.from, bits: c.bits}
				err = in.each(cmd.Context(), args, out, func(where place, text string, bad error) error {
					return c.line(out, where, text, bad)
				})
			}
			if err != nil {
				return err
			}
			return c.tally.result(a, "IDs")
		},
	}
	encodingVar(cmd, &from)
	formVar(cmd, &to, "to", "", "output format (default dec)")
	prefixVar(cmd, &prefix, "prefix of typed text")
	veiled.flags(cmd)
	layoutVar(cmd, &layout, "layout of veiled IDs (default default, or uuidv7 for 128 bits)")
	bitsVar(cmd, &bits, "size of the IDs: auto, 64 or 128")
	csvVar(cmd, &csv)
	numberVar(cmd, &groups, "group", "", "with --to bin: insert a space after every N bits, from the right")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"id":"…","format":"…","bits":…} per line`)
	return cmd
}

// A converter converts IDs to another format.
type converter struct {
	a      *app
	from   inspect.Encoding
	to     form.Form
	bits   int // 0: as in the text
	groups int // bits between spaces; 0: none
	asJSON bool

	tally tally
	buf   []byte
}

// check rejects flags that exclude each other.
func (c *converter) check(cmd *cobra.Command, args []string) error {
	from, isFormat := c.from.Format()
	switch {
	case c.groups > 0 && !c.to.Is(firn.Binary):
		return misuse("", "--group needs --to bin")
	case c.to.Is(firn.UUID) && c.bits == 64:
		return misuse("", "--to uuid needs IDs of 128 bits")
	case c.to.Is(firn.UUID):
		c.bits = 128
	}
	if err := c.a.checkRaw("to", &c.to, c.asJSON); err != nil {
		return err
	}
	if isFormat && from == firn.Raw {
		if cmd.Flags().Changed("csv") {
			return misuse("leave one of them out", "--csv reads text, but --from raw reads bytes")
		}
		if len(args) != 1 || args[0] != "-" {
			return misuse("firn convert --from raw --bits 64 -", "--from raw reads bytes from the standard input")
		}
		if !cmd.Flags().Changed("bits") || c.bits == 0 {
			return misuse("--bits 64 or --bits 128", "--from raw: the size of the IDs is needed")
		}
	}
	if c.bits != 0 && isFormat {
		if err := from.Fits(c.bits); err != nil {
			return misuse("", "--from %s: %w", from, inspect.Plain(err))
		}
	}
	return nil
}

// line converts one text.
func (c *converter) line(out *records.Writer, where place, text string, err error) error {
	c.tally.all++
	if err == nil && text == "" {
		err = inspect.ErrEmptyLine
	}
	c.buf = c.buf[:0]
	if err == nil {
		err = c.text(text)
	}
	if err == nil {
		_, err = out.Write(c.buf)
		return err
	}
	if _, ok := errors.AsType[*inspect.AmbiguousError](err); ok {
		err = fmt.Errorf("%w with --from", err)
	}
	if c.asJSON {
		c.tally.bad++
		return json.NewEncoder(out).Encode(errorJSON(err))
	}
	return c.tally.complain(c.a, out, where, err)
}

// text appends the converted text.
func (c *converter) text(text string) error {
	b, _, err := inspect.Decode(text, c.from, c.bits)
	if err != nil {
		return err
	}
	if len(b) != 8 && len(b) != 16 {
		return c.appendLong(b)
	}
	return c.append(b)
}

func (c *converter) append(n inspect.ID) error {
	if c.to.IsVeiled() {
		if err := c.to.Check(n.Append(nil, firn.Raw)); err != nil {
			return err
		}
	}
	c.begin()
	if c.groups > 0 {
		c.buf = appendGroups(c.buf, n.Append(nil, firn.Binary), c.groups)
	} else {
		c.buf = n.Append(c.buf, &c.to)
	}
	c.end(8 * len(n))
	return nil
}

// appendGroups appends bits to b, with a space between groups of that many,
// counted from the right.
func appendGroups(b, bits []byte, group int) []byte {
	for i, bit := range bits {
		if i > 0 && (len(bits)-i)%group == 0 {
			b = append(b, ' ')
		}
		b = append(b, bit)
	}
	return b
}

// appendLong appends an ID of 96 or 160 bits, for which there are few formats.
func (c *converter) appendLong(b []byte) error {
	c.begin()
	switch {
	case c.to.Is(firn.Decimal):
		c.buf = new(big.Int).SetBytes(b).Append(c.buf, 10)
	case c.to.Is(firn.Hex):
		c.buf = fmt.Appendf(c.buf, "%x", b)
	default:
		return fmt.Errorf("an ID of %d bits can only be written as dec or hex", 8*len(b))
	}
	c.end(8 * len(b))
	return nil
}

func (c *converter) begin() {
	if c.asJSON {
		c.buf = append(c.buf, `{"id":"`...)
	}
}

func (c *converter) end(bits int) {
	switch {
	case c.asJSON:
		c.buf = fmt.Appendf(c.buf, "\",\"format\":%q,\"bits\":%d}\n", c.to.String(), bits)
	case !c.to.Is(firn.Raw):
		c.buf = append(c.buf, '\n')
	}
}

// bytes converts packed IDs.
func (c *converter) bytes(out *records.Writer, r io.Reader) error {
	err := records.EachRaw(r, c.bits/8, func(_ int, b []byte) error {
		c.tally.all++
		c.buf = c.buf[:0]
		if err := c.append(b); err != nil {
			return err
		}
		_, err := out.Write(c.buf)
		return err
	})
	return cmp.Or(out.Flush(), err)
}
