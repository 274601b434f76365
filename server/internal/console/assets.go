package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"sync"
)

//go:embed static
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
