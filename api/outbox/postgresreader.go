package outbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
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
	without := append([]string{}, v.without...) // not null
	rows, err := r.conn.Query(ctx, `select seq, id::text, key, topic, payload, due, options::text::bytea from (
			select *, sum(octet_length(payload)) over (order by seq rows unbounded preceding) - octet_length(payload) as before
			from (select * from ddq_outbox.task where topic <> all ($1) and seq > $4 order by seq limit $2) as first
		) as measured where before < $3 order by seq`, without, batchRows, batchBytes, v.after)
	if err != nil {
		return nil, explain(err)
	}
	found, err := pgx.CollectRows(rows, func(from pgx.CollectableRow) (row, error) {
		var w row
		var due *time.Time
		err := from.Scan(&w.seq, &w.id, &w.key, &w.topic, &w.payload, &due, &w.options)
		if due != nil {
			w.due = *due
		}
		return w, err
	})
	if err != nil {
		return nil, explain(err)
	}
	return found, nil
}

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
