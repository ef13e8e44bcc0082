package shard

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/store"
)

func TestShardThatFailsSaysSoOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := &claimer{shardState: &shardState{
			Runtime: &runtime.Runtime{Log: slog.New(slog.NewTextHandler(&out, nil))}, id: store.Shard{Topic: "mail", N: 3},
		}}
		for range 90 {
			c.warn(errors.New("key has a wrong type"))
			c.warn(fmt.Errorf("window: %w", store.ErrUnavailable)) // told once for all shards
			time.Sleep(time.Second)
		}
		if n := strings.Count(out.String(), "topic=mail shard=3"); n != 2 || strings.Contains(out.String(), "window") {
			t.Errorf("want two lines about the wrong type in a minute and a half, got %d:\n%s", n, &out)
		}
	})
}
