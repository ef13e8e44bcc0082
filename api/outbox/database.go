package outbox

import (
	"context"
	"time"
)

// Database is where an outbox is. Postgres and SQLite make one.
type Database interface {
	// install makes the tables, or brings them up to date.
	install(ctx context.Context) error

	// open makes a session that reads.
	open(ctx context.Context, cfg RelayConfig) (reader, error)

	status(ctx context.Context) (Status, error)
	bad(ctx context.Context, limit int) ([]BadRow, error)
	retry(ctx context.Context, seqs []int64) (int, error)
}

// reader is a relay's session with its database. Its methods may be repeated.
type reader interface {
	// lead makes this the reader, or lets it stay that: false while another one is.
	lead(ctx context.Context) (bool, error)

	// read returns the first rows of a view, in order. A row that cannot be read has a fault, and holds up none.
	read(ctx context.Context, v view) ([]row, error)

	// remove deletes rows, and refuse keeps them apart.
	remove(ctx context.Context, seqs []int64) error
	refuse(ctx context.Context, refused []refusal) error

	// forget deletes some of the effects before t, and tells whether there may be more.
	forget(ctx context.Context, t time.Time) (bool, error)

	// wait returns when rows may have been committed since the last read, or after d.
	wait(ctx context.Context, d time.Duration) error

	// close lets another one lead at once.
	close()
}

// A batch is a frame of the client's, so that rows travel in order: of at most so many rows,
// and so many bytes and one row more.
const (
	batchRows  = 500
	batchBytes = 1<<20 - 64<<10
)

// maxRow bounds the texts and the payload of a row, in bytes: twice what the largest task has.
const maxRow = 2 * MaxPayload

// refusal is a row that ddq refused for good.
type refusal struct {
	seq             int64
	reason, message string
}

// Install makes the tables of an outbox, or brings those of an older version up to date. It
// may be called by every process that starts, at the same time.
func Install(ctx context.Context, db Database) error { return db.install(ctx) }

// Status is how an outbox is.
type Status struct {
	Version int           // of the tables; 0 when there are none
	Rows    int64         // that are not yet with ddq
	Oldest  time.Duration // since the first of them was written; 0 when there is none
	Bad     int64         // that ddq refused for good
	Reader  string        // the relay that reads, in the database's words; empty when there is none
}

// Inspect returns the status of an outbox.
func Inspect(ctx context.Context, db Database) (Status, error) { return db.status(ctx) }

// BadRow is a task that ddq refused for good.
type BadRow struct {
	Seq     int64 // its number in the outbox
	ID      string
	Topic   string
	Reason  string // stable, such as PAYLOAD_TOO_LARGE
	Message string // for people
	Written time.Time
	Refused time.Time
}

// Bad returns tasks that ddq refused for good, at most limit, the first first.
func Bad(ctx context.Context, db Database, limit int) ([]BadRow, error) { return db.bad(ctx, limit) }

// Retry puts refused tasks, by their Seq, back into the outbox, behind all others, and says
// how many of them there were.
func Retry(ctx context.Context, db Database, seqs ...int64) (int, error) {
	return db.retry(ctx, seqs)
}
