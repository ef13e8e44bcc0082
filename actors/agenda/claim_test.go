package agenda

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ddq-io/ddq/store"
)

var (
	stateNames  = [claimStates]string{"free", "left", "asking", "owned", "giving", "releasing"}
	effectNames = [...]string{"ask", "check", "note owner", "begin", "load", "lose", "release", "tell next owner", "release last", "end stop"}
	eventNames  = map[string]ClaimEventKind{
		"placed": ClaimPlaced, "retry": ClaimRetry, "told": ClaimTold, "hand-over": ClaimHandOver, "yield": ClaimYield,
		"granted": ClaimGranted, "refused": ClaimRefused, "failed": ClaimFailed, "unleased": ClaimUnleased,
		"fenced": ClaimFenced, "lease-lost": ClaimLeaseLost, "lease-back": ClaimRetry,
		"released": ClaimReleased, "release-failed": ClaimReleaseFailed, "stop": ClaimStop, "idle": ClaimIdle,
	}
)

// claimScene is a claim, and what its shard would tell it.
type claimScene struct {
	Claim
	leased bool
	calls  int // in flight under the claim
}

// step does what a shard does with one message: the event, and what follows every message.
func (s *claimScene) step(e ClaimEvent) (effects []ClaimEffect) {
	e.Leased = s.leased
	effects = append(effects, s.Step(e)...)
	effects = append(effects, s.Step(ClaimEvent{Kind: ClaimHandled})...)
	if s.calls == 0 {
		effects = append(effects, s.Step(ClaimEvent{Kind: ClaimCallsOver})...)
	}
	return effects
}

// TestClaim runs the scenarios of testdata/claim. Commands are events; calls and lease
// say what else the shard knows.
func TestClaim(t *testing.T) {
	datadriven.Walk(t, "testdata/claim", func(t *testing.T, path string) {
		s := &claimScene{leased: true}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.run(t, d)
		})
	})
}

func (s *claimScene) run(t *testing.T, d *datadriven.TestData) string {
	times, e := 1, ClaimEvent{Wanted: d.HasArg("wanted")}
	d.MaybeScanArgs(t, "times", &times)
	d.MaybeScanArgs(t, "epoch", &e.Fence.Epoch)
	switch d.Cmd {
	case "restart": // the next incarnation begins with what the claim leaves
		s.Claim = NewClaim(s.wanted, s.InStore())
		return s.describe(s.step(ClaimEvent{Kind: ClaimRetry}))
	case "calls":
		d.ScanArgs(t, "n", &s.calls)
		return s.describe(s.step(ClaimEvent{Kind: ClaimHandled}))
	case "lease-lost":
		s.leased = false
	case "lease-back":
		s.leased = true
	}
	kind, known := eventNames[d.Cmd]
	if !known {
		t.Fatalf("unknown event %q", d.Cmd)
	}
	e.Kind = kind
	for range times - 1 {
		s.step(e)
	}
	return s.describe(s.step(e))
}

