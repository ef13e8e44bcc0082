package store

import "context"

// Retention ends what has been kept for long enough, and seals, drops and opens shards as
// topics come and go. Any node may call it; a call that comes twice finds nothing to do.
type Retention interface {
	// Trim deletes done tasks whose retention has passed, at most limit, and
	// returns how many.
	Trim(ctx context.Context, s Shard, limit int) (int, error)

	// TrimDead deletes dead tasks up to and including a position, in order of (Due,
	// ID), Due being when they finished; at most limit, and returns how many.
	TrimDead(ctx context.Context, s Shard, upTo Entry, limit int) (int, error)

	// TrimKeys forgets keys that are free again, and returns how many it has looked at,
	// at most limit. AddKeyed does so on the way, too.
	TrimKeys(ctx context.Context, s Shard, limit int) (int, error)

	// TrimLog forgets changes that are older than the retention, about limit at a time,
	// and returns how many; 0 when there are none left.
	TrimLog(ctx context.Context, s Shard, limit int) (int, error)

	// Seal makes a shard take no new task: from when it returns, Add and HoldNew
	// answer ErrSealed, a large batch perhaps after a part of it. What the shard
	// has goes on as before. Sealing twice is fine. A shard that belongs to another
	// topic than the call is for stays as it is.
	Seal(ctx context.Context, s Shard) error

	// DropShard deletes everything of a shard but its owner record. It is not sealed
	// any more; but the life that the call is for is over then: Add, AddKeyed and
	// HoldNew of any life answer ErrSealed until OpenShard. A shard that belongs to
	// another topic stays as it is.
	DropShard(ctx context.Context, s Shard) error

	// OpenShard makes a shard that was dropped, or that belongs to another topic,
	// take tasks of the topic that the call is for, unless its record is not what
	// the caller has read (Stats.Life): nothing changes then. The caller
	// has read the catalog after the record, and the shard is one of
	// those that new tasks of the topic go to. Tasks stay, and so does the seal of a shard
	// of which nobody knew whose it was.
	OpenShard(ctx context.Context, s Shard, was ShardLife) error
}
