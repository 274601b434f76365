// Command postgres makes IDs with the PostgreSQL that a program already uses.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/sqlstore"
	"github.com/firnid/firn/sequencer"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

func main() {
	if err := run(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, database string) error {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool) // or your *sql.DB, of any driver
	defer db.Close()

	store, err := sqlstore.Open(ctx, db, sqlstore.PostgreSQL(), &sqlstore.Options{Create: true})
	if err != nil {
		return err
	}
	defer store.Close()
	orders, err := sequencer.Open(ctx, store, "orders", &sequencer.Options{Layout: firn.Default()})
	if err != nil {
		return err
	}
	defer orders.Close(ctx) // gives the node ID back, also after a signal

	for range 3 {
		id, err := orders.Next(ctx)
		if err != nil {
			return err
		}
		fmt.Println(id)
	}
	return nil
}
