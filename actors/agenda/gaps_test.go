package agenda

import (
	"testing"
)

func TestSeqsFindMissedCalls(t *testing.T) {
	type look struct {
		heard  []int64
		seq    int64 // that the store has
		want   bool
		server uint64
	}
	for _, test := range []struct {
		name    string
		looks   []look
		claimed uint64 // the server that granted the claim
	}{
		{"all heard", []look{{[]int64{11, 12}, 12, false, 1}, {[]int64{13}, 13, false, 1}, {nil, 13, false, 1}}, 1},
		{"one that is late", []look{{[]int64{12}, 12, false, 1}, {[]int64{11}, 12, false, 1}, {nil, 12, false, 1}}, 1},
		{"one that never comes", []look{{[]int64{12}, 12, false, 1}, {nil, 12, true, 1}, {nil, 12, false, 1}}, 1},
		{"heard after the store was asked", []look{{[]int64{11, 12, 13}, 11, false, 1}, {nil, 13, false, 1}}, 1},
		{"set back", []look{{[]int64{11, 12, 13}, 13, false, 1}, {nil, 12, true, 1}, {[]int64{13}, 13, false, 1}, {nil, 13, false, 1}}, 1},
		{"another server", []look{{[]int64{11}, 11, false, 1}, {nil, 11, true, 2}, {[]int64{12}, 12, false, 2}}, 1},
		{"another server, and some do not say which", []look{{nil, 10, false, 0}, {nil, 10, false, 1}, {nil, 10, false, 0}, {nil, 10, true, 2}}, 0},
		{"another server that the claim did not say", []look{{nil, 10, false, 7}, {nil, 10, false, 7}}, 0},
		{"set back with calls beyond a gap", []look{{[]int64{11, 13, 14}, 14, false, 1}, {nil, 10, true, 1}, {[]int64{11, 12}, 12, false, 1}, {nil, 13, false, 1}, {nil, 13, true, 1}}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			var q GapDetector
			q.Restart(10, test.claimed)
			for i, l := range test.looks {
				for _, n := range l.heard {
					q.Heard(n)
				}
				got := q.SetBack(l.seq, l.server) || q.Missed(l.seq)
				if got != l.want {
					t.Fatalf("look %d: missed is %v, want %v", i+1, got, l.want)
				}
				if got {
					q.Restart(l.seq, l.server)
				}
			}
		})
	}
}

// TestAnOldLookDoesNotAgreeWithWhatCameBehindAGap: it says nothing of the tasks of later calls.
func TestAnOldLookDoesNotAgreeWithWhatCameBehindAGap(t *testing.T) {
	var q GapDetector
	q.Restart(10, 1)
	for _, step := range []struct {
		heard, look int64
		want        bool
	}{{0, 10, true}, {12, 10, false}, {0, 12, false}, {11, 10, false}, {0, 12, true}, {0, 11, false}} {
		if step.heard > 0 {
			q.Heard(step.heard)
		}
		if got := q.Agrees(step.look); got != step.want {
			t.Errorf("behind %d, a look of %d agrees: %v", step.heard, step.look, got)
		}
	}
}
