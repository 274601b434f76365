package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestCreationsBlameTheirField: of an invalid creation, HTTP, gRPC and the
// console name the field that is wrong, and none of them creates the sequencer.
// One that exists is found, though the time of its layout has ended.
func TestCreationsBlameTheirField(t *testing.T) {
	store := new(memstore.Store)
	_, address := served(t, Config{Store: store})
	admin := firnv1.NewSequencersClient(nettest.DialGRPC(t, address))
	const over = "bits=time:31.node:10.seq:12,unit=1ms,epoch=2014-01-01T00:00:00Z"
	labels := map[string]string{
		"layout": "Layout", "max_ahead": "Maximum ahead of the clock", "window": "Window", "prefix": "Prefix",
	}
	for _, row := range []struct {
		sent map[string]string
		want []string // the fields that are wrong
		text string
	}{
		{map[string]string{"layout": "defualt"}, []string{"layout"}, "defualt"},
		{map[string]string{"layout": "xid"}, []string{"layout"}, "can be read but not made"},
		{map[string]string{"layout": over}, []string{"layout"}, "ended at 2014-01-25T20:31:23.648Z"},
		{map[string]string{"layout": "default,epoch=9000-01-01T00:00:00Z"}, []string{"layout"}, "before the layout's epoch"},
		{map[string]string{"layout": "bits=time~:53.seq:11"}, []string{"layout"}, "cannot be generated"},
		{map[string]string{"layout": over, "max_ahead": "1s", "window": "1m"}, []string{"layout"}, "ended at"},
		{map[string]string{"max_ahead": "3000h"}, []string{"max_ahead"}, "max-ahead is 3000h"},
		{map[string]string{"max_ahead": "3000h", "window": "1m", "prefix": "order"}, []string{"max_ahead"}, "3000h"},
		{map[string]string{"max_ahead": "1500us"}, []string{"max_ahead"}, "whole milliseconds"},
		{map[string]string{"max_ahead": "-1s"}, []string{"max_ahead"}, "not a duration"},
		{map[string]string{"window": "1s", "max_ahead": "1m"}, []string{"window"}, "at least 2m"},
		{map[string]string{"window": "1s"}, []string{"window"}, "at least 2s"},
		{map[string]string{"window": "9000h"}, []string{"window"}, "no more than"},
		{map[string]string{"window": "-1s"}, []string{"window"}, "not a duration"},
		{map[string]string{"prefix": "Order"}, []string{"prefix"}, "'O'"},
		{map[string]string{"layout": "defualt", "window": "-1s"}, []string{"layout", "window"}, "defualt"},
	} {
		body := must.Get(json.Marshal(row.sent))(t)
		r := must.Get(http.NewRequest("PUT", "http://"+address+"/v1/sequencers/orders", strings.NewReader(string(body))))(t)
		kind, _, detail := service.ReadProblem(answered(t, r, http.StatusBadRequest))
		detail = withoutTime(detail)
		if kind != "bad-body" || !strings.Contains(detail, row.text) {
			t.Errorf("HTTP, %s: %s %q, want bad-body with %q", body, kind, detail, row.text)
		}

		q := &firnv1.CreateRequest{Name: "orders", Layout: row.sent["layout"], Prefix: row.sent["prefix"],
			MaxAhead: sentDuration(t, row.sent["max_ahead"]), Window: sentDuration(t, row.sent["window"])}
		_, err := admin.Create(t.Context(), q)
		st := status.Convert(err)
		var reason string
		var fields, texts []string
		for _, d := range st.Details() {
			switch d := d.(type) {
			case *errdetails.ErrorInfo:
				reason = d.GetReason()
			case *errdetails.BadRequest:
				for _, v := range d.GetFieldViolations() {
					fields = append(fields, v.GetField())
					texts = append(texts, withoutTime(v.GetDescription()))
				}
			}
		}
		text := withoutTime(st.Message())
		if reason != kind || st.Code() != codes.InvalidArgument || text != detail || !slices.Equal(fields, row.want) {
			t.Errorf("gRPC, %s: %v %s of %v, %q, want %s of %v, %q", body, st.Code(), reason, fields, text, kind,
				row.want, detail)
			continue
		}

		form := url.Values{"name": {"orders"}, "layout": {row.sent["layout"]}, "prefix": {row.sent["prefix"]},
			"max-ahead": {row.sent["max_ahead"]}, "window": {row.sent["window"]}}
		r = must.Get(http.NewRequest("POST", "http://"+address+"/create", strings.NewReader(form.Encode())))(t)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", "text/html")
		page := withoutTime(html.UnescapeString(string(answered(t, r, http.StatusBadRequest))))
		var alert, blamed []string
		for i, field := range fields {
			label := cmp.Or(labels[field], field)
			alert = append(alert, fmt.Sprintf("%s: %s.", label, texts[i]))
			blamed = append(blamed, field+": "+texts[i])
			if !strings.Contains(page, ">"+label+"</label>") {
				t.Errorf("the form has no field %q", label)
			}
		}
		if want := strings.Join(alert, " "); !strings.Contains(page, want) {
			t.Errorf("console, %s: no %q in\n%s", body, want, page)
		}
		if got := strings.Join(blamed, "; "); got != detail {
			t.Errorf("%s: gRPC blames %q, HTTP %q", body, got, detail)
		}
	}
	if i, err := grant.Lookup(t.Context(), store, "orders"); err == nil {
		t.Errorf("it was created: %+v", i)
	}
	early := &grant.CreateOptions{Now: func() time.Time { return time.Date(2014, 1, 2, 0, 0, 0, 0, time.UTC) }}
	c := grant.DefaultConfig(store, firn.MustParseLayout(over), nil)
	must.Get(grant.Create(t.Context(), store, "orders", c, early))(t)
	r := must.Get(http.NewRequest("PUT", "http://"+address+"/v1/sequencers/orders",
		strings.NewReader(`{"layout":"`+over+`"}`)))(t)
	answered(t, r, http.StatusOK)
}

// withoutTime removes what the clock read from a text.
func withoutTime(text string) string {
	return regexp.MustCompile("the clock reads [0-9TZ:.-]+[0-9Z]").ReplaceAllString(text, "the clock reads …")
}

// answered returns the body of the answer to a request, which has a status.
func answered(t *testing.T, r *http.Request, status int) []byte {
	t.Helper()
	resp := must.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(t)
	if resp.StatusCode != status {
		t.Errorf("%s %s: status %d, want %d\n%s", r.Method, r.URL.Path, resp.StatusCode, status, body)
	}
	return body
}

// sentDuration returns a duration as gRPC sends it; nil if text is empty.
func sentDuration(t *testing.T, text string) *durationpb.Duration {
	t.Helper()
	if text == "" {
		return nil
	}
	return durationpb.New(must.Get(time.ParseDuration(text))(t))
}
