package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/firnid/firn/server/internal/service"
)

// writeText answers with a text.
func writeText(w http.ResponseWriter, text string) *service.Problem {
	return writeWhole(w, http.StatusOK, "text/plain; charset=utf-8", []byte(text))
}

// writeWhole writes an answer that is complete in memory. Each has a
// Content-Length: net/http sets that of short ones only.
func writeWhole(w http.ResponseWriter, status int, media string, body []byte) *service.Problem {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
	return nil
}

// writeJSON answers with a value as JSON.
func writeJSON(w http.ResponseWriter, status int, v any) *service.Problem {
	body, err := json.Marshal(v)
	if err != nil {
		return &service.Problem{Detail: "see the server's log", Kind: service.Internal, Cause: err}
	}
	return writeWhole(w, status, "application/json", append(body, '\n'))
}
