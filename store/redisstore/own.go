package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// errChanged is for a claim that another one overtook.
var errChanged = errors.New("owner record changed meanwhile")

// Claim implements store.Owner. Sessions lie on other nodes of a cluster than
// the shard, so they are read first; what was read of the owner record is then
// compared by the script that replaces it. A session that ends or begins in
// between does no harm: fences decide, not sessions.
func (s *owner) Claim(ctx context.Context, shard store.Shard, session store.Session) (store.Stamp, store.Fence, error) {
	if err := s.enter(ctx); err != nil {
		return store.Stamp{}, store.Fence{}, err
	}
	for range 10 {
		server := s.conn.Server(ctx, s.keys(shard)[ownerKey])
		r, fence, err := s.tryClaim(ctx, shard, session)
		if err == nil {
			r.Server = server
			return r.Stamp, fence, nil
		}
		if !errors.Is(err, errChanged) {
			return store.Stamp{}, store.Fence{}, err
		}
	}
	return store.Stamp{}, store.Fence{}, fmt.Errorf("claim: %w: %w", store.ErrOwned, errChanged)
}

func (s *owner) tryClaim(ctx context.Context, shard store.Shard, session store.Session) (reply, store.Fence, error) {
	start, _, err := s.session(ctx, session.Node)
	if err != nil {
		return reply{}, store.Fence{}, err
	}
	if start != string(session.Start[:]) {
		return reply{}, store.Fence{}, fmt.Errorf("claim: %w", store.ErrSessionLost)
	}
	keys := s.keys(shard)
	get := redis.NewSliceCmd(ctx, "hmget", keys[ownerKey], "node", "epoch", "nonce")
	if err := s.conn.Send(ctx, keys[ownerKey], get); err != nil {
		return reply{}, store.Fence{}, conn.ReadError("claim", err)
	}
	record := get.Val()
	if owner := text(record[0]); owner != "" && owner != session.Node {
		live, err := s.lives(ctx, owner, shard, session)
		if err != nil {
			return reply{}, store.Fence{}, err
		}
		if live {
			return reply{}, store.Fence{}, fmt.Errorf("claim: %w", &store.OwnedError{Node: owner})
		}
	}
	return s.replaceOwner(ctx, keys, session, record)
}

// replaceOwner makes the session's node the owner unless the record has changed.
func (s *owner) replaceOwner(ctx context.Context, keys *shardKeys, session store.Session, record []any) (reply, store.Fence, error) {
	nonce := store.NewToken()
	a := newArgs(8, 256)
	for _, field := range record {
		a.str(text(field))
	}
	a.str(session.Node)
	a.tok(session.Start)
	a.tok(nonce)
	a.int(newestSchema)
	a.int(schema)
	a.str(guard)
	v, err := s.conn.Run(ctx, s.lua.claim, keys[:runningKey+1], a.values())
	if err != nil {
		return reply{}, store.Fence{}, conn.WriteError("claim", err)
	}
	switch number(v) {
	case -1:
		return reply{}, store.Fence{}, errChanged
	case -2:
		return reply{}, store.Fence{}, errors.New("claim: the shard was written by a later version of ddq")
	}
	r, err := parseReply(v, 1)
	if err != nil {
		return reply{}, store.Fence{}, conn.WriteError("claim", err)
	}
	return r, store.Fence{Epoch: number(r.more[0]), Nonce: nonce}, nil
}

// session returns the start of a node's session, empty when it has none, and
// whether it lasts.
func (s *owner) session(ctx context.Context, node string) (start string, live bool, err error) {
	v, err := s.conn.Run(ctx, s.lua.session, []string{sessionKey(node)}, nil)
	if err != nil {
		return "", false, conn.ReadError("claim", err)
	}
	return text(at(list(v), 0)), number(at(list(v), 1)) == 1, nil
}

// lives reports whether the session of a shard's owner lasts. If it does, it gets a note
// from a claimant who wants the shard. That is written apart: nobody waits for replicas to
// have it.
func (s *owner) lives(ctx context.Context, owner string, shard store.Shard, claimant store.Session) (bool, error) {
	if !claimant.Wants {
		_, live, err := s.session(ctx, owner)
		return live, err
	}
	v, err := s.conn.RunApart(ctx, s.lua.want, sessionKey(owner), []any{shardText(shard), claimant.Node})
	if err != nil {
		return false, conn.ReadError("claim", err)
	}
	return number(at(list(v), 1)) == 1, nil
}

// shardText names a shard in a note.
func shardText(s store.Shard) string { return strconv.Itoa(s.N) + ":" + s.Topic }

// readNotes reads what renew.lua returns of notes. What is malformed is left out: they
// are hints.
func readNotes(pairs []any) (wanted []store.Wanted) {
	for i := 0; i+1 < len(pairs); i += 2 {
		n, topic, _ := strings.Cut(text(pairs[i]), ":")
		if number, err := strconv.Atoi(n); err == nil && number >= 0 {
			wanted = append(wanted, store.Wanted{Shard: store.Shard{Topic: topic, N: number}, By: text(pairs[i+1])})
		}
	}
	return wanted
}

// Release implements store.Owner.
func (s *owner) Release(ctx context.Context, shard store.Shard, f store.Fence) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	a := newArgs(2, 32)
	a.fence(f)
	v, err := s.conn.Run(ctx, s.lua.release, s.keys(shard)[:1], a.values())
	if err != nil {
		return conn.WriteError("release", err)
	}
	if number(v) == -1 {
		return fmt.Errorf("release: %w", store.ErrFenced)
	}
	return nil
}

// RenewSession implements store.Owner. Replicas are waited for at the beginning
// only, so that the session is not taken for another's after a failover; where
// one does not know the last renewals, the session ends early, and fences decide.
// A renewal has a connection of its own: while replicas are slow, calls that wait for
// them have all the others, and a lease that ends of that makes an outage of it.
func (s *owner) RenewSession(ctx context.Context, session store.Session) (store.Renewal, error) {
	if err := s.enter(ctx); err != nil {
		return store.Renewal{}, err
	}
	a := newArgs(4, 128)
	a.tok(session.Start)
	a.wait(session.TTL)
	a.str(session.Addr)
	a.int(int64(bit(session.Begin)))
	key, argv := sessionKey(session.Node), a.values()
	var v any
	var err error
	if session.Begin {
		v, err = s.conn.Run(ctx, s.lua.renew, []string{key}, argv)
	} else {
		v, err = s.conn.RunApart(ctx, s.lua.renew, key, argv)
	}
	if err != nil {
		return store.Renewal{}, conn.WriteError("renew session", err)
	}
	if addr, isLost := v.(string); isLost {
		return store.Renewal{}, &store.SessionLostError{Addr: addr}
	}
	r := list(v)
	if len(r) < 2 {
		return store.Renewal{}, fmt.Errorf("renew session: %w: malformed answer", store.ErrUnknown)
	}
	return store.Renewal{Now: time.UnixMicro(number(r[0])).UTC(), Forgot: number(r[1]) == 1, Wanted: readNotes(r[2:])}, nil
}