func (s *claimScene) describe(effects []ClaimEffect) string {
	var b strings.Builder
	for _, do := range effects {
		b.WriteString(effectNames[do.Do])
		if do.Fence.Epoch != 0 {
			fmt.Fprintf(&b, " epoch %d", do.Fence.Epoch)
		}
		if do.Remind {
			b.WriteString(", remind")
		}
		if do.Slow {
			b.WriteString(", slow")
		}
		if do.Want {
			b.WriteString(", want")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "[%s", stateNames[s.state])
	if s.state != claimFree && s.state != claimAsking || s.state == claimAsking && s.back == claimLeft {
		fmt.Fprintf(&b, " epoch %d", s.fence.Epoch)
	}
	if !s.wanted {
		b.WriteString(", not wanted")
	}
	if s.stopping {
		b.WriteString(", stopping")
	}
	b.WriteString("]\n")
	return b.String()
}

// claimWalk is a claim against a store, with calls whose answers come at any time.
type claimWalk struct {
	*testing.T
	claimScene
	rand            *rand.Rand
	epoch           int64
	inStore         store.Fence // the claim that the store has for this node; zero: none
	asked, releases []ClaimEffect
}

// TestClaimIsNeverForgotten walks at random: whatever happened, once the shard is not
// wanted and the store answers, the store has no claim of it.
func TestClaimIsNeverForgotten(t *testing.T) {
	for seed := range uint64(2000) {
		w := &claimWalk{T: t, rand: rand.New(rand.NewPCG(seed, 1))}
		w.leased = true
		for range 60 {
			w.anything()
		}
		w.leased, w.calls = true, 0
		w.do(ClaimEvent{Kind: ClaimPlaced})
		for range 4 {
			w.answerAsk(false)
			w.answerRelease(false)
		}
		if w.inStore != (store.Fence{}) || w.state != claimFree {
			t.Fatalf("seed %d: the store has epoch %d, and the claim is %s", seed, w.inStore.Epoch, stateNames[w.state])
		}
	}
}

func (w *claimWalk) anything() {
	w.calls = w.rand.IntN(2)
	switch w.rand.IntN(10) {
	case 0, 1:
		w.do(ClaimEvent{Kind: ClaimPlaced, Wanted: w.rand.IntN(3) > 0})
	case 2:
		w.leased = !w.leased
		w.do(ClaimEvent{Kind: map[bool]ClaimEventKind{true: ClaimRetry, false: ClaimLeaseLost}[w.leased]})
	case 3:
		w.do(ClaimEvent{Kind: ClaimHandOver})
	case 4:
		w.do(ClaimEvent{Kind: ClaimTold})
	case 5:
		w.do(ClaimEvent{Kind: ClaimRetry})
	case 6:
		if w.Owned() && w.rand.IntN(4) == 0 { // another node claimed it
			w.inStore = store.Fence{}
			w.do(ClaimEvent{Kind: ClaimFenced})
		}
	case 7:
		w.answerAsk(w.rand.IntN(3) == 0)
	case 8:
		w.answerRelease(w.rand.IntN(3) == 0)
	case 9:
		w.do(ClaimEvent{Kind: ClaimYield})
	}
}

// do carries out the effects, and checks what must hold of them.
func (w *claimWalk) do(e ClaimEvent) {
	w.Helper()
	was := w.Owned()
	for _, effect := range w.step(e) {
		switch effect.Do {
		case DoAsk, DoCheck:
			w.asked = append(w.asked, effect)
		case DoRelease:
			w.releases = append(w.releases, effect)
			if w.calls > 0 {
				w.Fatal("released under calls that need the claim")
			}
		case DoBegin:
			was = true
		case DoLose:
			if !was {
				w.Fatal("lost what was not owned")
			}
		}
	}
	if len(w.asked)+len(w.releases) > 1 {
		w.Fatalf("%d calls are in flight", len(w.asked)+len(w.releases))
	}
}

// answerAsk ends the call of asking. One that fails did not reach the store.
func (w *claimWalk) answerAsk(fails bool) {
	if len(w.asked) == 0 {
		return
	}
	w.asked = nil
	if fails {
		kinds := []ClaimEventKind{ClaimRefused, ClaimFailed, ClaimUnleased}
		w.do(ClaimEvent{Kind: kinds[w.rand.IntN(len(kinds))]})
		return
	}
	w.epoch++
	w.inStore = store.Fence{Epoch: w.epoch}
	w.do(ClaimEvent{Kind: ClaimGranted, Fence: w.inStore})
}

// answerRelease ends the call of releasing. One that fails may have reached the store.
func (w *claimWalk) answerRelease(fails bool) {
	if len(w.releases) == 0 {
		return
	}
	fence := w.releases[0].Fence
	w.releases = nil
	if w.inStore == fence && (!fails || w.rand.IntN(2) == 0) {
		w.inStore = store.Fence{}
	}
	kind := ClaimReleased
	if fails {
		kind = ClaimReleaseFailed
	}
	w.do(ClaimEvent{Kind: kind, Fence: fence})
}
