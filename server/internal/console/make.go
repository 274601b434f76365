package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/service"
)

// limited returns a request's context with Config.Limit.
func (k *Console) limited(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), k.c.Limit)
}

// next makes an ID of a sequencer, typed if it has a prefix, or else in its
// layout's format.
func (k *Console) next(ctx context.Context, name string, who visitor) (string, *firn.Layout, error) {
	var may auth.Authorizer
	if who.p != nil {
		may = k.c.Guard.As(who.p)
	}
	take := service.Taker{Backend: k.c.Backend, Auth: may, Limit: k.c.Limit}
	var f form.Form
	b, err := take.Take(ctx, strings.Clone(name), new(auth.Credentials), 1, service.Terms{Fit: func(s *service.Sequencer) error {
		if f = form.Of(s.Layout.Format()); s.Prefix != "" {
			f = form.TypedAs(s.Prefix)
		}
		return nil
	}})
	if err != nil {
		return "", nil, err
	}
	return string(b.At(0).Append(nil, &f)), b.Layout(), nil
}
