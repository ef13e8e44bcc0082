package redisstore_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
	"github.com/ddq-io/ddq/store/storetest"
)

// patience is how long a server or a replica may be silent in cases that are not about that. They write tens
// of megabytes at once, which takes a busy machine seconds.
const patience = time.Minute

func TestConformanceInACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("waits long, and meets in no other way than TestConformance: make race-all plays it")
	}
	cluster := redistest.StartCluster(t, 3, 1)
	cluster.Patience(t, patience)
	flushed := func(t *testing.T) store.Store {
		cluster.Flush(t)
		return openWith(t, redisstore.Config{URL: cluster.URL(), Timeout: 2 * patience})
	}
	storetest.Run(t, flushed)
	storetest.RunCells(t, flushed)
}

func TestConformanceBehindSentinels(t *testing.T) {
	if testing.Short() {
		t.Skip("waits long, and meets in no other way than TestConformance: make race-all plays it")
	}
	set := redistest.StartSentinel(t)
	set.Patience(t, patience)
	patient := redisstore.Config{URL: set.URL(), WaitReplicas: 1, WaitTimeout: patience, Timeout: 2 * patience}
	replicated := func(t *testing.T) store.Store {
		set.Primary(t).Do(t, "FLUSHALL")
		return openWith(t, patient)
	}
	storetest.Run(t, replicated)
	storetest.RunCells(t, replicated)
}
