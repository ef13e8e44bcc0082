package actors

import (
	"context"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/store"
)

// scanLanes asks the store which lanes there are.
func (s *shard) scanLanes() {
	s.calls.Run(func(ctx context.Context) {
		m := &lanesFound{}
		for after := (*store.Lane)(nil); m.err == nil; {
			var page []store.LaneHead
			page, m.err = s.store.Lanes(ctx, s.id, after, agenda.LanesPerPage)
			m.heads = append(m.heads, page...)
			if len(page) < agenda.LanesPerPage {
				break
			}
			after = &page[len(page)-1].Lane
		}
		if m.err != nil {
			sleep(ctx, storeRetry)
		}
		s.done(m)
	})
}

func (s *shard) onLanesFound(m *lanesFound) {
	if m.err == nil {
		s.tasks.LanesFound(s.now(), m.heads)
		return
	}
	again := s.tasks.LanesNotFound()
	s.noteError(m.err) // which may end the claim
	if again {
		s.tasks.ScanLanes()
		s.carryOut()
	}
}
