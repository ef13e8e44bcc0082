package redisstore_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
	"github.com/ddq-io/ddq/store/storetest"
)

func TestConformanceInACluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 1)
	storetest.Run(t, func(t *testing.T) store.Store {
		cluster.Flush(t)
		return open(t, cluster.URL())
	})
	storetest.RunCells(t, func(t *testing.T) store.Store {
		cluster.Flush(t)
		return open(t, cluster.URL())
	})
}

func TestConformanceBehindSentinels(t *testing.T) {
	set := redistest.StartSentinel(t)
	// Cases write tens of megabytes at once, which a busy machine gives no replica within a second.
	patient := redisstore.Config{URL: set.URL(), WaitReplicas: 1, WaitTimeout: 30 * time.Second, Timeout: 40 * time.Second}
	replicated := func(t *testing.T) store.Store {
		set.Primary(t).Do(t, "FLUSHALL")
		return openWith(t, patient)
	}
	storetest.Run(t, replicated)
	storetest.RunCells(t, replicated)
}
