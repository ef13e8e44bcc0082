//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// A shard moves to another master of a Redis Cluster under two servers, and then
// the master of another one dies.
func TestClusterThatMovesAndFailsLosesNothing(t *testing.T) {
	severalServers(t)
	cluster := redistest.StartCluster(t, 3, 2)
	s := startServers(t, cluster.URL()+"?wait_replicas=1&wait_timeout=500ms", 2)
	x := startTraffic(t, s.addrs())
	x.awaitMore(300)

	moved := "ddq:{" + trafficTopic + ":0}:owner"
	from, _ := cluster.MasterOf(t, moved)
	x.watch()
	for _, to := range cluster.Masters(t) {
		if to == from {
			continue
		}
		began := time.Now()
		cluster.Move(t, moved, to, func() { x.awaitMore(8) })
		over := time.Now()
		x.awaitService(over)
		t.Logf("the slot moved in %v, the service was back %v later", over.Sub(began).Round(time.Millisecond), time.Since(over).Round(time.Millisecond))
		break
	}
	gaps, _ := x.watched()
	t.Logf("longest gaps by shard: %v", gaps)

	key := "ddq:{" + trafficTopic + ":1}:owner"
	master, _ := cluster.MasterOf(t, key)
	killed := time.Now()
	master.Kill()
	cluster.AwaitTakeover(t, key)
	back := time.Now()
	x.awaitService(back)
	t.Logf("the cluster was back %v after the kill, the service %v later",
		back.Sub(killed).Round(time.Millisecond), time.Since(back).Round(time.Millisecond))
	x.awaitMore(300)
	x.finish()
}
