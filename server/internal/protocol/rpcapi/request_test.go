package rpcapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
)

// TestRequestID: the ID that a client has sent comes back in headers, errors
// and log lines. An invalid one does not.
func TestRequestID(t *testing.T) {
	for what, backend := range map[string]Config{"good": {Backend: static(t, "default")}, "bad": {Backend: failing{errors.New("secret")}}} {
		var out bytes.Buffer // written before a call ends, and read after it
		backend.Log = slog.New(requestid.NewHandler(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
		ids := firnv1.NewIDsClient(serve(t, backend))
		for _, sent := range []string{"", "order-17", "a b", strings.Repeat("x", 129)} {
			for _, stream := range []bool{false, true} {
				out.Reset()
				ctx := t.Context()
				if sent != "" {
					ctx = metadata.AppendToOutgoingContext(ctx, requestid.Metadata, sent)
				}
				var header metadata.MD
				var err error
				if stream {
					var s grpc.BidiStreamingClient[firnv1.StreamRequest, firnv1.StreamResponse]
					if s, err = ids.Stream(ctx); err != nil {
						t.Fatal(err)
					}
					_ = s.Send(&firnv1.StreamRequest{Credit: 1})
					_ = s.CloseSend()
					for err == nil {
						_, err = s.Recv()
					}
					header, _ = s.Header()
				} else {
					_, err = ids.Next(ctx, &firnv1.NextRequest{}, grpc.Header(&header))
				}
				got := header.Get(requestid.Metadata)
				if len(got) != 1 || requestid.Valid(sent) && got[0] != sent || !requestid.Valid(sent) && len(got[0]) != 16 {
					t.Fatalf("%s, stream %t, with %q: %q comes back", what, stream, sent, got)
				}
				if what == "bad" {
					if !slices.ContainsFunc(status.Convert(err).Details(), func(d any) bool {
						info, ok := d.(*errdetails.RequestInfo)
						return ok && info.GetRequestId() == got[0]
					}) {
						t.Errorf("stream %t, with %q: the error's details are %v", stream, sent, status.Convert(err).Details())
					}
				}
				lines := 0
				for line := range bytes.Lines(out.Bytes()) {
					lines++
					var l map[string]any
					if err := json.Unmarshal(line, &l); err != nil || l["request_id"] != got[0] {
						t.Errorf("the log has %s, want the ID %s", line, got[0])
					}
				}
				if want := map[string]int{"good": 1, "bad": 2}[what]; lines != want {
					t.Errorf("%s, stream %t: %d log lines, want %d:\n%s", what, stream, lines, want, &out)
				}
			}
		}
	}
}
