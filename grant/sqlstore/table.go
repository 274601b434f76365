package sqlstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// open finds the table, creates it if requested, and checks that it keeps what
// is written to it. From then on the Store uses its name with its schema, so
// that neither another search path nor a temporary table can replace it.
func (s *store) open(ctx context.Context, table string, create bool) error {
	schema, name, err := s.d.split(table)
	if err != nil {
		return err
	}
	if err := s.choosePrimary(ctx); err != nil {
		return err
	}
	if err := s.d.check(ctx, s.db); err != nil {
		return err
	}
	s.name(s.d.quoted(schema, name))
	_, err = s.db.ExecContext(ctx, s.in(s.d.exists))
	if s.d.missing(err) && schema == "" && s.d.elsewhere != nil {
		// If each user has a schema, each would create a table, and IDs would
		// repeat.
		found, err := s.d.elsewhere(ctx, s.db, name)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return fmt.Errorf("%w: no table %s in this user's search path, but one in schema %s: add the schema to the name, as in %s.%s; to create another table, name its schema",
				errSchema, name, strings.Join(found, " and "), found[0], name)
		}
	}
	if s.d.missing(err) && create {
		_, refused := s.db.ExecContext(ctx, s.in(s.d.create))
		// Another process may have created it at the same time.
		if _, err = s.db.ExecContext(ctx, s.in(s.d.exists)); err != nil && refused != nil {
			err = fmt.Errorf("create it: %w", refused)
		}
	}
	if s.d.missing(err) {
		return fmt.Errorf("%w %s", ErrNoTable, table)
	}
	if err != nil {
		return fmt.Errorf("sqlstore: table %s: %w", table, err)
	}
	if schema == "" {
		found, err := s.d.schemas(ctx, s.db, name)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return fmt.Errorf("%w: table %s is temporary", ErrUnfit, name)
		case len(found) > 1:
			return fmt.Errorf("%w: table %s exists in each of the schemas %s, and another user may see a different one; add the schema to the name, as in %s.%s",
				errSchema, name, strings.Join(found, " and "), found[0], name)
		}
		schema = found[0]
	}
	s.name(s.d.quoted(schema, name))
	s.schema, s.unquoted = schema, name
	if err := s.d.checkTable(ctx, s.db, schema, name); err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	return s.identify(ctx, create)
}

// choosePrimary finds the expression by which the server describes itself, and
// checks that it is a primary.
func (s *store) choosePrimary(ctx context.Context) (err error) {
	var state int64
	for _, s.primary = range s.d.primary {
		if err = s.db.QueryRowContext(ctx, "SELECT "+s.primary).Scan(&state); err == nil {
			break
		}
	}
	switch {
	case err != nil:
		return err
	case state < 0:
		return fmt.Errorf("%w: connect to the primary", ErrReplica)
	}
	s.promoted.Store(state)
	return nil
}

// identify checks that the table has an identity, and creates one if the table
// has no rows. Other processes may do so at the same time.
func (s *store) identify(ctx context.Context, create bool) error {
	var filled bool
	if err := s.db.QueryRowContext(ctx, s.in(s.d.rows)).Scan(&filled); err != nil {
		return err
	}
	if create && !filled {
		if _, err := s.db.ExecContext(ctx, s.insert, identityKey, []byte(rand.Text())); err != nil && !s.d.duplicate(err) {
			return err
		}
	}
	_, _, err := s.Lineage(ctx)
	return err
}

// probe writes rows and reads them back, in a transaction that it rolls back.
// It detects anything that changes keys or values on their way; checkTable
// covers only the common causes. A user without permission to write is
// accepted, because reading does no harm.
func (s *store) probe(ctx context.Context) error {
	var err error
	for again := 1; ; again++ {
		if err = s.probeOnce(ctx); !s.d.again(err) || !pause(ctx, again) {
			break
		}
	}
	if err == nil || s.d.denied(err) || s.d.readOnly(err) {
		return nil
	}
	return fmt.Errorf("sqlstore: write to table %s and read it back: %w", s.table, err)
}

func (s *store) probeOnce(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	prefix := "!probe/" + rand.Text() + "/"
	keys := []string{prefix + "A", prefix + "a", prefix + strings.Repeat("b", 256-len(prefix))} // in order

	// Every byte, and bytes at the end that are easily lost.
	value := make([]byte, 4096)
	for i := range value {
		value[i] = byte(i)
	}
	copy(value[len(value)-4:], "a \x00 ")
	upper := bytes.Clone(value)
	upper[len(upper)-4] = 'A'

	damaged := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s; look for triggers, rules and column types", errSchema, fmt.Sprintf(format, args...))
	}
	change := func(statement string, args ...any) (int64, error) {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
	for _, key := range slices.Backward(keys) {
		switch n, err := change(s.insert, key, value); {
		case s.d.duplicate(err), err == nil && n != 1:
			return damaged("a new row with a key of %d bytes is not inserted", len(key))
		case err != nil:
			return err
		}
	}
	var got []byte
	var state int64
	if err := tx.QueryRowContext(ctx, s.get, keys[0]).Scan(&got, &state); err != nil {
		return err
	}
	if !bytes.Equal(got, value) {
		return damaged("a value of %d bytes is read back as another of %d", len(value), len(got))
	}
	for _, old := range [][]byte{upper, value[:len(value)-1], value} {
		switch n, err := change(s.update, []byte("x"), keys[0], old); {
		case err != nil:
			return err
		case (n == 1) != bytes.Equal(old, value):
			return damaged("an update changes %d rows, with values that are equal: %t", n, bytes.Equal(old, value))
		}
	}
	found, err := readRows(ctx, tx, s.list, prefix, prefix+"~", len(keys)+1)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(found, keys, func(r row, key string) bool { return r.key == key }) {
		return damaged("keys are not listed in the order of their bytes")
	}
	return nil
}

// A row is a key and its value, and the value of primary on the server that
// returned it; see Dialect.
type row struct {
	key   string
	value []byte
	state int64
}

func readRows(ctx context.Context, q querier, query string, args ...any) (all []row, err error) {
	err = eachRow(ctx, q, query, args, func(rows *sql.Rows) error {
		var r row
		err := rows.Scan(&r.key, &r.value, &r.state)
		all = append(all, r)
		return err
	})
	return all, err
}
