//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// The primary dies under two servers, and sentinels name another one.
func TestSentinelFailoverLosesNothing(t *testing.T) {
	severalServers(t)
	set := redistest.StartSentinel(t)
	s := startServers(t, set.URL()+"?wait_replicas=1&wait_timeout=500ms", 2)
	x := startTraffic(t, s.addrs())
	x.awaitMore(500)
	primary := set.Primary(t)
	killed := time.Now()
	primary.Kill()
	set.AwaitTakeover(t)
	back := time.Now()
	x.awaitService(back)
	t.Logf("the primary was back %v after the kill, the service %v later",
		back.Sub(killed).Round(time.Millisecond), time.Since(back).Round(time.Millisecond))
	x.awaitMore(500)
	x.finish()
}
