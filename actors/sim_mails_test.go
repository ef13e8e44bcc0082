package actors_test

import (
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// mail puts the schedule whose runs go through the audience. Its timetable starts few of them, users
// some more.
func (s *sim) mail(rng *rand.Rand) {
	bare := schedule.Schedule{Name: simMails}
	start := s.now(s.shardOf(bare.ID(schedule.Occurrence{})))
	s.mailBy(rng, simMails, start, timetable.Spec{
		Entries: []timetable.Entry{{Every: simBetween(rng, time.Minute, 150*time.Second)}},
		End:     start.Add(s.plan.active).Time(),
	})
	for range rng.IntN(4) {
		act := []int{0, 0, 1, 2, 3}[rng.IntN(5)]
		s.after(simBetween(rng, time.Second, s.plan.active), func() { s.askForSchedule(simMails, act) })
	}
	s.after(s.plan.active+time.Second, func() { s.pauseSchedule(simMails, false) })
}

// mailLocally puts one whose runs come when the clocks of recipients show a time. The clocks of all zones
// have passed it but for the last, where it is soon: nobody looked at the schedule for so long, and what was
// missed is caught up with.
func (s *sim) mailLocally(rng *rand.Rand) {
	bare := schedule.Schedule{Name: simLocals}
	behind := 14*time.Hour - simZones["America/New_York"]
	start := s.now(s.shardOf(bare.ID(schedule.Occurrence{}))).Add(-behind)
	var at []time.Time
	for range 1 + rng.IntN(3) {
		wall := start.Add(14*time.Hour + simBetween(rng, time.Second, s.plan.active))
		at = append(at, wall.Time())
	}
	s.mailBy(rng, simLocals, start, timetable.Spec{
		Entries: []timetable.Entry{{At: at}}, Zone: timetable.Recipient, End: start.Add(behind + s.plan.active).Time(),
	})
}

// mailBy puts a schedule of the audience that has nothing decided since a time.
func (s *sim) mailBy(rng *rand.Rand, name string, start store.Millis, table timetable.Spec) {
	bare := schedule.Schedule{Name: name}
	one := &schedule.Schedule{
		Spec: schedule.Spec{
			Timetable: table,
			Overlap:   schedule.Overlap(1 + rng.IntN(5)),
			CatchUp:   schedule.CatchUp(1 + rng.IntN(3)), Grace: simBetween(rng, time.Second, time.Minute), History: schedule.MaxHistory,
			Template: schedule.Template{Task: store.Task{Payload: []byte("mail"), MaxRetries: rng.IntN(3)}},
			Audience: drawTarget(rng),
		},
		Name: name, Life: rng.Uint64(), Phase: schedule.Active, Anchor: start, Decided: start,
	}
	if name == simLocals { // it has missed all there is
		one.CatchUp = schedule.Last + schedule.CatchUp(rng.IntN(2))
	}
	parsed, err := one.Table()
	if err != nil {
		panic(err)
	}
	s.schedules[schedule.CellID(name)] = &simSchedule{
		shard: s.shardOf(bare.ID(schedule.Occurrence{})), start: start, table: parsed, made: map[string]bool{},
	}
	s.change(one, 0, nil)
}

// simBetween is a duration from a up to b, of whole milliseconds.
func simBetween(rng *rand.Rand, a, b time.Duration) time.Duration {
	return (a + time.Duration(rng.Int64N(int64(b-a)))).Truncate(time.Millisecond)
}

// drawTarget draws how runs go through the audience.
func drawTarget(rng *rand.Rand) *schedule.Target {
	t := &schedule.Target{
		Name: simUsers, Kind: []string{"", "digest", "digest", "news"}[rng.IntN(4)],
		Grain: []time.Duration{0, time.Second, 7 * time.Second}[rng.IntN(3)],
		Quiet: uint8(audience.Defer) + uint8(rng.IntN(3)), Rotate: rng.IntN(2) == 0, Untracked: rng.IntN(4) == 0,
	}
	if rng.IntN(5) > 0 {
		t.Window = time.Duration(20+rng.IntN(100)) * time.Second
	}
	if rng.IntN(3) == 0 {
		t.SpreadFrom = rng.Int64N(60)
	}
	return t
}

// cancelRun has a user ask some node to end a run that is open.
func (s *sim) cancelRun() {
	var open []*simRun
	for _, r := range s.audience.begun {
		if !r.over {
			open = append(open, r)
		}
	}
	n := s.anyNode()
	if n == nil || len(open) == 0 {
		return
	}
	run, undo := open[s.rng.IntN(len(open))], s.chance(0.7)
	s.log("a user asks %s to cancel %s, undo %v", n.key, run.Run, undo)
	s.spawn(n, func() error {
		ctx, cancel := n.timeout()
		defer cancel()
		_, err := n.use.Audiences.CancelRun(ctx, simUsers, run.Run, undo, n.sys.Clock().Millis())
		return err
	}, func(err error) {
		s.log("%s is cancelled: %v", run.Run, err)
		run.stopped = run.stopped || err == nil
	})
}
