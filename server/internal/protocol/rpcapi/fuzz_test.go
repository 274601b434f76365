package rpcapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
)

// A tally is a backend whose IDs are 1, 2, 3 and so on, and which counts them.
type tally struct {
	layout firn.Layout
	given  uint64
}

func (s *tally) Sequencer(context.Context, string, service.Creator) (*service.Sequencer, error) {
	if s.layout.Bits() == 128 {
		return service.NewSequencer(s.layout, wideTally{s}), nil
	}
	return service.NewSequencer(s.layout, s), nil
}

func (*tally) Ready(context.Context) error      { return nil }
func (*tally) Admin() service.Administrator     { return nil }
func (*tally) Opened(string) *service.Sequencer { return nil }

func (s *tally) NextBatch(_ context.Context, n int) (firn.Batch, error) {
	s.given += uint64(n)
	return firn.BatchFromRuns(firn.Run{First: firn.ID(s.given - uint64(n) + 1), Step: 1, Count: n}), nil
}

type wideTally struct{ s *tally }

func (w wideTally) NextBatch(_ context.Context, n int) (firn.Batch128, error) {
	w.s.given += uint64(n)
	return firn.BatchFromRuns(firn.RunOf[firn.ID128]{First: firn.ID128FromUint64s(0, w.s.given-uint64(n)+1), Step: 1, Count: n}), nil
}

// idsOf are the IDs of an answer, in whatever form they are.
func idsOf(t *testing.T, ids []uint64, ids128 []byte, runs []*firnv1.Run) (all []uint64) {
	all = slices.Clone(ids)
	if len(ids128)%16 != 0 {
		t.Fatalf("%d octets are no IDs of 128 bits", len(ids128))
	}
	for b := range slices.Chunk(ids128, 16) {
		_, lo := firn.ID128(b).Uint64s()
		all = append(all, lo)
	}
	for _, r := range runs {
		first := r.First
		if r.First128 != nil {
			if len(r.First128) != 16 || r.First != 0 {
				t.Fatalf("a run begins with %x and %d", r.First128, r.First)
			}
			_, first = firn.ID128(r.First128).Uint64s()
		}
		for i := range uint64(r.Count) {
			all = append(all, first+i*r.Step)
		}
	}
	forms := 0
	for _, n := range []int{len(ids), len(ids128), len(runs)} {
		if n > 0 {
			forms++
		}
	}
	if forms != 1 {
		t.Fatalf("an answer has %d IDs, %d octets and %d runs", len(ids), len(ids128), len(runs))
	}
	return all
}

// wireSeeds are messages with each field as odd as can be.
func wireSeeds(f *testing.F, add func([]byte)) {
	names := []string{"", "orders", "a/b", "-", "\x00", string(bytes.Repeat([]byte("x"), 129))}
	var all []proto.Message
	for _, name := range names {
		all = append(all, &firnv1.NextRequest{Sequencer: name}, &firnv1.GetRequest{Name: name}, &firnv1.CreateRequest{Name: name})
	}
	for _, n := range []uint32{1, service.MaxCount, service.MaxCount + 1, math.MaxInt32, math.MaxUint32} {
		all = append(all, &firnv1.NextRequest{Count: n}, &firnv1.StreamRequest{Batch: n, Credit: 5})
	}
	for _, form := range []firnv1.Form{firnv1.Form_FORM_RUNS, 3, -1, math.MaxInt32} {
		all = append(all, &firnv1.NextRequest{Form: form}, &firnv1.StreamRequest{Form: form, Credit: 1})
	}
	for _, n := range []uint64{1, maxCredit, maxCredit + 1, math.MaxUint64} {
		all = append(all, &firnv1.StreamRequest{Sequencer: "orders", Credit: n})
	}
	for _, d := range []*durationpb.Duration{{Seconds: -1}, {Nanos: -1}, {Seconds: 1, Nanos: -1}, {Nanos: math.MaxInt32}, {Seconds: math.MaxInt64}, {Seconds: 315576000000}, durationpb.New(math.MaxInt64), {Seconds: 45}} {
		all = append(all, &firnv1.CreateRequest{Name: "orders", MaxAhead: d}, &firnv1.CreateRequest{Name: "orders", Window: d}, &firnv1.CreateRequest{Name: "orders", MaxAhead: d, Window: d})
	}
	for _, layout := range []string{"hazelcast", "xid", "defualt", "bits=time:63.seq:1", "uuidv7", "boundary"} {
		all = append(all, &firnv1.CreateRequest{Name: "orders", Layout: layout})
	}
	for _, m := range all {
		b, err := proto.Marshal(m)
		if err != nil {
			continue // a name that is not UTF-8 cannot be sent
		}
		add(b)
	}
	add([]byte{0x0a, 0x03, 'a', 'b', 'c', 0x0a, 0x01, 'x', 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}) // a name twice, a count of 64 bits
	add([]byte{0x78, 0x01, 0xfa, 0x01, 0x00})                                                                                 // unknown fields
}

