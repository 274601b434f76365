package noderun

import "testing"

func TestTemplate(t *testing.T) {
	for _, tt := range []struct {
		text string
		node uint64
		want string
	}{
		{"", 5, ""}, {"x", 5, "x"}, {"{node}", 5, "5"}, {"a{node}b{node}", 7, "a7b7"},
		{"{node%32}", 869, "5"}, {"{node/32}", 869, "27"}, {"{node/32%4}", 869, "3"}, {"--w={node%32},{node/32}", 33, "--w=1,1"},
		{`{"a":{}}`, 1, `{"a":{}}`}, {"{nod}", 1, "{nod}"}, {"{{node}}", 1, "{1}"}, {"$NODE", 1, "$NODE"},
		{"{node}", 1<<64 - 1, "18446744073709551615"},
	} {
		got, err := ParseTemplate(tt.text)
		if err != nil || got.expand(tt.node) != tt.want {
			t.Errorf("%q with %d: %q, %v, want %q", tt.text, tt.node, got.expand(tt.node), err, tt.want)
		}
	}
	for _, text := range []string{"{node", "{node*2}", "{node%}", "{node%0}", "{node/0}", "{node/-1}", "{node% 2}", "{nodes}", "{node%18446744073709551616}", "{node/2%}", "{node 5}"} {
		if got, err := ParseTemplate(text); err == nil {
			t.Errorf("%q: %q, want an error", text, got.expand(1))
		}
	}
}

func TestVariable(t *testing.T) {
	v, err := ParseVariable("WORKER_ID={node%32}=x")
	if err != nil || v.Name != "WORKER_ID" || v.Value.expand(33) != "1=x" {
		t.Errorf("%+v, %v", v, err)
	}
	for _, text := range []string{"", "X", "=1", "A B=1", "X={node", "\x00=1"} {
		if _, err := ParseVariable(text); err == nil {
			t.Errorf("%q: want an error", text)
		}
	}
}
