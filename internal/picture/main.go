// Command picture writes the pictures of the README as SVG: the bits of an ID
// in the default layout, and who talks to whom. Numbers come from the library,
// so a picture changes when the layout does. It is not for charts of
// measurements; those are drawn by bench.
//
//	go run ./internal/picture docs/pictures
package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: picture DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// pictures returns the pictures by file name.
func pictures() (map[string][]byte, error) {
	layout, err := layoutPicture()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"layout.svg": layout, "overview.svg": overviewPicture()}, nil
}

// write writes all pictures into a directory.
func write(dir string) error {
	all, err := pictures()
	if err != nil {
		return err
	}
	for name, svg := range all {
		if err := os.WriteFile(filepath.Join(dir, name), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// A canvas collects the elements of a picture.
type canvas struct{ strings.Builder }

// colours follow the reader's system setting, light or dark.
const colours = `<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328; text-anchor: middle; }
.title { font-weight: 600; }
.soft { fill: #59636e; font-size: 12px; }
.start { text-anchor: start; }
.code { font-family: ui-monospace, monospace; }
.box { fill: #f6f8fa; stroke: #818b98; }
.time { fill: #b6e3ff; stroke: #0969da; }
.node { fill: #ffd8b5; stroke: #bc4c00; }
.seq { fill: #aceebb; stroke: #1a7f37; }
.zero { fill: #d1d9e0; stroke: #818b98; }
.arrow { fill: none; stroke: #59636e; stroke-width: 1.5; marker-end: url(#head); }
.head { fill: #59636e; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .soft { fill: #9198a1; }
  .box { fill: #151b23; stroke: #656c76; }
  .time { fill: #0c2d6b; stroke: #4493f8; }
  .node { fill: #5a1e02; stroke: #f0883e; }
  .seq { fill: #033a16; stroke: #3fb950; }
  .zero { fill: #2a313c; stroke: #656c76; }
  .arrow { stroke: #9198a1; }
  .head { fill: #9198a1; }
}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="head" d="M0 0 8 4 0 8z"/></marker></defs>
`

// begin starts a picture with a description for screen readers.
func begin(width, height int, title, description string) *canvas {
	c := new(canvas)
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d">`+"\n", width, height, width, height)
	fmt.Fprintf(c, "<title id=\"t\">%s</title>\n<desc id=\"d\">%s</desc>\n%s", html.EscapeString(title), html.EscapeString(description), colours)
	return c
}

func (c *canvas) end() []byte { return []byte(c.String() + "</svg>\n") }

func (c *canvas) text(class string, x, y int, text string) {
	fmt.Fprintf(c, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(text))
}

func (c *canvas) box(class string, x, y, width, height int) {
	fmt.Fprintf(c, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="4"/>`+"\n", class, x, y, width, height)
}
