// Package shop stores orders whose primary keys are Firn IDs, with GORM.
package shop

import (
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/typed"
	"gorm.io/gorm"
)

type order struct{}

func (order) Prefix() string { return "order" }

// An Order is a row of the table orders. Its ID is a bigint there, and order_…
// in JSON.
type Order struct {
	ID   typed.ID[order] `gorm:"primaryKey;autoIncrement:false"`
	Item string
}

// BeforeCreate sets the ID. GORM calls it for each row of a bulk insert.
func (o *Order) BeforeCreate(tx *gorm.DB) error {
	orders, _ := tx.Get("orders") // the program calls db = db.Set("orders", c.Sequencer("orders"))
	id, err := orders.(*client.Sequencer).Next(tx.Statement.Context)
	o.ID = typed.ID[order](id)
	return err
}
