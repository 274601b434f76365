package respapi

import (
	"context"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// script sends commands on one connection and compares the beginnings of the
// answers.
func script(t *testing.T, s *Server, steps [][2]string) {
	t.Helper()
	var in strings.Builder
	for _, step := range steps {
		in.WriteString(line(step[0]))
	}
	all := values(t, talk(s, in.String()))
	if len(all) != len(steps) {
		t.Fatalf("%d answers, want %d: %v", len(all), len(steps), all)
	}
	for i, step := range steps {
		if got := all[i].String(); !strings.HasPrefix(got, step[1]) || step[1] == "" && got != "" {
			t.Errorf("%d: %s = %s, want %s", i, step[0], got, step[1])
		}
	}
}

// TestTransactions: EXEC answers what MULTI has queued. Nothing is taken before
// it, and nothing at all after an error.
func TestTransactions(t *testing.T) {
	const aborted = "-EXECABORT Transaction discarded because of previous errors."
	for name, steps := range map[string][][2]string{
		"all": {
			{"MULTI", "+OK"}, {"INCR a", "+QUEUED"}, {"INCRBY a 1", "+QUEUED"}, {"NEXT a", "+QUEUED"}, {"NEXT a 2", "+QUEUED"}, {"PING", "+QUEUED"}, {"NEXTB a 1", "+QUEUED"},
			{"EXEC", "(:1 :2 3 (4 5) +PONG \x00\x00\x00\x00\x00\x00\x00\x06)"}, {"NEXT a", "7"},
		},
		"empty":   {{"MULTI", "+OK"}, {"EXEC", "()"}, {"EXEC", "-ERR EXEC without MULTI"}},
		"discard": {{"DISCARD", "-ERR DISCARD without MULTI"}, {"MULTI", "+OK"}, {"INCR a", "+QUEUED"}, {"DISCARD", "+OK"}, {"EXEC", "-ERR EXEC without MULTI"}, {"NEXT a", "1"}},
		"reset":   {{"MULTI", "+OK"}, {"INCR a", "+QUEUED"}, {"RESET", "+RESET"}, {"EXEC", "-ERR EXEC without MULTI"}, {"NEXT a", "1"}},
		"quit":    {{"MULTI", "+OK"}, {"INCR a", "+QUEUED"}, {"QUIT", "+OK"}},
		"nested":  {{"MULTI", "+OK"}, {"INCR a", "+QUEUED"}, {"MULTI", "-ERR MULTI calls can not be nested"}, {"EXEC", aborted}, {"MULTI", "+OK"}, {"NEXT a", "+QUEUED"}, {"EXEC", "(1)"}},
		"unknown": {{"MULTI", "+OK"}, {"INCR a", "+QUEUED"}, {"GET a", "-ERR unknown command 'GET'"}, {"INCR a", "+QUEUED"}, {"EXEC", aborted}, {"NEXT a", "1"}},
		"arity":   {{"MULTI", "+OK"}, {"INCR", "-ERR wrong number of arguments"}, {"EXEC", aborted}},
		"amount":  {{"MULTI", "+OK"}, {"INCRBY a 5", `-ERR bad-parameter: INCRBY makes one ID, so its amount must be 1: for several IDs use NEXT a 5`}, {"EXEC", aborted}},
		"count":   {{"MULTI", "+OK"}, {"NEXT a 0", "-ERR bad-parameter: count is"}, {"EXEC", aborted}},
		"name":    {{"MULTI", "+OK"}, {"NEXT a/b", "-ERR bad-name: invalid sequencer name"}, {"EXEC", aborted}},
		"hello":   {{"MULTI", "+OK"}, {"HELLO 3", "+QUEUED"}, {"EXEC", "(map("}, {"HELLO 2", "(server"}},
		// What follows EXEC in the same packet is not part of it, even if it is
		// equal.
		"after": {{"MULTI", "+OK"}, {"INCR a", "+QUEUED"}, {"EXEC", "(:1)"}, {"INCR a", ":2"}, {"INCR a", ":3"}, {"INCR a", ":4"}, {"INCR a", ":5"}, {"INCR a", ":6"}, {"INCR a", ":7"}},
	} {
		t.Run(name, func(t *testing.T) { script(t, NewServer(Config{Front: service.Front{Backend: counting()}}), steps) })
	}
}

// TestTransactionCutAnywhere: a connection that ends anywhere before the last
// byte of EXEC has taken nothing.
func TestTransactionCutAnywhere(t *testing.T) {
	taken := 0
	s := NewServer(Config{Front: service.Front{Backend: servicetest.Open(func(_ context.Context, n int) (firn.Batch, error) {
		taken += n
		return firn.BatchFromRuns(firn.Run{First: 1, Step: 1, Count: n})
	})}})
	in := line("MULTI") + strings.Repeat(line("INCR a"), 20) + line("NEXT a 100") + line("NEXTB b 7") + "NEXT a\r\n" + line("EXEC")
	for i := range len(in) {
		talk(s, in[:i])
	}
	if taken != 0 {
		t.Fatalf("%d IDs were taken before EXEC", taken)
	}
	if talk(s, in); taken != 128 {
		t.Errorf("%d IDs were taken by EXEC, want 128", taken)
	}
}

// TestTransactionBounds: beyond the limits of a transaction nothing is kept.
func TestTransactionBounds(t *testing.T) {
	s := NewServer(Config{Front: service.Front{Backend: counting(), Limits: service.Limits{Body: 1 << 10}}})
	for _, tt := range []struct{ in, want string }{
		{strings.Repeat(line("ECHO a"), 2048/len(line("ECHO a"))), "(a a "},
		{strings.Repeat(line("ECHO a"), 2048/len(line("ECHO a"))+1), "-EXECABORT"},
		{cmd("ECHO", strings.Repeat("x", 1<<10)) + cmd("ECHO", strings.Repeat("y", 1<<10)), "-EXECABORT"},
	} {
		all := values(t, talk(s, line("MULTI")+tt.in+line("EXEC")))
		if got := all[len(all)-1].String(); !strings.HasPrefix(got, tt.want) {
			t.Errorf("EXEC after %.40q… = %.60s, want %s", tt.in, got, tt.want)
		}
	}
	c := &conn{server: s, nc: &discardConn{}, creds: new(auth.Credentials)}
	c.Take()
	c.buf = []byte(line("MULTI") + strings.Repeat(line("INCR a")+line("INCR b"), 1000))
	c.w = len(c.buf)
	c.answer()
	if c.tx == nil || !c.tx.aborted || c.tx.raw != nil {
		t.Errorf("what was too much is kept: %+v", c.tx)
	}
}

// TestTransactionPermissions: a client that may not take IDs of a name gets the
// error when it queues the command, and a token that ends before EXEC takes
// nothing.
func TestTransactionPermissions(t *testing.T) {
	script(t, NewServer(Config{Front: service.Front{Backend: counting(), Auth: guard{allows: onlyOrders}}}), [][2]string{
		{"MULTI", "-NOAUTH"}, {"EXEC", "-NOAUTH"}, {"AUTH right", "+OK"},
		{"MULTI", "+OK"}, {"INCR orders", "+QUEUED"}, {"INCR users", "-NOPERM forbidden: permission denied: this token does not allow it"}, {"EXEC", "-EXECABORT"},
		{"MULTI", "+OK"}, {"AUTH wrong", "+QUEUED"}, {"INCR orders", "+QUEUED"}, {"EXEC", "(-WRONGPASS invalid username-password pair or user is disabled: the password must be a token from this server's token file :1)"},
		{"CLIENT INFO", "id=1 "},
	})
	script(t, NewServer(Config{Front: service.Front{Backend: counting(), Auth: guard{allows: ending(4)}}}), [][2]string{
		{"AUTH right", "+OK"}, {"MULTI", "+OK"}, {"INCR orders", "+QUEUED"}, {"EXEC", "(-NOAUTH"},
	})
}
