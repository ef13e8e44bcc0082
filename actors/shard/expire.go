package shard

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// What no worker takes is seen to expire by the watchdog: it looks at some of what is ready, one slice behind
// the other, and goes on at once while most of it has expired.
const (
	expirePage  = 250
	expirePages = 20 // of one look
)

// expiry is what a look at ready tasks came to.
type expiry struct {
	seq  int64
	gone []string
	next expiryCursor
}

// expiryCursor is where the next look goes on. It ends at what was due when it began at the first task: what
// comes meanwhile is looked at the next time, so that those before it are, too. The zero cursor begins at the first.
type expiryCursor struct {
	after store.Entry
	to    store.Millis
}

// expire has the store move ready tasks past their expiry to the dead letters. It asks for holds that come too
// late, which nobody gets.
func (r *recoverer) expire(ctx context.Context, f store.Fence, from expiryCursor) (x expiry, err error) {
	x.next = from
	anew := from == expiryCursor{}
	for range expirePages {
		if x.next.to == 0 {
			x.next.to = r.Now()
		}
		_, page, err := r.store.Window(ctx, r.id, store.WindowQuery{After: x.next.after, To: x.next.to, Limit: expirePage})
		switch {
		case err != nil:
			return x, err
		case len(page) == 0 && anew:
			x.next = expiryCursor{}
			return x, nil
		case len(page) == 0:
			x.next, anew = expiryCursor{}, true
			continue
		}
		holds := make([]store.Hold, len(page))
		for i, e := range page {
			holds[i] = store.Hold{ID: e.ID, Token: store.NewToken(), Visibility: watchSlack, Before: 1}
		}
		stamp, results, err := r.store.Hold(ctx, r.id, f, holds)
		if err != nil {
			return x, err
		}
		before := len(x.gone)
		for i := range results {
			if status := results[i].Status; status == store.Expired || status == store.Corrupt {
				x.gone = append(x.gone, page[i].ID)
			} else if status == store.LeftOut {
				break
			}
			x.next.after = page[i]
		}
		x.seq = stamp.Seq
		if len(x.gone)-before < expirePage/2 {
			break
		}
	}
	return x, nil
}

// onExpired learns of tasks that are dead letters now.
func (r *recoverer) onExpired(x *expiry) {
	r.expireFrom = x.next
	if len(x.gone) > 0 {
		r.notifier.gone(x.seq, x.gone)
	}
}
