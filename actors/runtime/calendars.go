package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// calendarsFresh is how long calendars are gone by as they were read.
const calendarsFresh = time.Second

// Calendars are those that the node knows. They are read when they are asked for, so a node
// that makes no runs of schedules does not read them.
type Calendars struct {
	cells store.Cells   // nil: the store keeps none
	turn  chan struct{} // of one: whoever has put into it reads, or finds what was read

	mu  sync.Mutex
	at  time.Time          // when they were read; guarded by mu
	all schedule.Calendars // not changed once it is here; guarded by mu

	forgotten int // how often; guarded by mu
}

// NewCalendars returns the calendars of a store.
func NewCalendars(cells store.Cells) *Calendars {
	return &Calendars{cells: cells, turn: make(chan struct{}, 1)}
}

// Fresh returns the calendars as they were within the last second. What it returns is not
// to be changed.
func (c *Calendars) Fresh(ctx context.Context) (schedule.Calendars, error) {
	if c.cells == nil {
		return nil, nil
	}
	if all := c.known(); all != nil {
		return all, nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if all := c.known(); all != nil {
		return all, nil
	}
	began, forgotten := time.Now(), c.timesForgotten()
	all, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	c.keep(all, began, forgotten)
	return all, nil
}

func (c *Calendars) timesForgotten() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forgotten
}

// keep keeps what was read for the next callers, unless it was forgotten during the read: it
// may be from before what it was forgotten for.
func (c *Calendars) keep(all schedule.Calendars, at time.Time, forgotten int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgotten == forgotten {
		c.all, c.at = all, at
	}
}

// known is what was read within the last second; nil when nothing was.
func (c *Calendars) known() schedule.Calendars {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) >= calendarsFresh {
		return nil
	}
	return c.all
}

// Forget has the next caller read them, also when a read is in flight.
func (c *Calendars) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = nil
	c.forgotten++
}

func (c *Calendars) read(ctx context.Context) (schedule.Calendars, error) {
	all := make(schedule.Calendars)
	for after := (store.Wake{}); ; {
		cells, err := c.cells.Listed(ctx, schedule.CalendarShard, schedule.CalendarList, after, schedule.MaxCalendars)
		if err != nil {
			return nil, err
		}
		if len(cells) == 0 {
			return all, nil
		}
		for i := range cells {
			after.ID = cells[i].ID
			if calendar, err := schedule.CalendarIn(&cells[i]); err == nil { // one that cannot be read leaves nothing out
				all[cells[i].ID.Key()] = calendar
			}
		}
	}
}
