package redisstore

import (
	"context"
	"encoding/binary"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// A member of the set of lanes is a lane, as record.AppendLane writes it, the due time
// in milliseconds in 8 bytes, and the stored form of the id. Scripts know this too, in
// lua/lane_member.lua.

// lanePage returns pending tasks of one lane.
func (s *reader) lanePage(ctx context.Context, keys *shardKeys, w store.WindowQuery, after store.Entry, limit int) (reply, []store.Entry, error) {
	a := newArgs(5, 64)
	a.buf = record.AppendLane(a.buf, *w.Lane)
	a.end()
	if after.ID == "" && after.Due == 0 {
		a.str("")
		a.str("")
	} else {
		a.int(int64(after.Due))
		a.id(after.ID)
	}
	a.int(int64(min(w.To, maxScore)))
	a.int(int64(max(limit, 0)))
	v, err := s.conn.Run(ctx, s.lua.laneWindow, keys.pick(ownerKey, lanesKey, traitsKey), a.values())
	if err != nil {
		return reply{}, nil, conn.ReadError("window of a lane", err)
	}
	return parseEntries(v)
}

// Lanes implements store.Reader.
func (s *reader) Lanes(ctx context.Context, shard store.Shard, after *store.Lane, limit int) ([]store.LaneHead, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	a := newArgs(2, 64)
	if after != nil {
		a.buf = record.AppendLane(a.buf, *after)
	}
	a.end()
	a.int(int64(limit))
	v, err := s.conn.Run(ctx, s.lua.lanes, s.keys(shard).pick(lanesKey), a.values())
	if err != nil {
		return nil, conn.ReadError("lanes", err)
	}
	var heads []store.LaneHead
	for _, member := range texts(v) {
		lane, rest, err := record.CutLane([]byte(member))
		if err == nil && len(rest) >= 8 { // Sweep removes the others
			heads = append(heads, store.LaneHead{Lane: lane, Due: store.Millis(binary.BigEndian.Uint64(rest))})
		}
	}
	return heads, nil
}