// FuzzNextForms: whatever a request has in it, it has as many IDs as it says,
// each of them once and in the form it wants, or an error for which none was
// taken.
func FuzzNextForms(f *testing.F) {
	wireSeeds(f, func(b []byte) { f.Add(b, uint8(len(b))) })
	layouts := []firn.Layout{firn.Default(), firn.MustParseLayout("boundary"), firn.MustParseLayout("uuidv7")}
	f.Fuzz(func(t *testing.T, b []byte, which uint8) {
		var q firnv1.NextRequest
		if proto.Unmarshal(b, &q) != nil {
			return
		}
		s := &tally{layout: layouts[int(which)%len(layouts)]}
		server := NewServer(Config{Backend: s})
		r, err := server.Next(within(t.Context(), server), &q)
		if (r == nil) == (err == nil) {
			t.Fatal(r, err)
		}
		if err != nil {
			if status.Code(err) != codes.InvalidArgument || s.given != 0 {
				t.Fatalf("%v, and %d IDs were taken", err, s.given)
			}
			return
		}
		ids := idsOf(t, r.Ids, r.Ids128, r.Runs)
		if want := max(1, uint64(q.Count)); uint64(len(ids)) != want || s.given != want {
			t.Fatalf("%d IDs, and %d were taken, want %d", len(ids), s.given, want)
		}
		for i, id := range ids {
			if id != uint64(i)+1 {
				t.Fatalf("ID %d is %d", i, id)
			}
		}
		if got, want := len(r.Runs) > 0, q.Form == firnv1.Form_FORM_RUNS; got != want || q.Form > firnv1.Form_FORM_RUNS || q.Form < 0 {
			t.Fatalf("form %v: runs %v", q.Form, got)
		}
		if service.CheckName(q.Sequencer) != nil && q.Sequencer != "" || r.Layout != s.layout.String() {
			t.Fatalf("the name %q was served, with layout %s", q.Sequencer, r.Layout)
		}
	})
}

// A fakeStream is a stream whose client has sent all that it will ever send.
type fakeStream struct {
	grpc.ServerStream
	t     *testing.T
	ctx   context.Context
	in    []*firnv1.StreamRequest
	sends int // how many responses the client reads
	batch uint64
	ids   uint64
}

func (s *fakeStream) Context() context.Context { return s.ctx }

func (s *fakeStream) Recv() (*firnv1.StreamRequest, error) {
	if len(s.in) == 0 {
		return nil, io.EOF
	}
	r := s.in[0]
	s.in = s.in[1:]
	return r, nil
}

var errGone = errors.New("the client is gone")

func (s *fakeStream) Send(*firnv1.StreamResponse) error { panic("it is sent tracked") }

func (s *fakeStream) SendMsg(m any) error {
	r := m.(*tracked).m.(*firnv1.StreamResponse)
	m.(*tracked).gone()
	if size := proto.Size(r); size > maxPiece {
		s.t.Errorf("a response of %d bytes, want %d at most", size, maxPiece)
	}
	if s.sends--; s.sends < 0 {
		return errGone
	}
	ids := idsOf(s.t, r.Ids, r.Ids128, r.Runs)
	if uint64(len(ids)) > s.batch {
		s.t.Errorf("%d IDs in a response, want %d at most", len(ids), s.batch)
	}
	for _, id := range ids {
		if s.ids++; id != s.ids {
			s.t.Errorf("ID %d, want %d", id, s.ids)
			return errGone
		}
	}
	return nil
}

// FuzzStream: a stream sends what there is credit for, each ID once, and takes
// no more than that but what a client that has gone did not read.
func FuzzStream(f *testing.F) {
	wireSeeds(f, func(b []byte) { f.Add(b, []byte{}, b, uint8(3)) })
	wireSeeds(f, func(b []byte) { f.Add([]byte{0x10, 0x19, 0x18, 0x0a}, b, []byte{0x10, 0x07}, uint8(200)) })
	f.Fuzz(func(t *testing.T, first, second, third []byte, sends uint8) {
		s := &tally{layout: firn.Default()}
		server := NewServer(Config{Backend: s})
		stream := &fakeStream{t: t, ctx: within(t.Context(), server), sends: int(sends)}
		for _, b := range [][]byte{first, second, third} {
			var r firnv1.StreamRequest
			if proto.Unmarshal(b, &r) != nil {
				return
			}
			stream.in = append(stream.in, &r)
		}
		all := slices.Clone(stream.in)
		stream.batch = uint64(all[0].Batch)
		if stream.batch == 0 {
			stream.batch = 1000
		}
		err := server.Stream(stream)
		valid := service.CheckName(all[0].Sequencer) == nil || all[0].Sequencer == ""
		valid = valid && all[0].Batch <= maxBatch && all[0].Form >= 0 && all[0].Form <= firnv1.Form_FORM_RUNS
		credit := uint64(0)
		for i, r := range all {
			valid = valid && r.Credit <= maxCredit && (i == 0 || r.Sequencer == "" && r.Batch == 0 && r.Form == 0)
			if valid {
				credit += r.Credit
			}
		}
		gone := errors.Is(err, errGone)
		switch {
		case err == nil:
			if !valid || stream.ids != credit || s.given != credit {
				t.Fatalf("it ended in order with %d IDs, %d taken, of %d; valid %v", stream.ids, s.given, credit, valid)
			}
		case gone:
			if s.given > stream.ids+stream.batch {
				t.Fatalf("a client that has gone after %d IDs in batches of %d made it take %d", stream.ids, stream.batch, s.given)
			}
		case valid || status.Code(err) != codes.InvalidArgument:
			t.Fatalf("%v; valid %v", err, valid)
		}
		if stream.ids > credit || s.given > credit {
			t.Fatalf("%d IDs were sent and %d taken, with a credit of %d", stream.ids, s.given, credit)
		}
	})
}

