package store

import (
	"errors"
	"fmt"
)

var (
	// ErrFenced is returned by owner calls whose fence is not the shard's current
	// one: another claim came since. The caller no longer owns the shard.
	ErrFenced = errors.New("shard is owned under another claim")

	// ErrSealed is returned by Add and HoldNew for a shard that takes no new task, and
	// by AddKeyed too for one that belongs to another topic, see ShardLife.
	ErrSealed = errors.New("shard is sealed")

	// ErrOwned is returned by Claim while another node's lease on the shard lives.
	ErrOwned = errors.New("shard is owned by a live node")

	// ErrSessionLost is returned by RenewSession while another process of the node's
	// name has a session that lasts, and by Claim when the session is not the node's.
	ErrSessionLost = errors.New("the session of this node is not this process's")

	// ErrUnavailable means that the store could not be reached and nothing was done.
	ErrUnavailable = errors.New("store unavailable")

	// ErrFailed comes with ErrUnavailable or ErrUnknown of a store that does nothing any more until its process is started anew.
	ErrFailed = errors.New("the store has failed")

	// ErrDeleted comes with ErrFailed of a store whose data somebody deleted while it was open: a process that is started anew
	// on it finds nothing.
	ErrDeleted = errors.New("the data was deleted while the store was open")

	// ErrUnknown means that a call was sent and its answer lost: it may have taken
	// effect. Repeating it with the same arguments is safe.
	ErrUnknown = errors.New("outcome unknown")

	// ErrAnotherServer means that what a call follows from was read from another server than the
	// one that got it, and that nothing was done. See Commit.From.
	ErrAnotherServer = errors.New("another server answers than was read from")

	// ErrFull means that the store has no room (memory or disk) and nothing was done.
	ErrFull = errors.New("store is full")

	// ErrUnsafe is returned on opening a store that may lose what it acknowledged,
	// such as a Redis that evicts keys. The message says what to change.
	ErrUnsafe = errors.New("store is not safe to use")

	// ErrLocked is returned on opening a data directory that another process uses.
	ErrLocked = errors.New("data directory is in use")

	// ErrTopicNotFound is returned for a topic that has no configuration.
	ErrTopicNotFound = errors.New("topic not found")

	// ErrTopicExists is returned by PutTopic for version 0 of a known topic.
	ErrTopicExists = errors.New("topic exists")

	// ErrVersion is returned by PutTopic when the topic has changed since it was read.
	ErrVersion = errors.New("topic was changed meanwhile")

	// ErrBadCursor is returned for a cursor that this store did not make.
	ErrBadCursor = errors.New("bad cursor")

	// ErrNotIndexed is returned by Lookup where not all tasks are in the index.
	ErrNotIndexed = errors.New("the shard is not indexed by the attribute")

	// ErrReindexed is returned by Reindex when the walk counts no longer.
	ErrReindexed = errors.New("the index was begun again")

	// ErrNoTake is returned by Take where the limits are named as by versions without it, so that no step is
	// over all of a topic. Nothing was done.
	ErrNoTake = errors.New("the store cannot take tokens and permits in one step")

	// ErrClosed is returned after Close.
	ErrClosed = errors.New("store is closed")
)

// OwnedError is ErrOwned with the node that owns the shard.
type OwnedError struct{ Node string }

func (e *OwnedError) Error() string { return ErrOwned.Error() + ": " + e.Node }

// Is makes it ErrOwned.
func (e *OwnedError) Is(target error) bool { return target == ErrOwned }

// SessionLostError is ErrSessionLost of a renewal, with the address of the process that has the
// session; empty: it gave none.
type SessionLostError struct{ Addr string }

func (e *SessionLostError) Error() string {
	at := ""
	if e.Addr != "" {
		at = " at " + e.Addr
	}
	return fmt.Sprintf("renew session: %v: another process of its name%s renews it", ErrSessionLost, at)
}

// Is makes it ErrSessionLost.
func (e *SessionLostError) Is(target error) bool { return target == ErrSessionLost }
