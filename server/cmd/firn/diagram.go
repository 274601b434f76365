package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/firnid/firn"
)

// bitsBox draws a layout as a box with a cell for each piece and the bit
// positions above it, up to about 90 columns wide. The function number returns
// what a cell shows next to its field; constants and unused bits show
// themselves.
func bitsBox(l firn.Layout, number func(firn.Piece) string) string {
	var numbers, top, middle, bottom strings.Builder
	for i, p := range l.Pieces() {
		field := p.Field
		if p.Reversed {
			field += "~"
		}
		text := strings.TrimSpace(field + " " + number(p))
		switch p.Field {
		case "zero":
			text = "0"
		case "const":
			text = "=" + strconv.FormatUint(p.Const, 10)
		}
		high, low := strconv.Itoa(p.Pos+p.Width-1), strconv.Itoa(p.Pos)
		if p.Width == 1 {
			high = ""
		}
		width := max(p.Width*64/max(l.Bits(), 64), utf8.RuneCountInString(text)+2, len(high)+len(low)+1)
		numbers.WriteString(" " + high + strings.Repeat(" ", width-len(high)-len(low)) + low)
		left, right := "┬", "┴"
		if i == 0 {
			left, right = "┌", "└"
		}
		top.WriteString(left + strings.Repeat("─", width))
		bottom.WriteString(right + strings.Repeat("─", width))
		fmt.Fprintf(&middle, "│ %-*s", width-1, text)
	}
	return numbers.String() + "\n" + top.String() + "┐\n" + middle.String() + "│\n" + bottom.String() + "┘\n"
}

// pieceWidth is the number of a layout without an ID.
func pieceWidth(p firn.Piece) string { return strconv.Itoa(p.Width) }