var errNoMessage = errors.New("the bytes are no message")

// called makes a call with the message of some bytes.
func called[Q proto.Message, R any](ctx context.Context, b []byte, q Q, do func(context.Context, Q) (R, error)) (r R, err error) {
	if proto.Unmarshal(b, q) != nil {
		return r, errNoMessage
	}
	return do(ctx, q)
}

// FuzzSequencers: whatever administers a sequencer, what was done is there and
// can be stored, and what was refused has changed nothing.
func FuzzSequencers(f *testing.F) {
	for i := range uint8(6) {
		wireSeeds(f, func(b []byte) { f.Add(i, b) })
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		cluster := service.NewCluster(service.ClusterConfig{Fleet: service.NewFleet(new(memstore.Store), nil)})
		defer cluster.Close(context.Background())
		s := NewServer(Config{Backend: cluster, Limit: 10 * time.Second})
		ctx := within(t.Context(), s)
		if _, err := s.Create(ctx, &firnv1.CreateRequest{Name: "there"}); err != nil {
			t.Fatal(err)
		}
		state := func() map[string]grant.Info {
			all := make(map[string]grant.Info)
			if err := cluster.Sequencers(ctx, func(name string, info grant.Info, err error) bool {
				if err != nil || info.Config.Check() != nil || service.CheckName(name) != nil {
					t.Errorf("%q is stored: %+v, %v, %v", name, info, err, info.Config.Check())
				}
				all[name] = info
				return true
			}); err != nil {
				t.Fatal(err)
			}
			return all
		}
		before := state()
		var err error
		var got *firnv1.Sequencer
		name := ""
		switch which % 6 {
		case 0:
			q := new(firnv1.CreateRequest)
			var r *firnv1.CreateResponse
			if r, err = called(ctx, b, q, s.Create); err == nil {
				name, got = q.Name, r.Sequencer
				same := func(a, b *durationpb.Duration) bool {
					return a.GetSeconds() == b.GetSeconds() && a.GetNanos() == b.GetNanos()
				}
				if q.MaxAhead != nil && !same(q.MaxAhead, got.MaxAhead) || q.Window.AsDuration() != 0 && !same(q.Window, got.Window) {
					t.Errorf("%v made %v", q, got)
				}
			}
		case 1:
			q := new(firnv1.GetRequest)
			r, e := called(ctx, b, q, s.Get)
			name, got, err = q.Name, r.GetSequencer(), e
		case 2:
			q := new(firnv1.AttachRequest)
			r, e := called(ctx, b, q, s.Attach)
			name, got, err = q.Name, r.GetSequencer(), e
		case 3:
			q := new(firnv1.DetachRequest)
			r, e := called(ctx, b, q, s.Detach)
			name, got, err = q.Name, r.GetSequencer(), e
		case 4:
			q := new(firnv1.DestroyRequest)
			r, e := called(ctx, b, q, s.Destroy)
			name, got, err = q.Name, r.GetSequencer(), e
		case 5:
			r, e := called(ctx, b, new(firnv1.ListRequest), s.List)
			if !errors.Is(e, errNoMessage) && len(r.GetSequencers()) != 1 {
				t.Fatal(r, e)
			}
			return
		}
		if errors.Is(err, errNoMessage) {
			return
		}
		after := state()
		if err != nil {
			switch status.Code(err) {
			case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition:
			default:
				t.Fatal(err)
			}
			if len(after) != 1 || after["there"] != before["there"] {
				t.Fatalf("%v, and %v became %v", err, before, after)
			}
			return
		}
		info, ok := after[name]
		if !ok || got.Name != name || got.Layout != info.Config.Layout.String() || got.State != info.State.String() ||
			got.MaxAhead.AsDuration() != info.Config.MaxAhead || got.Window.AsDuration() != info.Config.Window {
			t.Fatalf("it says %v, and there is %+v", got, info)
		}
	})
}
