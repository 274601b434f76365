package typed_test

import (
	"encoding/json"
	"fmt"

	"github.com/firnid/firn/typed"
)

type order struct{}

func (order) Prefix() string { return "order" }

type OrderID = typed.ID[order]

type customer struct{}

func (customer) Prefix() string { return "customer" }

// A kind is declared once. Its IDs are then typed in JSON, and numbers in SQL.
func Example() {
	id := OrderID(117383499776000003)
	text, _ := json.Marshal(map[string]any{"order": id})
	fmt.Println(string(text))
	number, _ := id.Value()
	fmt.Println(number)

	parsed, _ := typed.ParseID[order]("order_03887nf7a8003")
	fmt.Println(parsed == id)
	_, err := typed.ParseID[customer]("order_03887nf7a8003")
	fmt.Println(err)
	// Output:
	// {"order":"order_03887nf7a8003"}
	// 117383499776000003
	// true
	// firn: parse typed ID "order_03887nf7a8003": its prefix is "order", not "customer"
}
