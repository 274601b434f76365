package shop

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/firnid/firn/client"
	"github.com/firnid/firn/client/clienttest"
	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
)

func open(t *testing.T) *gorm.DB {
	t.Helper()
	h, err := clienttest.NewHandler(nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{Servers: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	db, err := gorm.Open(sqlite.Open(t.TempDir()+"/shop.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.AutoMigrate(&Order{}); err != nil {
		t.Fatal(err)
	}
	return db.Set("orders", c.Sequencer("orders"))
}

func TestCreate(t *testing.T) {
	db := open(t)
	tea := Order{Item: "tea"}
	if err := db.Create(&tea).Error; err != nil {
		t.Fatal(err)
	}
	var found Order
	if err := db.First(&found, tea.ID).Error; err != nil || found != tea {
		t.Errorf("First(%v) = %v, %v, want %v", tea.ID, found, err, tea)
	}
	text, err := json.Marshal(found)
	if err != nil || !strings.HasPrefix(string(text), `{"ID":"order_`) {
		t.Errorf("Marshal(%v) = %s, %v, want typed text", found, text, err)
	}
	var kind string
	if err := db.Raw("SELECT typeof(id) FROM orders").Scan(&kind).Error; err != nil || kind != "integer" {
		t.Errorf("the database has %s, %v, want integer", kind, err)
	}
}

func TestBulkInsert(t *testing.T) {
	db := open(t)
	const n = 5000
	if err := db.CreateInBatches(make([]Order, n), 500).Error; err != nil {
		t.Fatal(err)
	}
	var rows int64
	if err := db.Model(&Order{}).Where("id > 0").Count(&rows).Error; err != nil || rows != n {
		t.Errorf("%d rows, %v, want %d", rows, err, n)
	}
}
