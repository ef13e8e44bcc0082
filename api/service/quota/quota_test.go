package quota_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/service/quota"
	"github.com/ddq-io/ddq/store"
)

// counter counts how often it is asked, which takes a while.
type counter struct {
	there int64
	took  time.Duration
	asked int
	err   error
}

func (c *counter) count(context.Context) (int64, error) {
	c.asked++
	time.Sleep(c.took)
	return c.there, c.err
}

func TestACountIsGoneByForAWhile(t *testing.T) {
	for _, c := range []struct {
		share int
		took  time.Duration
		lasts time.Duration
	}{{0, time.Second, quota.Fresh}, {50, time.Millisecond, quota.Fresh}, {50, time.Second, 50 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			q, have := &quota.Quota{Share: c.share}, &counter{there: 3, took: c.took}
			topic := &store.Topic{Name: "mail", Life: 1}
			take := func(want bool, asked int) {
				t.Helper()
				_, room, err := q.Take(t.Context(), topic, 1, 5, have.count)
				if err != nil || room != want || have.asked != asked {
					t.Errorf("room %t, counted %d times, %v", room, have.asked, err)
				}
			}
			take(true, 1)
			time.Sleep(c.lasts - time.Millisecond)
			take(true, 1)
			have.there = 5
			take(false, 2) // by what this node added there is no room: it is counted anew
			have.there = 0
			take(true, 3)
			time.Sleep(c.lasts)
			take(true, 4)
			topic.Life = 2 // another topic of the name
			take(true, 5)
		})
	}
}

func TestWhatCannotBeCountedIsNotTaken(t *testing.T) {
	q, have := &quota.Quota{}, &counter{err: errors.New("no store")}
	if _, room, err := q.Take(t.Context(), &store.Topic{Name: "mail"}, 1, 5, have.count); err == nil || room {
		t.Errorf("%t, %v", room, err)
	}
}
