package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/firnid/firn/grant"
)

// prepare finds the table, creates it if requested, and checks that it keeps what
// is written to it.
func (s *store) prepare(ctx context.Context) error {
	if err := s.choosePrimary(ctx); err != nil {
		return err
	}
	if err := s.dialect.check(ctx, s.db); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, s.expand(existsStatement))
	if s.dialect.hasCode(err, s.dialect.missing) && s.options.Create {
		_, refused := s.db.ExecContext(ctx, s.expand(s.dialect.create))
		// Another process may have created it at the same time.
		if _, err = s.db.ExecContext(ctx, s.expand(existsStatement)); err != nil && refused != nil {
			err = fmt.Errorf("create it: %w", refused)
		}
	}
	if s.dialect.hasCode(err, s.dialect.missing) {
		return fmt.Errorf("%w %s", ErrNoTable, cmp.Or(s.options.Table, defaultTable))
	}
	if err != nil {
		return fmt.Errorf("sqlstore: table %s: %w", s.table, err)
	}
	if err := s.checkTable(ctx); err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	return s.identify(ctx)
}

// choosePrimary finds the expression by which the server describes itself, and
// checks that it is a primary.
func (s *store) choosePrimary(ctx context.Context) (err error) {
	var state int64
	for _, s.primary = range s.dialect.primary {
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
	return s.stale(state)
}

// checkTable returns an error if the table must not be used for a reason that
// the probe may not find.
func (s *store) checkTable(ctx context.Context) error {
	var fault string
	var isCopy bool
	err := s.db.QueryRowContext(ctx, s.expand(s.dialect.faults)).Scan(&fault, &isCopy)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case isCopy:
		return fmt.Errorf("%w: table %s %s", ErrReplica, s.table, fault)
	}
	return fmt.Errorf("%w: table %s %s", grant.ErrUnfit, s.table, fault)
}

// identify checks that the table has an identity, and creates one if the table
// has no rows. Other processes may do so at the same time.
func (s *store) identify(ctx context.Context) error {
	var filled bool
	if err := s.db.QueryRowContext(ctx, s.expand(filledStatement)).Scan(&filled); err != nil {
		return err
	}
	if s.options.Create && !filled {
		if _, err := s.db.ExecContext(ctx, s.expand(s.dialect.insert), identityKey, []byte(rand.Text())); err != nil &&
			!s.dialect.hasCode(err, s.dialect.duplicate) {
			return err
		}
	}
	_, _, err := s.Lineage(ctx)
	return err
}

// probe writes rows and reads them back, in a transaction that it rolls back.
// It detects anything that changes keys or values on their way, such as types,
// collations, other indexes, and triggers that the user may not see. A user
// without permission to write is accepted, because reading does no harm.
func (s *store) probe(ctx context.Context) error {
	var err error
	for again := 1; ; again++ {
		if err = s.probeOnce(ctx); !s.dialect.hasCode(err, s.dialect.again) || !pause(ctx, again) {
			break
		}
	}
	switch {
	case err == nil, s.dialect.hasCode(err, s.dialect.denied), s.dialect.hasCode(err, s.dialect.readOnly):
		return nil
	case s.dialect.hasCode(err, s.dialect.refused):
		err = fmt.Errorf("%w: %w", grant.ErrUnfit, err)
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
	long := prefix + strings.Repeat("x", 255-len(prefix))
	keys := []string{long + "A", long + "a", prefix + "y"} // in order

	// Every byte, and bytes at the end that are easily lost.
	value := make([]byte, 4096)
	for i := range value {
		value[i] = byte(i)
	}
	copy(value[len(value)-4:], "a \x00 ")
	upper := bytes.Clone(value)
	upper[len(upper)-4] = 'A'

	damaged := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: it differs from a table that Firn creates, or has triggers", grant.ErrUnfit,
			fmt.Sprintf(format, args...))
	}
	change := func(statement string, args ...any) (int64, error) {
		result, err := tx.ExecContext(ctx, s.expand(statement), args...)
		if s.dialect.hasCode(err, s.dialect.duplicate) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
	for _, key := range slices.Backward(keys) {
		if n, err := change(s.dialect.insert, key, value); err != nil {
			return err
		} else if n != 1 {
			return damaged("a new row with a key of %d bytes is not inserted", len(key))
		}
	}
	var got []byte
	var state int64
	if err := tx.QueryRowContext(ctx, s.expand(getStatement), keys[0]).Scan(&got, &state); err != nil {
		return err
	}
	if !bytes.Equal(got, value) {
		return damaged("a value of %d bytes is read back as another of %d", len(value), len(got))
	}
	for _, old := range [][]byte{upper, value[:len(value)-1], value} {
		if n, err := change(s.dialect.update, []byte("x"), keys[0], old); err != nil {
			return err
		} else if (n == 1) != bytes.Equal(old, value) {
			return damaged("an update changes %d rows, with values that are equal: %t", n, bytes.Equal(old, value))
		}
	}
	if n, err := change(s.dialect.insert, keys[0], value); err != nil {
		return err
	} else if n != 0 {
		return damaged("a key can be inserted twice")
	}
	found, err := readRows(ctx, tx, s.expand(listStatement), prefix, prefix+"~", len(keys)+1)
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
