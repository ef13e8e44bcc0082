package outbox

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// sqlitePoll is how often SQLite is looked at: it tells no other process what is committed.
const sqlitePoll = 20 * time.Millisecond

// sqliteReader has no connection of its own, since there may be only one for all. It is written
// down as the reader for the lease, and writes itself down anew when a third of that is over.
// One that is late may read beside the next: both enqueue the same rows then, which ddq knows
// by their keys.
type sqliteReader struct {
	sqlite
	name    string
	lease   time.Duration
	renewed time.Time // zero: another one leads
}

func (s sqlite) open(_ context.Context, cfg RelayConfig) (reader, error) {
	return &sqliteReader{sqlite: s, lease: cfg.Lease, name: fmt.Sprintf("process %d (%s)", os.Getpid(), rand.Text())}, nil
}

func (r *sqliteReader) lead(ctx context.Context) (bool, error) {
	now := time.Now()
	if !r.renewed.IsZero() && now.Sub(r.renewed) < r.lease/3 {
		return true, nil
	}
	done, err := r.db.ExecContext(ctx, `insert into ddq_outbox_reader (one, name, expiry) values (1, ?, ?)
		on conflict (one) do update set name = excluded.name, expiry = excluded.expiry where name = excluded.name or expiry <= ?`,
		r.name, now.Add(r.lease).UnixMilli(), now.UnixMilli())
	if err != nil {
		return false, explainSQLite(err)
	}
	changed, err := done.RowsAffected()
	if err != nil || changed == 0 {
		r.renewed = time.Time{}
		return false, err
	}
	r.renewed = now
	return true, nil
}

func (r *sqliteReader) read(ctx context.Context, v view) ([]row, error) {
	names, err := json.Marshal(append([]string{}, v.without...))
	if err != nil {
		return nil, err
	}
	rows, err := r.db.QueryContext(ctx, `select seq, size, due, case when size <= ?1 then id end, case when size <= ?1 then key end,
			case when size <= ?1 then topic end, case when size <= ?1 then payload end, case when size <= ?1 then options end from (
			select *, length(cast(id as blob)) + length(cast(key as blob)) + length(cast(topic as blob)) + length(cast(payload as blob))
				+ length(cast(options as blob)) as size
			from ddq_outbox_task where seq > ?2 and topic not in (select value from json_each(?3)) order by seq limit ?4
		)`, maxRow, v.after, string(names), batchRows)
	if err != nil {
		return nil, explainSQLite(err)
	}
	defer rows.Close()
	var found []row
	for bytes := int64(0); bytes < batchBytes && rows.Next(); {
		w, size, err := scanSQLite(rows)
		if err != nil {
			return nil, err
		}
		found, bytes = append(found, w), bytes+size
	}
	return found, rows.Err()
}

// scanSQLite takes what is in a column as it is: SQLite lets a column hold values of any type.
func scanSQLite(rows *sql.Rows) (w row, size int64, err error) {
	var due any
	var id, key, topic []byte
	if err := rows.Scan(&w.seq, &size, &due, &id, &key, &topic, &w.payload, &w.options); err != nil {
		return w, 0, err
	}
	w.id, w.key, w.topic = string(id), string(key), string(topic)
	switch at := due.(type) {
	case nil:
	case int64:
		w.due = time.UnixMilli(at)
	default:
		w.fault = notDue(due)
	}
	if size > maxRow {
		w.fault = tooLarge(size)
	}
	return w, size, nil
}

func (r *sqliteReader) remove(ctx context.Context, seqs []int64) error {
	list, err := json.Marshal(seqs)
	if err != nil {
		return err
	}
	_, err = r.db.ExecContext(ctx, `delete from ddq_outbox_task where seq in (select value from json_each(?))`, string(list))
	return err
}

func (r *sqliteReader) refuse(ctx context.Context, refused []refusal) error {
	return r.change(ctx, func(tx *sql.Tx) error {
		for _, f := range refused {
			if _, err := tx.ExecContext(ctx, `insert into ddq_outbox_bad (seq, id, key, topic, payload, due, options, at, reason, message, refused)
				select seq, id, key, topic, payload, due, options, at, ?, ?, ? from ddq_outbox_task where seq = ?`,
				f.reason, f.message, time.Now().UnixMilli(), f.seq); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `delete from ddq_outbox_task where seq = ?`, f.seq); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *sqliteReader) forget(ctx context.Context, t time.Time) (bool, error) {
	done, err := r.db.ExecContext(ctx, `delete from ddq_outbox_effect where (topic, id) in
		(select topic, id from ddq_outbox_effect where at < ? order by at limit ?)`, t.UnixMilli(), forgetRows)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n == forgetRows, err
}

func (r *sqliteReader) wait(ctx context.Context, d time.Duration) error {
	pause(ctx, min(d, sqlitePoll))
	return nil
}

func (r *sqliteReader) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_, _ = r.db.ExecContext(ctx, `delete from ddq_outbox_reader where name = ?`, r.name) // ends by itself otherwise
}
