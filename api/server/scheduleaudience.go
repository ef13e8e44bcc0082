package server

import (
	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

var quietToWire = [...]ddqv1.QuietPolicy{
	audience.Defer: ddqv1.QuietPolicy_QUIET_POLICY_DEFER, audience.Skip: ddqv1.QuietPolicy_QUIET_POLICY_SKIP,
	audience.Ignore: ddqv1.QuietPolicy_QUIET_POLICY_IGNORE,
}

// defaultSpreadFrom is how many recipients are spread where nothing is said.
const defaultSpreadFrom = 100

// readTarget reads the audience of a schedule; nil when it has none.
func readTarget(w *ddqv1.AudienceTarget) (*schedule.Target, *problem.Error) {
	if w == nil {
		return nil, nil
	}
	t := &schedule.Target{Name: w.GetName(), Kind: w.GetKind(), SpreadFrom: defaultSpreadFrom, Rotate: w.GetRotate(), Untracked: w.Track != nil && !w.GetTrack()}
	quiet, e := wire.ReadEnum[audience.QuietPolicy](quietToWire[:], w.GetQuiet(), "audience.quiet")
	if e != nil {
		return nil, e
	}
	if t.Quiet = uint8(quiet); quiet == 0 {
		t.Quiet = uint8(audience.Defer)
	}
	if w.SpreadFrom != nil {
		t.SpreadFrom = w.GetSpreadFrom()
	}
	if t.Window, e = wire.Span(w.GetWindowMs(), "audience.window_ms"); e != nil {
		return nil, e
	}
	t.Grain, e = wire.Span(w.GetGrainMs(), "audience.grain_ms")
	return t, e
}

func targetWire(t *schedule.Target) *ddqv1.AudienceTarget {
	if t == nil {
		return nil
	}
	track := !t.Untracked
	return &ddqv1.AudienceTarget{
		Name: t.Name, Kind: t.Kind, WindowMs: store.CeilMillis(t.Window), GrainMs: store.CeilMillis(t.Grain), SpreadFrom: &t.SpreadFrom,
		Quiet: wire.Enum(quietToWire[:], audience.QuietPolicy(t.Quiet)), Rotate: t.Rotate, Track: &track,
	}
}
