package plan

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/ledger"
)

// Schedule is a schedule of the plan. Its occurrences are every Every from the second behind
// the start of the plan on, until no more tasks are sent.
type Schedule struct {
	Name    string
	Every   time.Duration
	Cron    bool // it says so as an expression; then Every divides a minute
	Overlap client.Overlap
	CatchUp client.CatchUp
	Grace   time.Duration
	Acts    []Act
}

// Act is something that is done to a schedule.
type Act struct {
	At    time.Duration
	Op    ledger.Op
	Every time.Duration // of a PutSchedule
}

// overlaps and catchUps are all that there are.
func overlaps() []client.Overlap {
	return []client.Overlap{client.OverlapSkip, client.OverlapBufferOne, client.OverlapBufferAll, client.OverlapCancelOther, client.OverlapAllow}
}

func catchUps() []client.CatchUp {
	return []client.CatchUp{client.CatchUpLast, client.CatchUpAll, client.CatchUpNone}
}

// Schedules decides everything about the schedules of a round: n of them have all policies,
// and more of them have one occurrence each, at one second.
func Schedules(c *Config) []Schedule {
	r := rand.New(rand.NewPCG(c.Seed, Draw(c.Seed, c.Name, "schedules")))
	all := make([]Schedule, 0, c.Schedules+c.Midnight)
	for i := range c.Schedules {
		s := Schedule{
			Name: fmt.Sprint("schedule-", i), Overlap: overlaps()[i%5], CatchUp: catchUps()[i/5%3],
			Every: time.Duration(1+r.IntN(10)) * time.Second,
			Grace: time.Second + time.Duration(r.Int64N(int64(9*time.Second))).Truncate(time.Millisecond),
		}
		if s.Cron = r.IntN(3) == 0; s.Cron {
			s.Every = []time.Duration{1, 2, 3, 4, 5, 6, 10}[r.IntN(7)] * time.Second
			s.Cron = s.Every <= c.For-2*time.Second // or it may have no occurrence at all
		}
		s.plan(r, c)
		all = append(all, s)
	}
	for i := range c.Midnight {
		all = append(all, Schedule{
			Name: fmt.Sprint("midnight-", i), Overlap: overlaps()[i%5], CatchUp: catchUps()[i/5%3], Every: 24 * time.Hour, Grace: time.Minute,
		})
	}
	return all
}

// plan decides what is done to the schedule: to most of them something, in order.
func (s *Schedule) plan(r *rand.Rand, c *Config) {
	half := c.For / 2
	at := func(from time.Duration) time.Duration { return from + time.Duration(r.Int64N(int64(half))) }
	switch r.IntN(5) {
	case 0:
	case 1:
		first := at(0)
		s.Acts = []Act{{At: first, Op: ledger.PauseSchedule}, {At: at(first), Op: ledger.ResumeSchedule}}
	case 2:
		first := at(0)
		s.Acts = []Act{{At: first, Op: ledger.PutSchedule, Every: s.edited(r)}, {At: at(first), Op: ledger.PutSchedule, Every: s.edited(r)}}
	case 3:
		first := at(0)
		s.Acts = []Act{{At: first, Op: ledger.Trigger}, {At: at(first), Op: ledger.Trigger}}
	case 4:
		first := at(0)
		second := at(first / 2)
		s.Acts = []Act{{At: first / 2, Op: ledger.PauseSchedule}, {At: second, Op: ledger.PutSchedule, Every: s.edited(r)}, {At: second + first/2, Op: ledger.ResumeSchedule}, {At: c.For * 9 / 10, Op: ledger.Trigger}}
	}
}

// edited is what the schedule is edited to: another interval, or the same with another
// payload.
func (s *Schedule) edited(r *rand.Rand) time.Duration {
	return []time.Duration{s.Every, time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second}[r.IntN(5)]
}

// RunName is what a run is called, by which its fate is drawn: ids are random.
func RunName(schedule string, after time.Duration) string { return fmt.Sprint(schedule, "+", after) }

// Lasts is how long a worker is at a run: at one of four so long that others come meanwhile.
func Lasts(seed uint64, run string) time.Duration {
	dice := Draw(seed, run, "lasts")
	if dice%4 != 0 {
		return 0
	}
	return 300*time.Millisecond + time.Duration(dice%uint64(2500*time.Millisecond))
}
