package service_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/timer/zones"
)

// ruledView is a view whose members have rules of time zones.
type ruledView struct {
	fleet.View
	rules map[string]zones.Rules
}

func (v ruledView) Members() []fleet.Member {
	members := slices.Clone(v.View.Members())
	for i := range members {
		members[i].Rules = v.rules[members[i].Name]
	}
	return members
}

func TestNodesWhoseTimeZonesDifferAreWarnedOfOnce(t *testing.T) {
	servicetest.FleetBubble(t, nil, func(t *testing.T, f *servicetest.Fleet) {
		var log bytes.Buffer // of a, by one goroutine while the test waits
		f.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: withoutTime}))
		a := f.Join("a")
		f.Log = nil
		f.Join("b")
		synctest.Wait()
		const year = 2000 << 48
		for _, c := range []struct {
			what    string
			of, ofB zones.Rules
			warning string
			log     string
		}{
			{"neither is known", 0, 0, "", ""},
			{"b is of before", year + 1, 0, "", ""},
			{"they agree", year + 1, year + 1, "", ""},
			{"they differ", year + 1, year + 2, "nodes have different time zones: those of b are not those of a; ", "level=WARN msg=\"nodes have different time zones\" nodes=[b] others=[a]\n"},
			{"they still do", year + 1, year + 3, "nodes have different time zones: those of b are not those of a; ", ""},
			{"they agree again", year + 3, year + 3, "", "level=INFO msg=\"nodes have the same time zones again\"\n"},
			{"they differ again", year + 3, year + 1, "nodes have different time zones: those of b are not those of a; ", "level=WARN msg=\"nodes have different time zones\" nodes=[b] others=[a]\n"},
		} {
			log.Reset()
			a.Show(func(was fleet.View) fleet.View {
				return ruledView{was, map[string]zones.Rules{"a": c.of, "b": c.ofB}}
			})
			for range 2 { // also when something else changes
				f.Edit(func() {})
				time.Sleep(time.Second)
				synctest.Wait()
			}
			if got := log.String(); got != c.log {
				t.Errorf("%s: logged %q, want %q", c.what, got, c.log)
			}
			status, err := a.Sys.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(status.Warnings, "; "); !strings.Contains(got, c.warning) || strings.Contains(got, fleet.ZonesDiffer) != (c.warning != "") {
				t.Errorf("%s: warnings are %q, want %q", c.what, got, c.warning)
			}
		}
	})
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
