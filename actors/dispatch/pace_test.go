package dispatch

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

func TestRampShareRisesToAll(t *testing.T) {
	topic := store.Topic{Resumed: 1000, Ramp: 10 * time.Second}
	for now, want := range map[store.Millis]float64{0: 0, 1000: 0, 2000: 0.1, 6000: 0.5, 10_999: 0.9999, 11_000: 1, 99_000: 1} {
		if got := rampShare(&topic, now); got != want {
			t.Errorf("at %d: got %v, want %v", now, got, want)
		}
	}
	ahead := store.Topic{Resumed: 3_600_000, Ramp: time.Second} // resumed by a clock that was an hour ahead
	if got := rampShare(&ahead, 5); got != 1 {
		t.Errorf("begins in an hour: got %v", got)
	}
	if got := rampShare(&store.Topic{}, 5); got != 1 {
		t.Errorf("without a ramp: got %v", got)
	}
}

func TestRampPaceLeavesOutWhatIsHeld(t *testing.T) {
	for _, c := range []struct {
		share float64
		room  rampRoom
		nodes int
		want  int
	}{
		{0, rampRoom{1000, 0}, 1, 0}, {0.001, rampRoom{100, 0}, 1, 1}, {0.25, rampRoom{100, 0}, 1, 25}, {0.25, rampRoom{100, 20}, 1, 5},
		{0.25, rampRoom{100, 30}, 1, 0}, {0.5, rampRoom{100, 0}, 4, 13}, {0.5, rampRoom{0, 0}, 2, 0},
	} {
		if got := rampPace(c.share, c.room, c.nodes); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}
