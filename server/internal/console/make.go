package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
)

// limited returns a request's context with Config.Limit.
func (k *Console) limited(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), k.c.Limit)
}

// next makes an ID of a sequencer, in its layout's format.
func (k *Console) next(ctx context.Context, name string, who visitor) (string, firn.Layout, error) {
	var may auth.Authorizer
	if who.p != nil {
		may = k.c.Guard.As(who.p)
	}
	s, err := service.Find(ctx, k.c.Backend, strings.Clone(name), may, func() *auth.Credentials { return new(auth.Credentials) })
	if err != nil {
		return "", firn.Layout{}, err
	}
	text := ""
	if s.Source128 != nil {
		text, err = firstOf(ctx, s.Source128)
	} else {
		text, err = firstOf(ctx, s.Source)
	}
	return text, s.Layout, err
}

// firstOf returns the text of an ID from a source.
func firstOf[I interface {
	firn.AnyID[I]
	String() string
}](ctx context.Context, source firn.SourceOf[I]) (string, error) {
	b, err := source.NextBatch(ctx, 1)
	if err = service.CheckLen(b.Len(), 1, err); err != nil {
		return "", err
	}
	for id := range b.All() {
		return id.String(), nil
	}
	return "", nil
}
