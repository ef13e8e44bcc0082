package outbox

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// postgresReader is a connection of its own, out of the pool: it listens, and has the lock of
// the reader for as long as it lives.
type postgresReader struct {
	conn  *pgx.Conn
	leads bool
}

func (p postgres) open(ctx context.Context, _ RelayConfig) (reader, error) {
	c, err := p.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	r := &postgresReader{conn: c.Hijack()}
	if _, err := r.conn.Exec(ctx, `listen ddq_outbox`); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// lead never waits in the database: a statement that does keeps it from removing dead rows.
func (r *postgresReader) lead(ctx context.Context) (bool, error) {
	if r.leads {
		return true, nil
	}
	err := r.conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, readerLock).Scan(&r.leads)
	return r.leads, err
}

func (r *postgresReader) read(ctx context.Context, v view) ([]row, error) {
	r.drain()
	for rows := batchRows; ; rows /= 2 {
		found, err := r.first(ctx, v, rows)
		e := (*pgconn.PgError)(nil)
		if err == nil || !errors.As(err, &e) || !ofData(e.Code) {
			return found, err
		}
		if rows == 1 {
			return r.unreadable(ctx, v, e)
		}
	}
}

// ofData tells whether a query failed because of what is in a row, by the class of its code: a data exception, or a
// limit of the database's, as for a text that cannot be converted or is too large to be made.
func ofData(code string) bool { return strings.HasPrefix(code, "22") || strings.HasPrefix(code, "54") }

// first reads so many rows of a view at most.
func (r *postgresReader) first(ctx context.Context, v view, most int) ([]row, error) {
	rows, err := r.conn.Query(ctx, `select seq, id::text, key, size, due,
			case when size <= $5 then topic else '' end, case when size <= $5 then payload end, case when size <= $5 then options end from (
			select *, sum(size) over (order by seq rows unbounded preceding) - size as before from (
				select *, octet_length(payload)::bigint + octet_length(options) + octet_length(topic) as size
				from (select seq, id, key, topic, payload, due, options::text as options
					from ddq_outbox.task where topic <> all ($1) and seq > $4 order by seq limit $2) as first
			) as measured
		) as summed where before < $3 order by seq`, without(v), most, batchBytes, v.after, maxRow)
	if err != nil {
		return nil, explain(err)
	}
	found, err := pgx.CollectRows(rows, func(from pgx.CollectableRow) (row, error) {
		var w row
		var size int64
		var due pgtype.Timestamptz
		err := from.Scan(&w.seq, &w.id, &w.key, &size, &due, &w.topic, &w.payload, &w.options)
		switch w.due = due.Time; {
		case size > maxRow:
			w.fault = tooLarge(size)
		case due.InfinityModifier != pgtype.Finite:
			w.fault = notDue(due.InfinityModifier)
		}
		return w, err
	})
	if err != nil {
		return nil, explain(err)
	}
	return found, nil
}

// unreadable is the first row of a view, which the database cannot say.
func (r *postgresReader) unreadable(ctx context.Context, v view, e *pgconn.PgError) ([]row, error) {
	w := row{fault: invalid("row", "BAD_ROW", "the database cannot read it: %s (%s)", e.Message, e.Code)}
	err := r.conn.QueryRow(ctx, `select seq from ddq_outbox.task where topic <> all ($1) and seq > $2 order by seq limit 1`, without(v), v.after).Scan(&w.seq)
	if errors.Is(err, pgx.ErrNoRows) { // somebody deleted it
		return nil, nil
	}
	return []row{w}, err
}

// without are the topics that a view leaves out; not null.
func without(v view) []string { return append([]string{}, v.without...) }

// drain drops notifications that came meanwhile: what they are of is committed, and is about
// to be read.
func (r *postgresReader) drain() {
	past, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		if _, err := r.conn.WaitForNotification(past); err != nil {
			return
		}
	}
}

func (r *postgresReader) remove(ctx context.Context, seqs []int64) error {
	_, err := r.conn.Exec(ctx, `delete from ddq_outbox.task where seq = any($1)`, seqs)
	return err
}

func (r *postgresReader) refuse(ctx context.Context, refused []refusal) error {
	seqs, reasons, messages := make([]int64, len(refused)), make([]string, len(refused)), make([]string, len(refused))
	for i, f := range refused {
		seqs[i], reasons[i], messages[i] = f.seq, f.reason, f.message
	}
	_, err := r.conn.Exec(ctx, `with why as (select * from unnest($1::bigint[], $2::text[], $3::text[]) as w (seq, reason, message)),
		gone as (delete from ddq_outbox.task t using why where t.seq = why.seq returning t.*, why.reason, why.message)
		insert into ddq_outbox.bad (seq, id, key, topic, payload, due, options, at, reason, message)
		select seq, id, key, topic, payload, due, options, at, reason, message from gone`, seqs, reasons, messages)
	return err
}

func (r *postgresReader) forget(ctx context.Context, t time.Time) (bool, error) {
	tag, err := r.conn.Exec(ctx, `delete from ddq_outbox.effect where (topic, id) in
		(select topic, id from ddq_outbox.effect where at < $1 order by at limit $2)`, t, forgetRows)
	return tag.RowsAffected() == forgetRows, err
}

func (r *postgresReader) wait(ctx context.Context, d time.Duration) error {
	short, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if _, err := r.conn.WaitForNotification(short); err != nil && short.Err() == nil {
		return err
	}
	return nil
}

func (r *postgresReader) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = r.conn.Close(ctx) // the server ends the session in any case
}
