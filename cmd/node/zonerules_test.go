package node

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// heardRules is what the others hear.
type heardRules chan uint64

func (h heardRules) SetRules(rules uint64) error { h <- rules; return nil }

func TestRulesAreToldAtStartAndEachHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(heardRules, 10)
		teller := ruleTeller{fleet: heard, log: slog.New(slog.DiscardHandler)}
		teller.stop() // before it started
		teller.start()
		begun := time.Now()
		first := <-heard
		if first>>48 != uint64(begun.Year()) || time.Since(begun) != 0 {
			t.Errorf("first %#x after %v", first, time.Since(begun))
		}
		if again := <-heard; again != first || time.Since(begun) != rulesEvery {
			t.Errorf("then %#x after %v", again, time.Since(begun))
		}
		teller.stop()
		time.Sleep(2 * rulesEvery)
		if len(heard) > 0 {
			t.Error("told after the stop")
		}
	})
}
