package checker

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// The rule of tokens that clients take of the rates of a topic, which are those that its
// tasks are delivered by. When a token came is known in bounds only: between the call and the
// answer, and as much later as the answer says. So what counts is what came within a time for
// certain, tokens and attempts together.

// taking is what was taken of a rate at some time between two moments, on the monotonic clock.
type taking struct {
	n        int
	from, to int64
	*task    // that took it, or the call that did
}

// tokens checks every rate that clients took tokens of.
func tokens(ev *evidence) {
	type rateOf struct{ topic, key string }
	granted := map[rateOf][]taking{}
	for _, o := range ev.grants {
		if !o.did() {
			continue
		}
		wait := o.answer.DelayMS * millisecond
		s := &story{topic: o.Topic, id: cmp.Or(o.Key, "tokens"), events: []*ledger.Event{o.Event, o.answer}}
		of := rateOf{o.Topic, o.Key}
		granted[of] = append(granted[of], taking{o.Tokens, o.Mono + wait - millisecond, o.to + wait + millisecond, ev.task(s)})
	}
	for of, all := range granted {
		t := ev.topics[of.topic]
		if t == nil {
			continue
		}
		for _, s := range ev.stories {
			if s.topic == of.topic && (of.key == "" || s.key() == of.key) {
				all = append(all, taken(ev.task(s))...)
			}
		}
		if of.key == "" {
			withTokens(ev, all, t.Rate, "its topic's rate")
		} else {
			withTokens(ev, all, t.KeyRate, "its key's rate")
		}
	}
}

// taken is what the attempts of a task took.
func taken(t *task) (all []taking) {
	if t.found == nil {
		return nil
	}
	for _, a := range t.found.History {
		if a.Started != 0 {
			from, to := t.clock.Bounds(a.Started)
			all = append(all, taking{1, from, to, t})
		}
	}
	return all
}

// withTokens complains when more was taken within some time than a rate lets through.
func withTokens(ev *evidence, all []taking, r *ledger.Rate, what string) {
	if r == nil {
		return
	}
	slices.SortFunc(all, func(a, b taking) int { return cmp.Compare(a.to, b.to) })
	for _, run := range runs(ev, all) {
		for _, first := range run {
			n := 0
			for _, x := range run {
				if x.from < first.from {
					continue
				}
				n += x.n
				if took := (x.to - first.from) / millisecond; r.Exceeded(n, took) {
					x.offend(verdict.Rushed, "tokens and attempts are %d within %d ms, which is above %s", n, took, what)
					return
				}
			}
		}
	}
}

// runs cuts takings where a fault may have lost tokens.
func runs(ev *evidence, all []taking) (runs [][]taking) {
	var run []taking
	for _, x := range all {
		if len(run) > 0 && slices.ContainsFunc(ev.excused, func(f excuse) bool { return run[len(run)-1].from <= f.to && x.to >= f.from }) {
			runs, run = append(runs, run), nil
		}
		run = append(run, x)
	}
	return append(runs, run)
}
