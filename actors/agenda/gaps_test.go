package agenda

import (
	"testing"
)

func TestSeqsFindMissedCalls(t *testing.T) {
	type look struct {
		heard []int64
		seq   int64 // that the store has
		want  bool
	}
	for _, test := range []struct {
		name  string
		looks []look
	}{
		{"all heard", []look{{[]int64{11, 12}, 12, false}, {[]int64{13}, 13, false}, {nil, 13, false}}},
		{"one that is late", []look{{[]int64{12}, 12, false}, {[]int64{11}, 12, false}, {nil, 12, false}}},
		{"one that never comes", []look{{[]int64{12}, 12, false}, {nil, 12, true}, {nil, 12, false}}},
		{"heard after the store was asked", []look{{[]int64{11, 12, 13}, 11, false}, {nil, 13, false}}},
		{"set back", []look{{[]int64{11, 12, 13}, 13, false}, {nil, 12, true}, {[]int64{13}, 13, false}, {nil, 13, false}}},
		{"set back with calls beyond a gap", []look{{[]int64{11, 13, 14}, 14, false}, {nil, 10, true}, {[]int64{11, 12}, 12, false}, {nil, 13, false}, {nil, 13, true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var q GapDetector
			q.Restart(10)
			for i, l := range test.looks {
				for _, n := range l.heard {
					q.Heard(n)
				}
				got := q.Missed(l.seq)
				if got != l.want {
					t.Fatalf("look %d: missed is %v, want %v", i+1, got, l.want)
				}
				if got {
					q.Restart(l.seq)
				}
			}
		})
	}
}
