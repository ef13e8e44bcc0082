package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ddq-io/ddq/api/client"
)

// Enqueue puts a task into the outbox, in the transaction, and returns the id that the task
// will have. What could never be enqueued is refused with a *client.Error, and the
// transaction goes on. A delay counts from this call, on the clock of this machine.
//
// A task has no ID of its own. With an idempotency key its id is what Enqueue returned only
// if the key was free.
func Enqueue(ctx context.Context, tx pgx.Tx, task client.Task) (string, error) {
	r, err := newRow(task, time.Now())
	if err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, `insert into ddq_outbox.task (id, key, topic, payload, due, options) values ($1, $2, $3, $4, $5, $6)`, r.values()...)
	if err != nil {
		return "", explain(err)
	}
	return r.id, nil
}

// EnqueueMany puts many tasks into the outbox, by COPY, and returns their ids. When one of
// them could never be enqueued, none is: the field of the error names it, as in
// tasks[3].payload.
func EnqueueMany(ctx context.Context, tx pgx.Tx, tasks []client.Task) ([]string, error) {
	rows, err := newRows(tasks, time.Now())
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	columns := []string{"id", "key", "topic", "payload", "due", "options"}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"ddq_outbox", "task"}, columns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
		return rows[i].values(), nil
	}))
	if err != nil {
		return nil, explain(err)
	}
	return idsOf(rows), nil
}

// values are those of the columns id, key, topic, payload, due and options.
func (r row) values() []any {
	var due *time.Time
	if !r.due.IsZero() {
		due = &r.due
	}
	return []any{r.id, r.key, r.topic, r.payload, due, r.options}
}

// explain says what to do where the tables are missing.
func explain(err error) error {
	e := (*pgconn.PgError)(nil)
	if errors.As(err, &e) && (e.Code == undefinedTable || e.Code == undefinedSchema) {
		return fmt.Errorf("outbox: %w; outbox.Install makes the tables", err)
	}
	return fmt.Errorf("outbox: %w", err)
}

// As PostgreSQL numbers them.
const (
	undefinedTable  = "42P01"
	undefinedSchema = "3F000"
)

// Advisory locks, of the reader and of Install: "ddq" and a number.
const (
	readerLock  = 0x646471_01
	installLock = 0x646471_02
)

type postgres struct{ pool *pgxpool.Pool }

// Postgres is the outbox of a PostgreSQL database, in the schema ddq_outbox. A relay needs a
// connection of its own to the server: not one through a pooler that shares connections
// between transactions.
func Postgres(pool *pgxpool.Pool) Database { return postgres{pool} }

const (
	postgresVersion = `create schema if not exists ddq_outbox;
create table if not exists ddq_outbox.version (number int primary key, at timestamptz not null default now())`
	postgresNumber = `insert into ddq_outbox.version (number) values ($1)`
)

func (p postgres) install(ctx context.Context) error {
	steps, err := migrations("postgres")
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, installLock); err != nil {
			return err
		}
		version, err := p.version(ctx, tx)
		if err != nil || version >= len(steps) {
			return err
		}
		if _, err := tx.Exec(ctx, postgresVersion); err != nil {
			return err
		}
		for i := version; i < len(steps); i++ {
			if _, err := tx.Exec(ctx, steps[i]); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, postgresNumber, i+1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("outbox: install: %w", err)
	}
	return nil
}

type postgresQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// version is 0 where there are no tables. It creates nothing, so that a program without that
// right may install what is installed.
func (p postgres) version(ctx context.Context, q postgresQuerier) (int, error) {
	var is bool
	if err := q.QueryRow(ctx, `select to_regclass('ddq_outbox.version') is not null`).Scan(&is); err != nil || !is {
		return 0, err
	}
	var version int
	err := q.QueryRow(ctx, `select coalesce(max(number), 0) from ddq_outbox.version`).Scan(&version)
	return version, err
}

func (p postgres) status(ctx context.Context) (Status, error) {
	var s Status
	var err error
	if s.Version, err = p.version(ctx, p.pool); err != nil || s.Version == 0 {
		return s, err
	}
	var seconds float64
	err = p.pool.QueryRow(ctx, `select count(*), coalesce(extract(epoch from clock_timestamp() - min(at)), 0)::float8,
		(select count(*) from ddq_outbox.bad),
		coalesce((select format('process %s of %s@%s', a.pid, coalesce(a.usename, 'unknown'), coalesce(host(a.client_addr), 'local'))
			from pg_locks l join pg_stat_activity a using (pid)
			where l.locktype = 'advisory' and l.classid = 0 and l.objid = $1 and l.objsubid = 1 and l.granted
			and l.database = (select oid from pg_database where datname = current_database()) limit 1), '')
		from ddq_outbox.task`, readerLock).Scan(&s.Rows, &seconds, &s.Bad, &s.Reader)
	s.Oldest = max(0, time.Duration(seconds*float64(time.Second)))
	return s, err
}

func (p postgres) bad(ctx context.Context, limit int) ([]BadRow, error) {
	rows, err := p.pool.Query(ctx, `select seq, id::text, topic, reason, message, at, refused from ddq_outbox.bad order by seq limit $1`, limit)
	if err != nil {
		return nil, explain(err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[BadRow])
}

func (p postgres) retry(ctx context.Context, seqs []int64) (int, error) {
	tag, err := p.pool.Exec(ctx, `with back as (delete from ddq_outbox.bad where seq = any($1) returning *)
		insert into ddq_outbox.task (id, key, topic, payload, due, options, at) select id, key, topic, payload, due, options, at from back order by seq`, seqs)
	if err != nil {
		return 0, explain(err)
	}
	return int(tag.RowsAffected()), nil
}
