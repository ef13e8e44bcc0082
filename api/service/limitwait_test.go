package service_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
)

// TestDescribeTellsWhoWaitsBesideRoom has a store not answer for a while: what waits under limits is told by DescribeServer
// while it does, for some minutes more, and not for ever.
func TestDescribeTellsWhoWaitsBesideRoom(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"]
		told := func(when string, want bool) {
			t.Helper()
			status, err := a.Sys.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(status.Warnings, "; ")
			if strings.Contains(got, "ddq_limit_wait_seconds") != want || strings.Contains(got, "mail") {
				t.Errorf("%s: warnings are %q, want one of tasks that wait: %v", when, got, want)
			}
		}
		f.Limited("mail", service.TopicChange{Concurrency: new(100)})
		c := f.Hire("mail", 1, 10, "a")
		f.Backlog("mail", 20, nil)
		c.Run(time.Second)
		if len(c.Got) != 20 || f.Gauges("ddq_limit_wait_seconds", "topic")["mail"] > 0.1 {
			t.Errorf("%d of 20 tasks came, and waited for %v", len(c.Got), f.Gauges("ddq_limit_wait_seconds", "topic")["mail"])
		}
		told("before", false)

		a.Store.Freeze(true)
		f.Backlog("mail", 20, nil)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		told("while the store is silent", true)
		a.Store.Freeze(false)
		c.Run(time.Minute)
		if len(c.Got) != 40 {
			t.Errorf("%d of 40 tasks came", len(c.Got))
		}
		told("a minute later", true)
		c.Run(11 * time.Minute)
		told("eleven minutes later", false)
		if got := f.Gauges("ddq_limit_wait_seconds", "topic")["mail"]; got > 0.1 {
			t.Errorf("the wait is still %v", got)
		}
	})
}
