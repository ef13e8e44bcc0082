package redisstore_test

import (
	"testing"

	"github.com/ddq-io/ddq/store"
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
	storetest.Run(t, func(t *testing.T) store.Store {
		set.Primary(t).Do(t, "FLUSHALL")
		return open(t, set.URL()+"?wait_replicas=1")
	})
	storetest.RunCells(t, func(t *testing.T) store.Store {
		set.Primary(t).Do(t, "FLUSHALL")
		return open(t, set.URL()+"?wait_replicas=1")
	})
}
