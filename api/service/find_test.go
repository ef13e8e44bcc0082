package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// Pages end where the bodies of their tasks fill an answer, and no task is left out.
func TestLargeTasksAreFoundAndCountedPageByPage(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 2}}, func(t *testing.T, s *service.Service) {
		const n = 24
		for i := range n {
			large := servicetest.After("mail", fmt.Sprintf("t%02d", i), time.Hour)
			large.Task.Payload = make([]byte, 1<<20)
			large.Task.Attributes = []store.Attribute{{Key: "tenant", Value: "acme"}}
			servicetest.EnqueueOne(t, s, large)
		}
		acme := service.TaskFilter{Attributes: []service.AttributeMatch{{Key: "tenant", Value: "acme"}}}
		found := map[string]bool{}
		for token := ""; ; {
			page, next, err := s.Finder.Find(t.Context(), "mail", acme, 1000, token)
			if err != nil {
				t.Fatal(err)
			}
			bytes := 0
			for _, f := range page {
				found[f.ID] = true
				bytes += f.BodySize()
			}
			if bytes > 2*store.MaxBodies {
				t.Errorf("a page has %d bytes", bytes)
			}
			if token = next; next == "" {
				break
			}
		}
		counts, err := s.Finder.Count(t.Context(), "mail", acme)
		if err != nil || len(found) != n || counts.Scheduled != n {
			t.Errorf("found %d and counted %d of %d, %v", len(found), counts.Scheduled, n, err)
		}
	})
}
