package config

import "testing"

// TestIsTypo: typos are recognized, and deliberate names are not taken for
// typos.
func TestIsTypo(t *testing.T) {
	for _, row := range []struct {
		name, other string
		want        bool
	}{
		{"ordres", "orders", true}, {"order", "orders", true}, {"orderss", "orders", true}, {"Orders", "orders", true},
		{"orfers", "orders", true}, {"odres", "orders", false}, {"invioces", "invoices", true}, {"line-items", "line_items", true},
		{"user", "users", true}, {"usr", "user", true},
		{"orders", "orders", false}, {"orders1", "orders2", false}, {"orders-2026", "orders-2027", false}, {"orders", "orders2", false},
		{"a", "b", false}, {"eu", "us", false}, {"orders", "users", false}, {"cart", "card-payments", false},
	} {
		if got := IsTypo(row.name, row.other); got != row.want {
			t.Errorf("IsTypo(%q, %q) = %t, want %t", row.name, row.other, got, row.want)
		}
		if got := IsTypo(row.other, row.name); got != row.want {
			t.Errorf("IsTypo(%q, %q) = %t, want %t", row.other, row.name, got, row.want)
		}
	}
}
