package watches

import "github.com/ddq-io/ddq/api/service/position"

// What tests of watches see of their insides.

// At is how far the watch is.
func (w *Watch) At() position.Set { return w.at }

// Tails is how many topics have watchers.
func (s *Watches) Tails() int { return len(s.tails.byTopic) }
