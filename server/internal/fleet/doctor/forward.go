package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/service"
)

// Forward is how a server asks others for IDs.
type Forward struct {
	URLs  []string
	Token string
	TLS   *tls.Config
}

// forwards asks each server of --forward-to for one ID, as this server would.
func (r *report) forwards(ctx context.Context) {
	if r.c.Store == nil || len(r.c.Forward.URLs) == 0 {
		return
	}
	name := ""
	err := grant.Sequencers(ctx, r.c.Store, func(n string, i grant.Info, err error) bool {
		if err == nil && i.State == grant.Attached && i.MovedTo == "" {
			name = n
		}
		return name == ""
	})
	if err != nil {
		return // already found
	}
	client := &http.Client{
		Timeout:       5 * time.Second,
		Transport:     &http.Transport{TLSClientConfig: r.c.Forward.TLS, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, to := range r.c.Forward.URLs {
		r.forward(ctx, client, to, name)
	}
}

// forward asks one server for an ID of a sequencer, or whether it is ready if
// there is no sequencer.
func (r *report) forward(ctx context.Context, client *http.Client, to, name string) {
	path := "/v1/sequencers/" + name + "/next?format=raw"
	if name == "" {
		path = "/readyz"
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, to+path, http.NoBody)
	if err != nil {
		r.add("forward", Fix, "write --forward-to as https://HOST:PORT", "%v", err)
		return
	}
	if name == "" {
		q.Method = http.MethodGet
	}
	q.Header.Set(service.ForwardedHeader, "1")
	q.Header.Set("Accept", "application/octet-stream")
	if r.c.Forward.Token != "" {
		q.Header.Set("Authorization", "Bearer "+r.c.Forward.Token)
	}
	answer, err := client.Do(q)
	if err != nil {
		r.add("forward", Fix, "check the URL, its certificate, the network, and that the server runs", "cannot ask %s: %v", to, err)
		return
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	detail := detailOf(body)
	switch owner := answer.Header.Get(service.OwnerHeader); {
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		r.add("forward", Fix, "give --forward-token a token of that server with the role generate", "%s denies access: %s", to, detail)
	case answer.StatusCode == http.StatusNotFound:
		r.add("forward", Fix, "name servers of this store in --forward-to", "%s does not know sequencer %s: it uses another store, or is not a server of Firn", to, name)
	case answer.StatusCode == http.StatusServiceUnavailable:
		r.add("forward", Unknown, "", "%s has no IDs now: %s", to, detail)
	case answer.StatusCode != http.StatusOK:
		r.add("forward", Fix, "check the URL: it must be a server of Firn", "%s answers with status %d: %s", to, answer.StatusCode, detail)
	case name == "":
		r.add("forward", OK, "", "%s is ready; the store has no sequencer to ask it for", to)
	case !r.owns(ctx, name, owner):
		r.add("forward", Fix, "name servers of this store in --forward-to", "%s gives IDs that this store does not know: it uses another store or a static node ID", to)
	default:
		r.add("forward", OK, "", "%s gives IDs of this store", to)
	}
}

// owns reports whether an owner holds a node ID of a sequencer.
func (r *report) owns(ctx context.Context, name, owner string) (found bool) {
	_ = grant.Nodes(ctx, r.c.Store, name, func(n grant.NodeInfo, err error) bool {
		found = err == nil && owner != "" && n.Owner == owner
		return !found
	})
	return found
}

// detailOf returns why a server refuses, from its answer; "" if it is not Firn.
func detailOf(body []byte) string {
	var problem struct{ Detail string }
	_ = json.Unmarshal(body, &problem)
	return problem.Detail
}
