// Webshop is a shop whose orders have one ID in three forms: a number in the
// database, order_… for the staff, in JSON and in the log, and v1_… in the URLs
// that customers see, which tells neither when nor how many orders were made.
//
//	umask 077; openssl rand -hex 32 > veil.keys
//	GOWORK=off go run . -database postgres://localhost/shop
//	curl -s -d item=tea localhost:8080/orders   # {"url":"/orders/v1_…"}
//	curl -s localhost:8080/orders/v1_…
//	curl -s localhost:8081/orders/order_…       # for the staff
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/sqlstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/typed"
	"github.com/firnid/firn/veil"
	_ "github.com/jackc/pgx/v5/stdlib"
)

type order struct{}

func (order) Prefix() string { return "order" }

// An OrderID is a number in SQL, and order_… in JSON and in the log.
type OrderID = typed.ID[order]

type Order struct {
	ID   OrderID `json:"id"`
	Item string  `json:"item"`
}

type Shop struct {
	db     *sql.DB
	ids    *sequencer.Sequencer
	public *veil.Codec // writes and reads the IDs in public URLs
}

// OpenShop keeps the orders and the records of Firn in one database.
func OpenShop(ctx context.Context, database, keyFile string) (*Shop, error) {
	secret, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	keys, err := veil.ParseKeys(string(secret))
	if err != nil {
		return nil, err
	}
	public, err := keys.Codec("orders", firn.Default())
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("pgx", database)
	if err != nil {
		return nil, err
	}
	const table = `CREATE TABLE IF NOT EXISTS orders (id bigint PRIMARY KEY, item text NOT NULL)`
	if _, err := db.ExecContext(ctx, table); err != nil {
		return nil, err
	}
	// Any number of shops may run: the store keeps their IDs apart.
	store, err := sqlstore.Open(ctx, db, sqlstore.PostgreSQL(), &sqlstore.Options{Create: true})
	if err != nil {
		return nil, err
	}
	ids, err := sequencer.Open(ctx, store, "orders", &sequencer.Options{Layout: firn.Default(), Prefix: "order"})
	return &Shop{db, ids, public}, err
}

func (s *Shop) place(r *http.Request) (any, error) {
	id, err := s.ids.Next(r.Context())
	if err != nil {
		return nil, err
	}
	const insert = `INSERT INTO orders VALUES ($1, $2)`
	if _, err := s.db.ExecContext(r.Context(), insert, OrderID(id), r.FormValue("item")); err != nil {
		return nil, err
	}
	log.Println("order placed:", OrderID(id)) // order_…
	public, err := s.public.Text(id)
	return map[string]string{"url": "/orders/" + public}, err // /orders/v1_…
}

// track shows an order to anyone who has its URL. Most made-up texts unveil to
// some ID: only the row tells whether it is that of an order.
func (s *Shop) track(r *http.Request) (any, error) {
	id, err := s.public.Parse(r.PathValue("id"))
	if err != nil {
		return nil, err // for a plain ID too: nobody can count through the orders
	}
	found, err := s.find(r.Context(), OrderID(id))
	return map[string]string{"item": found.Item}, err
}

// inspect shows an order to the staff, who see and type order_….
func (s *Shop) inspect(r *http.Request) (any, error) {
	id, err := typed.ParseID[order](r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return s.find(r.Context(), id)
}

func (s *Shop) find(ctx context.Context, id OrderID) (o Order, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT id, item FROM orders WHERE id = $1`, id).Scan(&o.ID, &o.Item)
	return o, err
}

// A handler returns what answers a request as JSON, or why it cannot.
type handler func(*http.Request) (any, error)

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := h(r)
	switch {
	case errors.As(err, new(*firn.ParseError)):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, sql.ErrNoRows):
		http.Error(w, "no such order", http.StatusNotFound)
	case err != nil:
		log.Printf("%s: %v", r.URL.Path, err)
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	default:
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func main() {
	database := flag.String("database", "postgres://localhost/shop", "URL of a PostgreSQL database")
	keyFile := flag.String("keys", "veil.keys", "file with the keys of public URLs")
	public := flag.String("public", "localhost:8080", "address for customers")
	staff := flag.String("staff", "localhost:8081", "address for the staff")
	flag.Parse()
	s, err := OpenShop(context.Background(), *database, *keyFile)
	if err != nil {
		log.Fatal(err)
	}
	customers, office := http.NewServeMux(), http.NewServeMux()
	customers.Handle("POST /orders", handler(s.place))
	customers.Handle("GET /orders/{id}", handler(s.track))
	office.Handle("GET /orders/{id}", handler(s.inspect))
	go func() { log.Fatal(http.ListenAndServe(*staff, office)) }()
	log.Fatal(http.ListenAndServe(*public, customers))
}
