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
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || contentTypes[path.Ext(name)] == "" {
			return err
		}
		data, err := files.ReadFile(name)
		name = strings.TrimPrefix(name, "static/")
		a.files[name] = data
		io.WriteString(sum, name)
		sum.Write(data)
		return err
	})
	if err != nil {
		panic("console: read embedded files: " + err.Error())
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
	"length": length, "about": about, "uptime": uptime, "plural": plural,
	"upper":    strings.ToUpper,
	"split":    func(s string) []string { return strings.Split(s, "") },
	"join":     nameSome,
	"half":     func(a, b time.Time) time.Duration { return b.Sub(a) / 2 },
	"hasnode":  func(r *inspect.Reading) bool { return r.Layout.IsZero() || r.Layout.NodeBits() > 0 },
	"hasseq":   func(r *inspect.Reading) bool { return r.Layout.IsZero() || r.Layout.SeqBits() > 0 },
	"utcshort": short, "elsewhere": randomElsewhere, "unit": unitName, "encodings": encodings, "formatname": formatName,
	"actname":  func(a string) string { return acts[a].Button },
	"actabout": func(a string) string { return acts[a].Means[0] },
	"danger":   func(a string) bool { return acts[a].Danger },
	"title":    func(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] },
}

// render executes a template of a page.
func render(w io.Writer, name, part string, data any) error {
	t, ok := pages()[name]
	if !ok {
		return fs.ErrNotExist
	}
	return t.ExecuteTemplate(w, part, data)
}
