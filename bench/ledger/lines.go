package ledger

// The rules of ordering keys, whose tasks are held one at a time and in order of their
// due times.

// lines checks the tasks of every ordering key.
func (c *checker) lines() {
	type line struct{ topic, key string }
	byKey := map[line][]*story{}
	for _, s := range c.h.stories {
		if key := s.orderingKey(); key != "" {
			byKey[line{s.topic, key}] = append(byKey[line{s.topic, key}], s)
		}
	}
	for _, tasks := range byKey {
		b := &books{}
		for _, s := range tasks {
			c.enter(b, s)
		}
		c.atMost(b, 1, "of its ordering key")
		c.inOrder(tasks)
	}
}

func (s *story) orderingKey() string { return s.said(func(o *op) string { return o.Order }) }

// inOrder complains when a task was delivered for the first time after a later one of its
// key, though it was stored before that one can have been held. Tasks that were moved, or
// may have lived twice, prove nothing. A worker that was paused may tell of the first attempt
// after another one had the second.
func (c *checker) inOrder(tasks []*story) {
	for _, s := range tasks {
		if s.firstDelivery() == nil || s.creations() > 1 || len(s.moves) > 0 {
			continue
		}
		for _, other := range tasks {
			later := other.firstDelivery()
			if other == s || later == nil || later.Mono >= s.deliveries[0].Mono || len(other.moves) > 0 {
				continue
			}
			c.s, c.earliest = other, other.earliestDue(&c.h.clock)
			held := c.granted(later)
			c.s = s
			due, to := s.storedDue()
			its, known := other.storedDue() // one that was given back has another by now, and goes first all the same
			if known != never && to < held && due < its {
				c.offend(Overtaken, "due %d ms before %s of its ordering key, and delivered after it", its-due, other.id)
				break
			}
		}
	}
}

// firstDelivery is the first attempt as a worker received it, nil when nobody did.
func (s *story) firstDelivery() *delivery {
	for _, d := range s.deliveries {
		if d.Attempt == 1 && !d.loose {
			return d
		}
	}
	return nil
}

// storedDue is when the task was due as the server said that stored it, and by when that
// was; never for one that nobody said was stored.
func (s *story) storedDue() (due, to int64) {
	for _, o := range s.enqueues {
		if o.result == OK && o.answer != nil {
			return o.answer.Due, o.to
		}
	}
	return 0, never
}
