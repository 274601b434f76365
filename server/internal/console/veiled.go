package console

import (
	"errors"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/veil"
)

// unveil sets the key of a veiled ID of a sequencer that the visitor named. It
// does nothing for other IDs.
func (k *Console) unveil(v *visit, id, of string, o *inspect.Options) error {
	if _, veiled := veil.Number(id); !veiled || !o.From.IsAuto() {
		return nil
	}
	if of != "" && !v.who.MayRead(of) && !v.who.may(auth.Take, of) {
		return errors.New("permission denied: you may not see sequencer " + of)
	}
	o.Layout = firn.Layout{} // that of the sequencer
	reader := service.Reader{Backend: k.c.Backend, Veil: k.c.Veil, Limit: k.c.Limit, How: "name its sequencer under Layout and encoding"}
	if fault := reader.Options(v.r.Context(), of, id, o); fault != nil {
		return errors.New(fault.Detail)
	}
	return nil
}
