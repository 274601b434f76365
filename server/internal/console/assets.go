package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn/server/internal/ids/inspect"
)

//go:embed static templates
var files embed.FS

// contentTypes has the types of served files.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// An assetSet is the files that browsers load. Their directory is named after
// their contents, so that browsers can cache them forever.
type assetSet struct {
	dir   string
	files map[string][]byte
}

var assets = sync.OnceValue(func() assetSet {
	a := assetSet{files: make(map[string][]byte)}
	sum := sha256.New()
	for _, name := range []string{"console.css", "console.js", "firn.svg"} {
		data, err := files.ReadFile("static/" + name)
		if err != nil {
			panic("console: read embedded files: " + err.Error())
		}
		a.files[name] = data
		io.WriteString(sum, name)
		sum.Write(data)
	}
	a.dir = "/console/" + hex.EncodeToString(sum.Sum(nil)[:6])
	return a
})

// asset answers with a file. Files need no authentication: they are not secret,
// and the sign-in page needs them.
func (k *Console) asset(w http.ResponseWriter, r *http.Request) {
	a := assets()
	name := r.PathValue("file")
	data, ok := a.files[name]
	if !ok || "/console/"+r.PathValue("version") != a.dir {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(data)))
}

// pages returns the templates, each with the frame and the shared parts.
var pages = sync.OnceValue(func() map[string]*template.Template {
	common := template.Must(template.New("").Funcs(functions).ParseFS(files, "templates/frame.html", "templates/parts.html"))
	list, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		panic("console: " + err.Error())
	}
	t := make(map[string]*template.Template)
	for _, name := range list {
		base := strings.TrimSuffix(path.Base(name), ".html")
		if base == "frame" || base == "parts" {
			continue
		}
		t[base] = template.Must(template.Must(common.Clone()).ParseFS(files, name))
	}
	return t
})

// functions are the functions of the templates.
var functions = template.FuncMap{
	"number": number, "count": count, "utc": utc, "iso": iso, "clock": clock, "day": day, "ago": ago, "left": left,
	"length": length, "plural": plural, "short": short, "title": title, "elsewhere": randomElsewhere,
	"split":   func(s string) []string { return strings.Split(s, "") },
	"half":    func(a, b time.Time) time.Duration { return b.Sub(a) / 2 },
	"hasnode": func(r *inspect.Reading) bool { return r.Layout.IsZero() || r.Layout.NodeBits() > 0 },
	"hasseq":  func(r *inspect.Reading) bool { return r.Layout.IsZero() || r.Layout.SeqBits() > 0 },
}

// render executes a template of a page.
func render(w io.Writer, name, part string, data any) error {
	t, ok := pages()[name]
	if !ok {
		return fs.ErrNotExist
	}
	return t.ExecuteTemplate(w, part, data)
}
