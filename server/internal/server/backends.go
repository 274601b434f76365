package server

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/operate/metrics"
	"github.com/firnid/firn/server/internal/operate/storehealth"
	"github.com/firnid/firn/server/internal/operate/tracing"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/service/forwarding"
)

// backends are where IDs come from: either static, or storeBackend with the
// fields below it.
type backends struct {
	backend service.Backend // what the protocols call: one of the two, asked at a limited rate whether it is ready
	static  *service.StaticBackend

	storeBackend *service.StoreBackend
	announcer    *members.Announcer
	answers      *storehealth.Answers
	peers        *forwarding.Peers // nil if no other server is asked
}

// newBackends makes the backends of a complete Config.
func newBackends(c Config, f *files, tracer *tracing.Tracer) (s backends, err error) {
	if c.Static != nil {
		static := *c.Static
		static.MaxSequencers, static.VeilKeys = c.MaxSequencers, c.VeilKeys
		s.static, err = service.NewStaticBackend(static)
		s.backend = s.static
		return s, err
	}
	s.answers = &storehealth.Answers{Logger: c.Logger}
	store := grant.Observe(tracer.Store(c.Store), s.answers.Observe)
	s.announcer = members.New(store, members.Options{Logger: c.Logger})
	c.Sequencers.Logger = cmp.Or(c.Sequencers.Logger, c.Logger)
	b := service.StoreBackendConfig{
		Admin: service.NewStoreAdmin(store, s.answers.Silent), Options: c.Sequencers, MaxSequencers: c.MaxSequencers,
		VeilKeys: c.VeilKeys, Template: c.Template,
	}
	if len(c.ForwardTo) > 0 {
		to := forwarding.Config{URLs: c.ForwardTo, Trace: tracer.Inject(), Logger: c.Logger}
		if f.forward != nil {
			to.Token = f.forward.Get
		}
		if f.tls != nil {
			to.TLS = f.tls.Client()
		}
		s.peers = forwarding.New(b.Admin, to)
		b.Peers = s.peers
	}
	s.storeBackend = service.NewStoreBackend(b)
	s.backend = service.NewReadiness(s.storeBackend)
	return s, nil
}

// minClosing is the minimum time for giving node IDs back after a context has
// ended.
const minClosing = time.Second

// close gives node IDs back until ctx is done, or the store accepts no more.
func (s *backends) close(ctx context.Context, log *slog.Logger) {
	if s.storeBackend == nil {
		return
	}
	if s.peers != nil {
		s.peers.Close()
	}
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(minClosing, cancel) })()
	if err := s.storeBackend.Close(within); err != nil {
		log.Warn("node IDs not released: they become free when their windows end", "error", err)
	}
}

// figures returns the statistics of the sequencers, for metrics.
func (s *backends) figures() (all []metrics.Sequencer) {
	figure := func(name string, u *service.Usage) metrics.Sequencer {
		m := metrics.Sequencer{Name: name, Stats: u.Stats.Stats}
		if k, _ := u.Problem(); k != service.NoProblem {
			m.Problem = k.String()
		}
		if l := u.Layout; !l.IsZero() {
			m.Ends = l.End()
		}
		return m
	}
	if s.static != nil {
		s.static.Usage(func(name string, u *service.Usage) { all = append(all, figure(name, u)) })
		return all
	}
	now := time.Now()
	s.storeBackend.Usage(func(name string, u *service.Usage) {
		m := figure(name, u)
		m.Stored, m.KeeperStats, m.Err = true, u.Keeper, cmp.Or(u.Status.Err, u.Refusal)
		m.Attached, m.Node, m.WindowLeft = u.Status.Holds(now), u.Status.Node, u.Status.Until.Sub(now)
		counts, counted := s.storeBackend.NodeCounts(name, now)
		m.Nodes, m.Counted = metrics.Nodes(counts), counted
		all = append(all, m)
	})
	return all
}
