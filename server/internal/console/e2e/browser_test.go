package e2e

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/firnid/firn/internal/test/must"
)

//go:embed testdata/axe-core-4.14.1/axe.min.js
var axe string

// chromium is the path of a browser.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("SKIPPED: Chromium is not installed; install it with apt-get install chromium")
	return ""
}

// The browser of all tests, which is started when one needs it and ends with
// them.
var shared struct {
	ctx  context.Context
	stop func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	os.Exit(code)
}

// newBrowser returns a browser. It reaches loopback only.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: it starts a browser, and -short is given")
	}
	if shared.ctx != nil {
		return shared.ctx
	}
	path := chromium(t)
	dir := must.Get(os.MkdirTemp("", "firn-chromium-"))(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(dir),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Env("TZ=America/New_York"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has none for root
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(alloc)
	end := func() {
		_ = chromedp.Cancel(ctx) // it is ended below if it does not end by itself
		cancel()
		stop()
		_ = os.RemoveAll(dir)
	}
	if err := chromedp.Do(ctx); err != nil {
		end()
		t.Fatalf("Chromium does not start: %v", err)
	}
	shared.ctx, shared.stop = ctx, end
	return ctx
}

// A tab is a page of a browser, which notes what goes wrong in it.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string // the server's address

	mu       sync.Mutex
	wrong    []string // errors of the console, of scripts and of the policy
	requests []string
	allow    []string // what may be wrong: a part of the text
}

// newTab opens a tab for a server. At the end there must have been no error in
// it, and no request to elsewhere.
func newTab(t *testing.T, browser context.Context, base string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	b := &tab{t: t, ctx: ctx, base: base}
	must.Do(t, chromedp.Listen(ctx, b.note))
	t.Cleanup(func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, w := range b.wrong {
			if !slices.ContainsFunc(b.allow, func(a string) bool { return strings.Contains(w, a) }) {
				t.Errorf("in the browser: %s", w)
			}
		}
		if len(b.requests) == 0 {
			t.Error("no request was seen, so requests to other hosts would not be noticed")
		}
		home, _ := url.Parse(base)
		for _, r := range b.requests {
			if u, err := url.Parse(r); err != nil || u.Host != home.Host && u.Scheme != "data" {
				t.Errorf("a request to elsewhere: %s", r)
			}
		}
	})
	call(b, log.Enable, cdp.Empty{})
	call(b, network.Enable, network.EnableParams{})
	b.screen(1280, 900, false)
	return b
}

// note keeps what goes wrong, and what is asked for.
func (b *tab) note(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		if ev.Type != runtime.ConsoleAPICalledTypeError && ev.Type != runtime.ConsoleAPICalledTypeWarning && ev.Type != runtime.ConsoleAPICalledTypeAssert {
			return
		}
		var parts []string
		for _, a := range ev.Args {
			parts = append(parts, string(a.Value)+a.Description)
		}
		b.wrong = append(b.wrong, "console: "+strings.Join(parts, " "))
	case *runtime.EventExceptionThrown:
		text, _ := json.Marshal(ev.ExceptionDetails)
		b.wrong = append(b.wrong, "exception: "+string(text))
	case *log.EventEntryAdded:
		if ev.Entry.Level == log.EntryLevelError || ev.Entry.Level == log.EntryLevelWarning {
			b.wrong = append(b.wrong, "log: "+ev.Entry.Text+" "+ev.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, ev.Request.URL)
	}
}

// call sends a command of the browser's protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, must.Patience)
	defer cancel()
	r, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
	return r
}

// A step is what do does.
type step = chromedp.Action[chromedp.Void]

// click clicks when the page is painted: Chromium drops what comes before.
func click(sel string) step {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		for {
			ok, err := chromedp.Evaluate[bool](isPainted)(ctx, t)
			if ok && err == nil {
				return chromedp.Click(chromedp.CSS(sel))(ctx, t)
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return chromedp.Void{}, ctx.Err()
			}
		}
	}
}

const isPainted = `performance.getEntriesByName("first-contentful-paint").length > 0`

func visible(sel string) step { return chromedp.WaitVisible(chromedp.CSS(sel)) }

// focus focuses an element by a script: what chromedp knows of the elements may be
// those of the previous page.
func focus(sel string) step {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Evaluate[bool](`document.querySelector(`+quote(sel)+`).focus(), true`)(ctx, t)
		return chromedp.Void{}, err
	}
}

func keys(sel, text string) step { return chromedp.SendKeys(chromedp.CSS(sel), text) }

// permit lets an error be whose text has this in it.
func (b *tab) permit(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allow = append(b.allow, text)
}

// do runs steps, and fails the test with the first error.
func (b *tab) do(steps ...step) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, must.Patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.fatal(err)
	}
}

