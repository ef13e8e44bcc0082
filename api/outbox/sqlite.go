package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// EnqueueSQLite is Enqueue for a transaction of SQLite, by whichever driver.
func EnqueueSQLite(ctx context.Context, tx *sql.Tx, task client.Task) (string, error) {
	now := time.Now()
	r, err := newRow(task, now)
	if err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, sqliteInsert, r.sqliteValues(now)...); err != nil {
		return "", explainSQLite(err)
	}
	return r.id, nil
}

// EnqueueManySQLite is EnqueueMany for a transaction of SQLite.
func EnqueueManySQLite(ctx context.Context, tx *sql.Tx, tasks []client.Task) ([]string, error) {
	now := time.Now()
	rows, err := newRows(tasks, now)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	insert, err := tx.PrepareContext(ctx, sqliteInsert)
	if err != nil {
		return nil, explainSQLite(err)
	}
	defer insert.Close()
	for _, r := range rows {
		if _, err := insert.ExecContext(ctx, r.sqliteValues(now)...); err != nil {
			return nil, explainSQLite(err)
		}
	}
	return idsOf(rows), nil
}

const sqliteInsert = `insert into ddq_outbox_task (id, key, topic, payload, due, options, at) values (?, ?, ?, ?, ?, ?, ?)`

func (r row) sqliteValues(now time.Time) []any {
	var due any
	if !r.due.IsZero() {
		due = r.due.UnixMilli()
	}
	return []any{r.id, r.key, r.topic, r.payload, due, string(r.options), now.UnixMilli()}
}

// explainSQLite says what to do where the tables are missing: drivers have no code in common.
func explainSQLite(err error) error {
	if strings.Contains(err.Error(), "no such table") {
		return fmt.Errorf("outbox: %w; outbox.Install makes the tables", err)
	}
	return fmt.Errorf("outbox: %w", err)
}

type sqlite struct{ db *sql.DB }

// SQLite is the outbox of an SQLite database, in tables whose names begin with ddq_outbox. The
// database needs a busy timeout, as any that several connections write to.
func SQLite(db *sql.DB) Database { return sqlite{db} }

const (
	sqliteVersion = `create table if not exists ddq_outbox_version (number integer primary key)`
	sqliteNumber  = `insert into ddq_outbox_version (number) values (?)`
)

func (s sqlite) install(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return fmt.Errorf("outbox: install: %w", err)
	}
	return nil
}

// migrate takes the lock of those who write before it looks at the version. The statements of
// a transaction by database/sql might begin by reading.
func (s sqlite) migrate(ctx context.Context) (err error) {
	steps, err := migrations("sqlite")
	if err != nil {
		return err
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `begin immediate`); err != nil {
		return err
	}
	defer func() {
		end := `commit`
		if err != nil {
			end = `rollback`
		}
		if _, failed := conn.ExecContext(context.WithoutCancel(ctx), end); err == nil {
			err = failed
		}
	}()
	if _, err := conn.ExecContext(ctx, sqliteVersion); err != nil {
		return err
	}
	version, err := s.version(ctx, conn)
	for i := version; i < len(steps) && err == nil; i++ {
		if _, err = conn.ExecContext(ctx, steps[i]); err == nil {
			_, err = conn.ExecContext(ctx, sqliteNumber, i+1)
		}
	}
	return err
}

type sqliteQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (s sqlite) version(ctx context.Context, q sqliteQuerier) (version int, err error) {
	var tables int
	err = q.QueryRowContext(ctx, `select count(*) from sqlite_master where name = 'ddq_outbox_version'`).Scan(&tables)
	if err != nil || tables == 0 {
		return 0, err
	}
	err = q.QueryRowContext(ctx, `select coalesce(max(number), 0) from ddq_outbox_version`).Scan(&version)
	return version, err
}

func (s sqlite) status(ctx context.Context) (Status, error) {
	var is Status
	var err error
	if is.Version, err = s.version(ctx, s.db); err != nil || is.Version == 0 {
		return is, err
	}
	now := time.Now()
	var oldest int64
	err = s.db.QueryRowContext(ctx, `select count(*), coalesce(min(at), ?), (select count(*) from ddq_outbox_bad),
		coalesce((select name from ddq_outbox_reader where expiry > ?), '') from ddq_outbox_task`, now.UnixMilli(), now.UnixMilli()).
		Scan(&is.Rows, &oldest, &is.Bad, &is.Reader)
	is.Oldest = max(0, millis(now.UnixMilli()-oldest))
	return is, err
}

func (s sqlite) bad(ctx context.Context, limit int) ([]BadRow, error) {
	rows, err := s.db.QueryContext(ctx, `select seq, id, topic, reason, message, at, refused from ddq_outbox_bad order by seq limit ?`, limit)
	if err != nil {
		return nil, explainSQLite(err)
	}
	defer rows.Close()
	var found []BadRow
	for rows.Next() {
		var b BadRow
		var at, refused int64
		if err := rows.Scan(&b.Seq, &b.ID, &b.Topic, &b.Reason, &b.Message, &at, &refused); err != nil {
			return nil, err
		}
		b.Written, b.Refused = time.UnixMilli(at), time.UnixMilli(refused)
		found = append(found, b)
	}
	return found, rows.Err()
}

func (s sqlite) retry(ctx context.Context, seqs []int64) (n int, err error) {
	err = s.change(ctx, func(tx *sql.Tx) error {
		for _, seq := range seqs {
			done, err := tx.ExecContext(ctx, `insert into ddq_outbox_task (id, key, topic, payload, due, options, at)
				select id, key, topic, payload, due, options, at from ddq_outbox_bad where seq = ?`, seq)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `delete from ddq_outbox_bad where seq = ?`, seq); err != nil {
				return err
			}
			moved, err := done.RowsAffected()
			if err != nil {
				return err
			}
			n += int(moved)
		}
		return nil
	})
	return n, err
}

// change is a transaction whose first statement writes: it waits for others, and is not
// refused because it read before them.
func (s sqlite) change(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // err says what was wrong
		return err
	}
	return tx.Commit()
}
