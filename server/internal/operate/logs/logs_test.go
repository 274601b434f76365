package logs

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"
)

// TestLogsAreVisible: no format of the log passes on what a terminal may act on,
// and JSON still has the same text.
func TestLogsAreVisible(t *testing.T) {
	const text = "a\x1b[31m b\u009b31m c\x7f d\u202e e\U000e0001 größe 日本"
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		log, w := New(&out, format == "json", slog.LevelInfo)
		log.Info(text, "name", text)
		w.Close()
		if strings.ContainsFunc(out.String(), func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }) || !strings.Contains(out.String(), "größe 日本") {
			t.Errorf("%s: %q", format, &out)
		}
		var got struct{ Msg, Name string }
		if err := json.Unmarshal(out.Bytes(), &got); format == "json" && (err != nil || got.Msg != text || got.Name != text) {
			t.Errorf("%v, %q, want %q", err, got, text)
		}
	}
}