// fatal ends the test, and says what was on the page.
func (b *tab) fatal(err error) {
	b.t.Helper()
	at, _ := chromedp.Run(b.ctx, chromedp.Location())
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))
	b.shot("failed")
	b.t.Fatalf("%v\nat %s:\n%.2000s", err, at, text)
}

// open goes to a page, and waits until all of it is there.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base+path), visible("main"))
	b.painted()
}

// at is the address of the page.
func (b *tab) at() string { return get(b, chromedp.Location()) }

// get runs an action that has a result.
func get[T any](b *tab, a chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, must.Patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		b.fatal(err)
	}
	return v
}

// text is what an element says.
func (b *tab) text(sel string) string {
	b.t.Helper()
	// By one expression, because a page that draws itself again replaces nodes.
	element := "document.querySelector(" + quote(sel) + ")"
	b.wait(sel, element+"?.innerText")
	return strings.TrimSpace(js[string](b, element+"?.innerText ?? ''"))
}

// wait waits until an expression of JavaScript is true, also when other pages
// come in between.
func (b *tab) wait(what, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, must.Patience)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if ok && err == nil {
			return
		}
		if ctx.Err() != nil {
			b.fatal(fmt.Errorf("%s did not happen in time: %s: %v", what, expression, err))
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// has waits until the page says something.
func (b *tab) has(text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("%q on the page", text), fmt.Sprintf("document.body.innerText.includes(%s)", quote(text)))
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// js evaluates an expression.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	return get(b, chromedp.Evaluate[T](expression))
}

// screen makes the window as large as that, on a machine that likes it dark or
// light.
func (b *tab) screen(width, height int64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme},
		{Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// shots is the directory that screenshots are left in; empty outside the
// repository.
func shots() string {
	root := filepath.Join("..", "..", "..", "..")
	if _, err := os.Stat(filepath.Join(root, "ARCHITECTURE.md")); err != nil {
		return ""
	}
	path := filepath.Join(root, "build", "console")
	if os.MkdirAll(path, 0o755) != nil {
		return ""
	}
	return path
}

// looks checks the page as it is on large and small screens, light and dark,
// and leaves screenshots: nothing is wider than the screen, and axe finds
// nothing.
func (b *tab) looks(name string) {
	b.t.Helper()
	for _, s := range []struct {
		name          string
		width, height int64
		dark          bool
	}{
		{"wide-light", 1280, 900, false},
		{"wide-dark", 1280, 900, true},
		{"middle-light", 820, 1180, false},
		{"small-light", 390, 844, false},
		{"small-dark", 320, 640, true},
	} {
		b.screen(s.width, s.height, s.dark)
		b.wait("the layout", fmt.Sprintf("innerWidth === %d && matchMedia('(prefers-color-scheme: dark)').matches === %t", s.width, s.dark))
		if wide := js[int64](b, "document.documentElement.scrollWidth"); wide > s.width {
			culprit := js[string](b, `(() => { for (const e of document.querySelectorAll("main *")) { const r = e.getBoundingClientRect(); if (r.right > innerWidth + 1 && r.width > 1) return e.outerHTML.slice(0, 200); } return "?"; })()`)
			b.t.Errorf("%s at %s: the page is %d pixels wide on a screen of %d: %s", name, s.name, wide, s.width, culprit)
		}
		if s.name != "middle-light" && s.name != "small-dark" { // the colours of one and the places of the other are seen
			b.accessible(name + " " + s.name)
		}
		b.shot(name + "-" + s.name)
	}
	b.screen(1280, 900, false)
}

// shot leaves a screenshot.
func (b *tab) shot(name string) {
	b.t.Helper()
	path := shots()
	if path == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(path, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Errorf("the screenshot %s: %v", name, err)
	}
}

// accessible asks axe about the page.
func (b *tab) accessible(name string) {
	b.t.Helper()
	type violation struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	// The server of the test has it, as the policy lets no page take a script from
	// elsewhere.
	b.do(chromedp.Evaluate[chromedp.Void](`window.axe ? 0 : new Promise((ok, no) => { const s = document.createElement("script"); s.src = "/axe.js"; s.onload = () => ok(0); s.onerror = no; document.head.append(s); })`, chromedp.EvalAwaitPromise))
	found := get(b, chromedp.Evaluate[[]violation](`axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => ({ID: v.id, Help: v.help, Nodes: v.nodes.map(n => ({HTML: n.html, FailureSummary: n.failureSummary}))})))`, chromedp.EvalAwaitPromise))
	for _, f := range found {
		for _, n := range f.Nodes[:min(3, len(f.Nodes))] {
			b.t.Errorf("%s: axe: %s (%s): %s\n%s", name, f.Help, f.ID, n.HTML, n.FailureSummary)
		}
	}
}

// painted waits until the page is seen, as Chromium drops clicks before that.
func (b *tab) painted() {
	b.t.Helper()
	b.wait("the first paint", isPainted)
}

// noScript opens a page as a browser without JavaScript does.
func (b *tab) noScript(off bool) {
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off})
}
