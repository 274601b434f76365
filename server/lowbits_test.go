package server

import (
	"strings"
	"testing"
)

// TestLowBits: the setting reaches sequencers that are created by using them.
func TestLowBits(t *testing.T) {
	var c Config
	c.Sequencers.LowBits = 4
	_, address := served(t, c)
	send(t, address, "POST /v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if code, answer := send(t, address, "GET /v1/sequencers/orders HTTP/1.1\r\nHost: localhost\r\n\r\n"); code != 200 || !strings.Contains(answer, `"low_bits":"even:4"`) {
		t.Errorf("%d %s, want even:4", code, answer)
	}
}
