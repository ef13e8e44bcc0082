package actors

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

func TestSettingsThatCannotWork(t *testing.T) {
	const port = 5 << 20
	for _, tc := range []struct {
		cfg  Config
		want string
	}{
		{Config{Horizon: 61 * time.Second}, "horizon must be 100ms to 1m0s, not 1m1s"},
		{Config{Horizon: -1}, "horizon must be 100ms to 1m0s, not -1ns"},
		{Config{HoldAhead: 251 * time.Millisecond}, "hold-ahead must be 0s to 250ms, not 251ms"},
		{Config{HoldAhead: -1}, "hold-ahead must be 0s to 250ms, not -1ns"},
		{Config{LoadEvery: 10}, "load-every must be 10ms to 29.999s, not 10ns"},
		{Config{Horizon: 5 * time.Second, LoadEvery: 5 * time.Second}, "load-every must be 10ms to 4.999s, not 5s"},
		{Config{WatchdogInterval: 10}, "watchdog-interval must be 50ms to 1h0m0s, not 10ns"},
		{Config{LeaseTTL: 10}, "lease-ttl must be 100ms to 5m0s, not 10ns"},
		{Config{WheelBudget: -1}, "wheel-budget must be 1 to 2147483647, not -1"},
		{Config{Topic: store.Topic{Shards: 70000}}, "shards must be 1 to 256, not 70000"},
		{Config{Limits: Limits{Shards: 70000}}, "limit-shards must be 1 to 65535, not 70000"},
		{Config{Topic: store.Topic{Visibility: 100 * time.Millisecond}}, "visibility-timeout must be 1s to 12h0m0s, not 100ms"},
		{Config{Topic: store.Topic{MaxRetries: 5000}}, "max-retries must be 0 to 1000, not 5000"},
		{Config{Topic: store.Topic{MaxPayload: 8 << 20}}, "max-payload must be 1 to 4194304, not 8388608"},
		{Config{Topic: store.Topic{MaxDead: -1}}, "max-dead must be 0 to 1000000000, not -1"},
		{Config{Limits: Limits{BatchBytes: 8 << 20}}, "limit-batch-bytes must be 1 to 5242880, not 8388608"},
		{Config{Limits: Limits{Payload: 5 << 20}}, "limit-payload must be 1 to 4194304, not 5242880"},
		{Config{Limits: Limits{MinVisibility: time.Minute}}, "visibility-timeout must be 1m0s to 12h0m0s, not 30s"},
		{Config{Limits: Limits{MaxVisibility: time.Millisecond}}, "limit-min-visibility must be 1ms to 1ms, not 1s"},
		{Config{Topic: store.Topic{Backoff: store.Backoff{Kind: store.BackoffFixed, Base: time.Hour, Max: time.Minute}}},
			"backoff base must be 0s to 1m0s, not 1h0m0s"},
	} {
		if err := tc.cfg.Check(port); err == nil || err.Error() != tc.want {
			t.Errorf("got  %v\nwant %s", err, tc.want)
		}
	}
}

func TestSettingsThatWork(t *testing.T) {
	for _, cfg := range []Config{
		{},
		{Horizon: shard.MaxHorizon, LoadEvery: shard.MaxHorizon - time.Millisecond},
		{Horizon: time.Second, WatchdogInterval: 100 * time.Millisecond, LeaseTTL: 20 * time.Second},
		{Topic: store.Topic{Shards: 256, MaxRetries: -1, MaxPayload: 4 << 20}},
		{Topic: store.Topic{Shards: 70}, Limits: Limits{Shards: 70, Delay: time.Hour}},
		{Limits: Limits{Payload: 5 << 20, BatchBytes: 5 << 20}},
	} {
		if err := cfg.Check(5 << 20); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
