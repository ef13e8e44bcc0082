//go:build linux

package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/outbox"
	"github.com/ddq-io/ddq/api/outbox/internal/ddqtest"
	"github.com/ddq-io/ddq/api/outbox/internal/pgtest"
	"github.com/ddq-io/ddq/api/worker"
)

// What all tests share, made by TestMain.
var (
	postgres *pgtest.Server
	ddq      string // the binary
)

func TestMain(m *testing.M) {
	if os.Getenv(relayEnv) != "" {
		os.Exit(relayProcess())
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "ddq-outbox-*")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if ddq, err = ddqtest.Build(dir, "../.."); err != nil {
		return 0, err
	}
	if postgres, err = pgtest.Start(); err != nil {
		return 0, err
	}
	code := m.Run()
	return code, postgres.Stop()
}

// base is a database with an outbox, of either kind.
type base struct {
	outbox.Database
	dsn string // for a relay in another process

	// transact enqueues in a transaction, and commits unless fail is set.
	transact func(ctx context.Context, fail error, tasks ...client.Task) ([]string, error)

	// exec is a statement of somebody's own. inSQL is one that enqueues with the options that it is given, if the
	// database has a function for that.
	exec  func(ctx context.Context, sql string, args ...any) error
	inSQL string

	// What is written in different ways: bytes, one text between copies of a letter, and a newline.
	bytes   func(text string) string
	repeat  func(before string, letters int, after string) string
	newline string
	json    string // what makes a text of the options

	// effect is Effect in a transaction.
	effect func(ctx context.Context, fail error, task worker.Task) (bool, error)
}

// onEach runs a test on each kind of database, with its tables installed.
func onEach(t *testing.T, test func(t *testing.T, b base)) {
	for name, open := range map[string]func(testing.TB) base{"postgres": postgresBase, "sqlite": sqliteBase} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			if err := outbox.Install(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			test(t, b)
		})
	}
}

func postgresBase(t testing.TB) base {
	url := postgres.Database(t)
	pool := pgtest.Pool(t, url)
	return base{
		Database: outbox.Postgres(pool), dsn: url,
		exec: func(ctx context.Context, sql string, args ...any) error {
			_, err := pool.Exec(ctx, sql, args...)
			return err
		},
		inSQL: `select ddq_outbox.enqueue('t', '', options => $1)`,
		bytes: func(text string) string { return fmt.Sprintf(`'\x%x'`, text) },
		repeat: func(before string, letters int, after string) string {
			return fmt.Sprintf(`('%s' || repeat('t', %d) || '%s')`, before, letters, after)
		},
		newline: "chr(10)", json: "::jsonb",
		transact: func(ctx context.Context, fail error, tasks ...client.Task) (ids []string, err error) {
			return ids, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if len(tasks) != 1 {
					ids, err = outbox.EnqueueMany(ctx, tx, tasks)
				} else {
					ids = make([]string, 1)
					ids[0], err = outbox.Enqueue(ctx, tx, tasks[0])
				}
				if err != nil {
					return err
				}
				return fail
			})
		},
		effect: func(ctx context.Context, fail error, task worker.Task) (first bool, err error) {
			return first, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if first, err = outbox.Effect(ctx, tx, task); err != nil {
					return err
				}
				return fail
			})
		},
	}
}

func sqliteBase(t testing.TB) base {
	dsn := "file:" + filepath.Join(t.TempDir(), "base") + "?_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)"
	db := openSQLite(t, dsn)
	begun := func(ctx context.Context, fail error, do func(tx *sql.Tx) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := do(tx); err != nil {
			return err
		}
		if fail != nil {
			return fail
		}
		return tx.Commit()
	}
	return base{
		Database: outbox.SQLite(db), dsn: dsn,
		exec: func(ctx context.Context, sql string, args ...any) error {
			_, err := db.ExecContext(ctx, sql, args...)
			return err
		},
		bytes: func(text string) string { return fmt.Sprintf(`x'%x'`, text) },
		repeat: func(before string, letters int, after string) string {
			return fmt.Sprintf(`'%s' || replace(hex(zeroblob(%d)), '00', 't') || '%s'`, before, letters, after)
		},
		newline: "char(10)",
		transact: func(ctx context.Context, fail error, tasks ...client.Task) (ids []string, err error) {
			return ids, begun(ctx, fail, func(tx *sql.Tx) error {
				if len(tasks) != 1 {
					ids, err = outbox.EnqueueManySQLite(ctx, tx, tasks)
				} else {
					ids = make([]string, 1)
					ids[0], err = outbox.EnqueueSQLite(ctx, tx, tasks[0])
				}
				return err
			})
		},
		effect: func(ctx context.Context, fail error, task worker.Task) (first bool, err error) {
			return first, begun(ctx, fail, func(tx *sql.Tx) error {
				first, err = outbox.EffectSQLite(ctx, tx, task)
				return err
			})
		},
	}
}

func openSQLite(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// postgresParts is an installed outbox with its pool.
func postgresParts(t *testing.T) (*pgxpool.Pool, outbox.Database) {
	t.Helper()
	pool := pgtest.Pool(t, postgres.Database(t))
	b := outbox.Postgres(pool)
	if err := outbox.Install(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return pool, b
}
