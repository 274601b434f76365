package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/firnid/firn/server/internal/ids/inspect"
)

//go:embed static templates
var files embed.FS

// assetDir is the directory of the files that browsers load. It is named after
// their contents, so that browsers can cache them forever.
var assetDir = sync.OnceValue(func() string {
	sum := sha256.New()
	for _, name := range glob("static/*") {
		data, err := files.ReadFile(name)
		if err != nil {
			panic("console: read embedded files: " + err.Error())
		}
		sum.Write(data)
	}
	return "/console/" + hex.EncodeToString(sum.Sum(nil)[:6])
})

// glob returns the names of embedded files.
func glob(pattern string) []string {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		panic("console: " + err.Error())
	}
	return names
}

// asset answers with a file. Files need no authentication: they are not secret,
// and the sign-in page needs them.
func asset(w http.ResponseWriter, r *http.Request) {
	if "/console/"+r.PathValue("version") != assetDir() {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeFileFS(w, r, files, "static/"+r.PathValue("file"))
}

// pages returns the templates, each with the frame and the shared parts.
var pages = sync.OnceValue(func() map[string]*template.Template {
	common := template.Must(template.New("").Funcs(functions).ParseFS(files, "templates/frame.html",
		"templates/parts.html"))
	t := make(map[string]*template.Template)
	for _, name := range glob("templates/*.html") {
		base := strings.TrimSuffix(path.Base(name), ".html")
		t[base] = template.Must(template.Must(common.Clone()).ParseFS(files, name))
	}
	return t
})

// functions are the functions of the templates.
var functions = template.FuncMap{
	"number": number, "count": count, "utc": utc, "iso": iso, "clock": clock, "day": day, "ago": ago, "timeLeft": timeLeft,
	"duration": duration, "plural": plural, "moment": momentOf, "sentence": sentence, "elsewhere": randomElsewhere,
	"hasnode": func(r *inspect.Reading) bool { return r.Layout.IsZero() || r.Layout.NodeBits() > 0 },
	"hasseq":  func(r *inspect.Reading) bool { return r.Layout.IsZero() || r.Layout.SeqBits() > 0 },
}
