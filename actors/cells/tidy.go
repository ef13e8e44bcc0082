package cells

import (
	"context"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/store"
)

// tidy deletes the claims of a shard that has no schedules left, and the tallies and receipts of one that has nothing
// else, once those that they are of are gone, or have nothing left of what they count. A shard without cells and tasks is retired.
func (l mover) tidy(ctx context.Context) error {
	if l.out.Progress.Heard > l.out.Progress.Taken || l.out.Again {
		return nil
	}
	for _, kind := range [...]byte{store.CellTally, store.CellClaim} {
		for cursor := ""; ; {
			page, next, err := l.Store.CellPage(ctx, l.ID, kind, cursor, batch)
			if err != nil {
				return err
			}
			if err := l.tidyPage(ctx, page); err != nil {
				return err
			}
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	return nil
}

func (l mover) tidyPage(ctx context.Context, page []store.Cell) error {
	var commits []store.Commit
	for i := range page {
		over, err := l.isOver(ctx, &page[i])
		if err != nil {
			return err
		}
		if over {
			commits = append(commits, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: page[i].ID}, If: page[i].Version}}})
		}
	}
	if len(commits) == 0 {
		return nil
	}
	_, _, err := l.commitAll(ctx, l.ID, &l.Fence, commits)
	return err
}

// isOver reports whether a claim, a tally or a receipt is of no use any more.
func (l mover) isOver(ctx context.Context, c *store.Cell) (bool, error) {
	if c.ID.Kind() == store.CellClaim || c.ID == forwards || c.ID == homewards {
		return true, nil
	}
	if source, of := strings.CutPrefix(string(c.ID), tallyPrefix); of {
		n, err := strconv.Atoi(source)
		return err == nil && !l.Topic.Has(n), nil
	}
	if from, crosses := message.From(c.ID); crosses {
		return l.isPast(ctx, from, c.Body)
	}
	if q, is := store.ReceiptOf(c.ID, l.ID.Topic); is {
		return l.isFinished(ctx, q, c.Body)
	}
	return false, nil
}

// isPast reports whether a shard has no parcel left that a tally of it says was taken.
func (l mover) isPast(ctx context.Context, from store.Shard, tally []byte) (bool, error) {
	last, err := strconv.ParseInt(string(tally), 10, 64)
	if err != nil {
		return false, err
	}
	first, err := l.Store.Parcels(ctx, from, store.OutBox, 0, 1)
	return err == nil && (len(first) == 0 || first[0].Number > last), err
}

// isFinished reports whether nothing is left in a queue that a receipt of it says was settled. What comes behind that
// is received by other shards: this one is sealed.
func (l mover) isFinished(ctx context.Context, q store.Queue, receipt []byte) (bool, error) {
	r, err := store.DecodeReceipt(receipt)
	if err != nil {
		return false, err
	}
	last := r.Floor
	if n := len(r.Above); n > 0 {
		last = max(last, r.Above[n-1])
	}
	page, err := l.Store.Messages(ctx, q.Source, q, 0, 1, 1)
	return err == nil && (page.Head == 0 || page.Head > last), err
}
