package console

import (
	"errors"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/veil"
)

// unveil sets the key of a veiled ID, and returns its sequencer: the one that the
// visitor named, or the only one that can have made an ID at that time. It does
// nothing for other IDs.
func (k *Console) unveil(v *visit, id, of string, o *inspect.Options) (string, error) {
	if _, veiled := veil.Number(id); !veiled || !o.From.IsAuto() {
		return of, nil
	}
	if of == "" && len(k.c.Veil) > 0 {
		of = k.sequencerOf(v, id)
	}
	if of != "" && !v.who.MayRead(of) && !v.who.MayMake(of) {
		return of, errors.New("permission denied: you may not see sequencer " + of)
	}
	o.Layout = firn.Layout{} // that of the sequencer
	reader := service.Reader{Backend: k.c.Backend, Veil: k.c.Veil, Limit: k.c.Limit, How: "name its sequencer under Layout and encoding"}
	if fault := reader.Options(v.r.Context(), of, id, o); fault != nil {
		return of, errors.New(fault.Detail)
	}
	return of, nil
}

// sequencerOf returns the sequencer of a veiled ID, or "" if several or none can
// have made it: the key of another sequencer gives a random time.
func (k *Console) sequencerOf(v *visit, id string) (of string) {
	const skew = time.Minute // of clocks
	for _, q := range k.snapshots.recent(v.r.Context()).Sequencers {
		if q.Fault != "" || !v.who.MayRead(q.Name) {
			continue
		}
		key, err := form.NewVeil(k.c.Veil, q.Name, q.Info.Config.Layout)
		if err != nil {
			continue
		}
		result, err := inspect.Read(id, inspect.Options{Layout: q.Info.Config.Layout, From: inspect.Veiled(key), Now: v.now})
		if err != nil {
			continue
		}
		made := result.Readings[0].Time
		if made.Before(q.Info.Created.Add(-skew)) || made.After(v.now.Add(q.Info.Config.MaxAhead+skew)) {
			continue
		}
		if of != "" {
			return ""
		}
		of = q.Name
	}
	return of
}
