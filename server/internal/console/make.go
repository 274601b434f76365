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
func (k *Console) next(ctx context.Context, name string, who visitor) (string, *firn.Layout, error) {
	var may auth.Authorizer
	if who.p != nil {
		may = k.c.Guard.As(who.p)
	}
	take := service.Taker{Backend: k.c.Backend, Auth: may, Limit: k.c.Limit}
	b, err := take.Take(ctx, strings.Clone(name), new(auth.Credentials), 1, service.Terms{})
	if err != nil {
		return "", nil, err
	}
	l := b.Layout()
	return string(b.At(0).Append(nil, l.Format())), l, nil
}
