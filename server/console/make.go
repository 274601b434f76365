package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/firnid/firn"
)

// limited is a request's context within Config.Limit.
func (k *Console) limited(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), k.c.Limit)
}

// next makes an ID of a sequencer, as its layout writes it.
func (k *Console) next(ctx context.Context, name string) (string, firn.Layout, error) {
	s, err := k.c.Backend.Sequencer(ctx, strings.Clone(name))
	if err != nil {
		return "", firn.Layout{}, err
	}
	if s.Source128 != nil {
		batch, err := s.Source128.NextBatch(ctx, 1)
		if err != nil {
			return "", s.Layout, err
		}
		for id := range batch.All() {
			return id.String(), s.Layout, nil
		}
		return "", s.Layout, errNone
	}
	batch, err := s.Source.NextBatch(ctx, 1)
	if err != nil {
		return "", s.Layout, err
	}
	for id := range batch.All() {
		return id.String(), s.Layout, nil
	}
	return "", s.Layout, errNone
}

// errNone is a fault of a source: it has promised one.
var errNone = errors.New("console: the source gave no ID")
