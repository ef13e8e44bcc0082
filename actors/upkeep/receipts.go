package upkeep

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	receiptsEvery = 240            // chores: an hour, at which the receipts of shards are looked at
	receiptsKept  = 24 * time.Hour // of a shard that is gone: calls of its last owner may be on their way
	receiptsPage  = 1000
)

// receipts forgets what shards of this node know of queues whose shards are gone for a day: their topic was deleted, or
// made anew, or they are of a generation that was retired. The day begins when this node sees it first.
type receipts struct {
	topics map[string]*store.Topic
	since  map[receiptAt]time.Time // that the source of one has been gone
}

type receiptAt struct {
	shard store.Shard
	id    store.CellID
}

// look begins a look at all shards, by the topics that there are.
func (r *receipts) look(topics []store.Topic) {
	r.topics = make(map[string]*store.Topic, len(topics))
	for i := range topics {
		r.topics[topics[i].Name] = &topics[i]
	}
	if r.since == nil {
		r.since = make(map[receiptAt]time.Time)
	}
	for at := range r.since {
		if r.topics[at.shard.Topic] == nil { // it went with its own topic
			delete(r.since, at)
		}
	}
}

// isGone reports whether a shard is none of its topic any more.
func (r *receipts) isGone(s store.Shard) bool {
	t := r.topics[s.Topic]
	return t == nil || t.Life != s.Life || !t.Has(s.N)
}

// forget deletes the receipts of a shard whose time has come.
func (r *receipts) forget(ctx context.Context, cells store.Cells, shard store.Shard) error {
	for cursor := ""; ; {
		page, next, err := cells.CellPage(ctx, shard, store.CellTally, cursor, receiptsPage)
		if err != nil {
			return err
		}
		var over []store.Put
		for i := range page {
			q, is := store.ReceiptOf(page[i].ID, shard.Topic)
			if !is {
				continue
			}
			at := receiptAt{shard, page[i].ID}
			switch since, known := r.since[at]; {
			case !r.isGone(q.Source):
				delete(r.since, at)
			case !known:
				r.since[at] = time.Now()
			case time.Since(since) >= receiptsKept:
				over = append(over, store.Put{Cell: store.Cell{ID: page[i].ID}, If: page[i].Version})
			}
		}
		for i := range over { // one that was written meanwhile stays, and so does its time
			_, results, err := cells.Commit(ctx, shard, nil, []store.Commit{{Puts: over[i : i+1]}})
			if err != nil {
				return err
			}
			if results[0].Status == store.OK {
				delete(r.since, receiptAt{shard, over[i].ID})
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}
