package console

import (
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/service"
)

// FuzzPages: whatever one types, a page is whole, fails no further than by
// saying what is wrong, and what was typed is text in it and nothing else.
func FuzzPages(f *testing.F) {
	static := must.Get(service.NewStaticBackend(service.StaticBackendConfig{Layout: firn.Default(), Node: 7}))(f)
	k := New(Config{Front: service.Front{Backend: static}})
	f.Cleanup(k.Close)
	for _, s := range []string{"117232474546765824", "1,2", "<script>alert(1)</script>", `" onload="x`, "bits=time:1", "2026-11-20T00:00", "99", "-1", "uuidv7", "\x00", "javascript:x",
		"</title><svg onload=alert(1)>", "</textarea><img src=x onerror=alert(1)>", "'-alert(1)-'", "{{html .}}", "\u2028\ufeff<script>alert(1)</script>"} {
		f.Add(s, s, s)
	}
	values := regexp.MustCompile(`="[^"]*"|='[^']*'`) // of attributes
	handler := regexp.MustCompile(`<script>|<[^>]*\s(on[a-z]+|style)=`)
	scheme := regexp.MustCompile(`(href|src|action)="\s*javascript`)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, target := range []string{
			"/inspect?" + url.Values{"ids": {a}, "layout": {b}, "from": {c}}.Encode(),
			"/inspect/" + url.PathEscape("x"+a) + "?" + url.Values{"of": {b}, "made": {c}}.Encode(),
			"/?" + url.Values{"q": {a}, "sort": {b}}.Encode(),
			"/sequencers/" + url.PathEscape("x"+a), "/create?name=" + url.QueryEscape(a), "/sign-in?next=" + url.QueryEscape(a),
		} {
			r := httptest.NewRequest("GET", target, nil)
			r.Header.Set("Accept", "text/html")
			w := httptest.NewRecorder()
			k.ServeHTTP(w, r)
			body := w.Body.String()
			if w.Code >= 500 {
				t.Errorf("GET %s: status %d", target, w.Code)
			}
			if w.Code != 303 && !strings.HasSuffix(strings.TrimSpace(body), "</html>") && w.Code != 307 && w.Code != 301 {
				t.Errorf("GET %s: status %d, and the page is not whole: %.300s", target, w.Code, body)
			}
			if found := handler.FindString(values.ReplaceAllString(body, `=""`)) + scheme.FindString(body); found != "" {
				t.Errorf("GET %s: there is %q on the page", target, found)
			}
		}
	})
}
