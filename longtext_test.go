package firn_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/typed"
	"github.com/firnid/firn/veil"
)

// TestLongTexts: no parser keeps a long text in its error, which programs log.
func TestLongTexts(t *testing.T) {
	key := "1:" + strings.Repeat("0f", 32)
	codec := must.Get(must.Get(veil.ParseKeys(key))(t).Codec("orders", firn.Default()))(t)
	var (
		id      firn.ID
		id128   firn.ID128
		kind    typed.ID[longKind]
		kind128 typed.ID128[longKind]
		layout  firn.Layout
	)
	parsers := map[string]func(s string) error{
		"ParseID":            func(s string) error { _, err := firn.ParseID(s); return err },
		"ParseID128":         func(s string) error { _, err := firn.ParseID128(s); return err },
		"ID.Scan":            func(s string) error { return id.Scan(s) },
		"ID128.Scan":         func(s string) error { return id128.Scan(s) },
		"ParseFormat":        func(s string) error { _, err := firn.ParseFormat(s); return err },
		"ParseLayout":        func(s string) error { _, err := firn.ParseLayout(s); return err },
		"Layout.Unmarshal":   func(s string) error { return layout.UnmarshalText([]byte(s)) },
		"ParseNode":          func(s string) error { _, err := firn.MustParseLayout("flake-idgen").ParseNode(s); return err },
		"typed.Parse":        func(s string) error { _, err := typed.Parse[firn.ID]("order", s); return err },
		"typed.Parse128":     func(s string) error { _, err := typed.Parse[firn.ID128]("order", s); return err },
		"typed.Cut":          func(s string) error { _, _, err := typed.Cut(s); return err },
		"typed.ID.Unmarshal": func(s string) error { return kind.UnmarshalText([]byte(s)) },
		"typed.ID128":        func(s string) error { return kind128.UnmarshalText([]byte(s)) },
		"Codec.Parse":        func(s string) error { _, err := codec.Parse(s); return err },
		"Codec.Parse128":     func(s string) error { _, err := codec.Parse128(s); return err },
	}
	for _, f := range []firn.Format{firn.Decimal, firn.Hex, firn.Binary, firn.Base32, firn.Base58, firn.UUID, firn.Raw} {
		parsers["Format.Parse "+f.String()] = func(s string) error { _, err := f.Parse(s); return err }
		parsers["Format.Parse128 "+f.String()] = func(s string) error { _, err := f.Parse128(s); return err }
	}
	for name, parse := range parsers {
	texts:
		for _, begin := range []string{"", "order_", "v1_", "v2_", "bits=", "bits=time:", "default,", "default,unit=",
			"default,epoch=", "worker=", "worker=1,"} {
			for _, piece := range []string{"a", "1", "0", "_", "=", ",", ":", "é", "\xff", "v1_"} {
				text := begin + strings.Repeat(piece, 100_000/len(piece))
				err := parse(text)
				if err == nil {
					continue // zeros in front are valid in some
				}
				var p *firn.ParseError
				if r := (*firn.RangeError)(nil); !errors.As(err, &p) && !errors.As(err, &r) {
					t.Errorf("%s of %.20q…: %.80v, want a *ParseError or a *RangeError", name, text, err)
					break texts
				} else if len(err.Error()) > 1000 || p != nil && (len(p.Text) > 256 || !strings.HasPrefix(text, p.Text)) {
					t.Errorf("%s of %.20q…: %T with %d bytes, %.80v", name, text, err, len(err.Error()), err)
					break texts
				}
			}
		}
	}
}

type longKind struct{}

func (longKind) Prefix() string { return "order" }
