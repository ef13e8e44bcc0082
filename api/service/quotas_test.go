package service_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/tenants"
)

// A node that has not heard of a reshard sends a task to a shard that takes none, and then to another one.
func TestATaskThatIsRoutedAnewCountsOnceInItsQuota(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		b := f.Nodes["b"].Sys
		b.SetQuotas(func(string) *tenants.Quotas { return &tenants.Quotas{EnqueuePerSecond: 0.001, EnqueueBurst: 2} })
		if out := servicetest.EnqueueOne(t, b, servicetest.After("mail", "before", time.Hour)); out.Err != nil {
			t.Fatal(out.Err)
		}
		servicetest.Idle(2 * time.Second)
		f.Reshard(f.Nodes["a"], "mail", 3)
		if out := servicetest.EnqueueOne(t, b, servicetest.After("mail", "id", time.Hour)); out.Err != nil {
			t.Errorf("the second of two: %v", out.Err)
		}
		if out := servicetest.EnqueueOne(t, b, servicetest.After("mail", "third", time.Hour)); out.Err == nil || out.Err.Reason != "RATE_LIMITED" {
			t.Errorf("the third: %v", out.Err)
		}
	})
}
