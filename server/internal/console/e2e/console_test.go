package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/s3test"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/test/servicetest"
	"github.com/firnid/firn/server/stores"
)

// busy takes IDs of some sequencers until the test ends.
func busy(t *testing.T, s *server, names ...string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			for j, name := range names {
				if q, err := s.cluster.Sequencer(ctx, name, nil); err == nil {
					_, _ = q.Take(ctx, 20*(j+1)+(i%40)*(j+2))
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// fleet is two servers on one store with some sequencers.
func fleet(t *testing.T) (a, b *server, store *faultstore.Store) {
	store = &faultstore.Store{Store: new(memstore.Store)}
	a = start(t, options{store: store, host: "ids-0.example.com"})
	b = start(t, options{store: store, host: "ids-1.example.com"})
	for name, layout := range map[string]string{
		"orders": "default", "invoices": "hazelcast", "sessions": "uuidv7", "web.carts": "js53",
	} {
		must.Get(grant.Create(t.Context(), store, name, servicetest.Config(firn.MustParseLayout(layout)), nil))(t)
	}
	a.take("orders", 1000)
	a.take("invoices", 100)
	a.take("sessions", 3)
	b.take("orders", 50)
	return a, b, store
}

// TestPages opens every page, on large and small screens, light and dark.
func TestPages(t *testing.T) {
	browser := newBrowser(t)
	a, _, _ := fleet(t)
	busy(t, a, "orders", "invoices")
	b := newTab(t, browser, a.url())

	b.open("/")
	b.has("Live")
	b.has("1,0")
	b.has("Live")
	b.looks("overview")

	b.open("/sequencers/orders")
	b.has("Live")
	host := must.Get(os.Hostname())(t) // as in the records of node IDs
	b.has(host)
	b.looks("sequencer")

	b.open("/members")
	b.has("ids-0.example.com")
	b.has("ids-1.example.com")
	b.looks("members")

	id := a.take("orders", 1)[0]
	b.open("/inspect/" + id + "?layout=default&of=orders")
	b.has("Your local time:")
	b.has("(America/New_York)")
	b.has(host + " holds node")
	b.looks("inspect-one")

	b.open("/inspect/1212092628029698048")
	b.has("twitter")
	b.looks("inspect-guessed")

	b.open("/inspect/0190163d-8694-739b-aea5-966c26f8ad91")
	b.has("uuidv7")
	b.looks("inspect-uuid")

	ids := a.take("orders", 5)
	b.open("/inspect/" + strings.Join([]string{ids[0], ids[2], ids[1], ids[1], ids[4], "nonsense!"}, ","))
	b.has("1 duplicate, 1 out of order, 1 cannot be read")
	b.looks("inspect-many")

	b.open("/inspect")
	b.has("Nothing read yet")
	b.looks("inspect-empty")

	b.open("/create")
	b.looks("create")
	b.open("/sequencers/orders/destroy")
	b.has("This cannot be undone")
	b.looks("destroy")

	b.permit("404")
	b.permit("400")
	b.open("/sequencers/nobody")
	b.has("Sequencer nobody not found")
	b.looks("missing")
	b.open("/no/such/page")
	b.has("Page not found")
	b.open("/inspect/not-an-id")
	b.has("not-an-id")
	b.looks("inspect-fault")
}

// TestNewcomer makes the first ID, pastes it back, and reads what its bits
// mean.
func TestNewcomer(t *testing.T) {
	browser := newBrowser(t)
	s := start(t, options{host: "laptop"})
	b := newTab(t, browser, s.url())
	b.open("/")
	b.has("No sequencers yet")
	b.looks("first")
	b.do(click(".inline button"))
	b.has("Just made by the sequencer orders")
	id := strings.Fields(b.text("h2.id"))[0]
	b.looks("made")
	b.open("/inspect")
	b.do(keys("#ids", id+"\r"))
	b.wait("the reading", `document.querySelector("h2.id")?.textContent.includes(`+quote(id)+`)`)
	parts := must.Get(firn.Default().Decompose(mustID(t, id)))(t)
	for _, want := range []string{
		parts.Time.Format("2006-01-02 15:04:05.000") + " UTC", fmt.Sprintf("by node %d", parts.Node),
		"Counts the IDs of one millisecond", "Each of 1,024", "Always 0", "Sequencers that could have made it", "firn who ",
	} {
		b.has(want)
	}
	// The address is that of the ID, so that it can be shared.
	b.wait("the address", `location.pathname === "/inspect/`+id+`"`)
	// The field under the pointer is highlighted, and the rest is dimmed.
	at := js[[]float64](b, `(() => { const r = document.querySelector(".f-node").getBoundingClientRect(); return [r.x + r.width / 2, r.y + 10]; })()`)
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
	b.wait("the other fields to step back", `getComputedStyle(document.querySelector(".ruler .time")).opacity < 0.5 && getComputedStyle(document.querySelector(".ruler .node")).opacity === "1"`)
	// So does what the keyboard has come to.
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 1, 1), focus(".f-seq"))
	b.wait("the other fields to step back", `getComputedStyle(document.querySelector(".ruler .node")).opacity < 0.5 && getComputedStyle(document.querySelector(".ruler .seq")).opacity === "1"`)
	bits := js[string](b, `[...document.querySelectorAll(".ruler i")].map(i => i.textContent).join("")`)
	if want := firn.Binary.Text(mustID(t, id)); bits != want {
		t.Errorf("the ruler shows %s, want %s", bits, want)
	}
}

func mustID(t *testing.T, text string) firn.ID {
	t.Helper()
	return must.Get(firn.ParseID(text))(t)
}

// TestLiveFigures sees figures change by themselves, and the connection lost
// and found.
func TestLiveFigures(t *testing.T) {
	browser := newBrowser(t)
	s := start(t, options{host: "one"})
	s.take("orders", 10)
	b := newTab(t, browser, s.url())
	b.permit("ERR_")
	b.open("/")
	b.has("Live")
	b.has("orders")
	s.take("orders", 5000)
	b.has("5,010")
	s.take("billing", 1)
	b.has("billing")
	if n := js[int](b, `document.querySelectorAll("tbody tr").length`); n != 2 {
		t.Errorf("there are %d sequencers on the page, want 2", n)
	}
	// What is focused stays so.
	b.do(keys("#search", "o"))
	s.take("orders", 90)
	b.has("5,100")
	if got := js[string](b, `document.activeElement.name + " " + document.activeElement.value`); got != "q o" {
		t.Errorf("after figures have changed, %q has the focus", got)
	}
	b.accessible("live") // so that axe is there when the server is not
	s.die()
	b.has("The connection to the server was lost at")
	b.has("Not connected")
	b.looks("lost")
	s.rise()
	b.has("Live")
	b.wait("the note to go", `document.querySelector("#lost").hidden`)
	s.take("orders", 1)
	b.has("5,101")
}

// TestLostServer shows that a server is late, and that one which has ended is
// gone.
func TestLostServer(t *testing.T) {
	browser := newBrowser(t)
	store := new(memstore.Store)
	a := start(t, options{store: store, host: "ids-0.example.com"})
	c := start(t, options{store: store, host: "ids-2.example.com"})
	// Its clock was an hour ahead, so it stays listed for an hour.
	last := must.Get(json.Marshal(members.Server{ID: "x", Host: "ids-1.example.com", Seen: time.Now().Add(time.Hour - time.Second), Until: time.Now().Add(time.Hour)}))(t)
	// In a record that neither of two servers takes.
	faultstore.Put(t, store, "members/v1/0099", string(last))
	a.take("orders", 1)
	b := newTab(t, browser, a.url())
	b.open("/members")
	state := func(host string) string {
		return `[...document.querySelectorAll(".members li")].find(l => l.innerText.includes(` + quote(host) + `))?.querySelector(".state").textContent`
	}
	b.wait("both to be up", state("ids-0.example.com")+` === "up" && `+state("ids-2.example.com")+` === "up"`)
	c.leave()
	b.wait("one to be late and one to be gone", state("ids-1.example.com")+` === "late" && `+state("ids-2.example.com")+` === undefined`)
	b.looks("members-late")
	b.open("/")
	b.wait("two servers to be counted", `[...document.querySelectorAll("dt")].find(d => d.textContent === "Servers").nextElementSibling.textContent === "2"`)
	b.wait("the late server to be wrong", `document.querySelector(".troubles li").innerText.includes("ids-1.example.com")`)
}

// TestStoreAway is honest about a store that does not answer.
func TestStoreAway(t *testing.T) {
	browser := newBrowser(t)
	a, _, store := fleet(t)
	b := newTab(t, browser, a.url())
	b.permit("503")
	b.open("/")
	b.has("orders")
	store.Cut.Store(true)
	b.has("The store is unavailable.")
	b.has("Its data below is from")
	b.looks("store-away")
	b.open("/sequencers/orders")
	b.has("The store is unavailable.")
	store.Cut.Store(false)
	b.has("attached")
	b.wait("the note to go", `!document.body.innerText.includes("The store is unavailable.")`)
}

// TestBucket makes the first ID with a bucket as the store, kills its server,
// and starts it again.
func TestBucket(t *testing.T) {
	browser := newBrowser(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
	gateway := s3test.Start(t, t.TempDir())
	store := must.Get(stores.Open(t.Context(), "s3://ids/firn?path-style=true&endpoint=http://"+gateway.Address))(t)
	t.Cleanup(func() { _ = store.Close() })
	b := newTab(t, browser, start(t, options{store: store, host: "one"}).url())
	b.permit("503")
	b.open("/")
	b.has("No sequencers yet")
	b.do(click(".inline button"))
	b.has("Just made by the sequencer orders")
	b.open("/sequencers/orders")
	b.has("attached")
	gateway.Kill()
	b.has("The store is unavailable.")
	gateway.Begin()
	b.wait("the note to go", `!document.body.innerText.includes("The store is unavailable.")`)
	b.has("attached")
}

// TestDestroy destroys a sequencer, which needs its name.
func TestDestroy(t *testing.T) {
	browser := newBrowser(t)
	s := start(t, options{host: "one"})
	s.take("parcels", 1)
	b := newTab(t, browser, s.url())
	b.permit("400")
	b.open("/sequencers/parcels")
	b.do(click(`a[href="/sequencers/parcels/destroy"]`), visible(".means"))
	if !js[bool](b, `document.querySelector(".confirm button").disabled`) {
		t.Error("the button works before the name was typed")
	}
	// The server asks for the name too.
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#confirm").removeAttribute("required"); document.querySelector(".confirm button").disabled = false`),
		click(".confirm button"))
	b.has("The typed name does not match")
	b.do(keys("#confirm", "parcels"))
	b.wait("the button", `!document.querySelector(".confirm button").disabled`)
	b.do(click(".confirm button"))
	b.wait("the state", `document.querySelector(".title .state").textContent === "destroyed"`)
	b.looks("destroyed")
}

// TestWithoutScript does what pages do without JavaScript.
func TestWithoutScript(t *testing.T) {
	browser := newBrowser(t)
	s := start(t, options{host: "one"})
	b := newTab(t, browser, s.url())
	b.noScript(true)
	b.open("/")
	b.do(click(".inline button"), visible("h2.id"))
	id := b.text("h2.id")
	b.open("/inspect")
	b.do(keys("#ids", id), click("button.main"), visible("h2.id"))
	if at := b.at(); at != s.url()+"/inspect/"+strings.TrimSpace(id) {
		t.Errorf("the form leads to %s", at)
	}
	b.open("/")
	if got := b.text("#live"); !strings.HasPrefix(got, "As of ") {
		t.Errorf("without a script, the page says %q, want when its figures are from", got)
	}
	b.do(keys("#search", "nothing\r"))
	b.has("No sequencer matches")
	b.noScript(false)
}

// TestSignIn signs in with tokens that may take IDs alone, or see them, and
// out.
func TestSignIn(t *testing.T) {
	browser := newBrowser(t)
	token, hash := auth.NewToken()
	reader, readerHash := auth.NewToken()
	s := start(t, options{host: "one", tokens: "tokens: [{name: shop, role: generate, sha256: " + hash + "}, {name: desk, role: read, sha256: " + readerHash + "}]"})
	b := newTab(t, browser, s.url())
	b.permit("401")
	b.open("/inspect/5")
	b.has("This server requires a token")
	b.looks("sign-in")
	b.do(keys("#token", "firn_wrong"), click("button.main"))
	b.has("Unknown token")
	b.do(keys("#token", token), click("button.main"))
	b.has("shop")
	b.wait("the page that was asked for", `location.pathname === "/inspect/5"`)
	if got := js[string](b, `document.cookie`); got != "" {
		t.Errorf("scripts see the cookie %q", got)
	}
	b.open("/")
	b.wait("the page for those who see nothing of the fleet", `location.pathname === "/inspect"`)
	b.do(click(".inline button"))
	b.has("Just made by the sequencer orders")
	b.do(click(".who button"))
	b.has("This server requires a token")
	// A live page notices that the user has signed out in another tab.
	b.do(keys("#token", reader), click("button.main"))
	b.has("Live")
	b.do(chromedp.Evaluate[chromedp.Void](`fetch("/sign-out", {method: "POST"}); 0`))
	b.has("This server requires a token")
}
