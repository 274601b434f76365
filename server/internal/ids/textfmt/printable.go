package textfmt

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable escapes what a terminal obeys and does not print, such as colors
// and the direction of text: hosts, addresses and errors come from other
// programs. The escapes are those of JSON.
func Printable(s string) string {
	var b strings.Builder
	for from := 0; from < len(s); {
		switch r, n := utf8.DecodeRuneInString(s[from:]); {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "\\x%02x", s[from])
			from++
		case strconv.IsPrint(r):
			b.WriteString(s[from : from+n])
			from += n
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, "\\u%04x", unit)
			}
			from += n
		}
	}
	return b.String()
}

// PrintableLines is Printable for text of several lines.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}
