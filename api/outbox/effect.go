package outbox

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ddq-io/ddq/api/worker"
)

// DefaultKeep is how long an effect is remembered: longer than tasks are tried.
const DefaultKeep = 7 * 24 * time.Hour

// forgetRows is how many effects are forgotten at a time.
const forgetRows = 10_000

// Effect writes down, in the transaction of a handler, that the task has its effect, and
// tells whether this is the first time. A handler that writes to the database only then, and
// in this transaction, does so once for a task, however often that is delivered. While
// another transaction has the same task, Effect waits for its end.
//
// A task is known by its topic and ID, for RelayConfig.Keep: a later task under an ID that
// was used before is taken for the same one.
func Effect(ctx context.Context, tx pgx.Tx, task worker.Task) (first bool, err error) {
	tag, err := tx.Exec(ctx, `insert into ddq_outbox.effect (topic, id) values ($1, $2) on conflict do nothing`, task.Topic, task.ID)
	if err != nil {
		return false, explain(err)
	}
	return tag.RowsAffected() == 1, nil
}

// EffectSQLite is Effect for a transaction of SQLite.
func EffectSQLite(ctx context.Context, tx *sql.Tx, task worker.Task) (first bool, err error) {
	done, err := tx.ExecContext(ctx, `insert into ddq_outbox_effect (topic, id, at) values (?, ?, ?) on conflict do nothing`,
		task.Topic, task.ID, time.Now().UnixMilli())
	if err != nil {
		return false, explainSQLite(err)
	}
	n, err := done.RowsAffected()
	return n == 1, err
}

// Forget deletes what Effect wrote down longer than keep ago. A relay does so every minute;
// this is for databases that have effects and no relay.
func Forget(ctx context.Context, db Database, keep time.Duration) error {
	r, err := db.open(ctx, RelayConfig{})
	if err != nil {
		return err
	}
	defer r.close()
	for more := true; more; {
		if more, err = r.forget(ctx, time.Now().Add(-keep)); err != nil {
			return err
		}
	}
	return nil
}
