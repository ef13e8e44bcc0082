package life

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

func TestSessionLasts(t *testing.T) {
	now := time.Unix(1000, 0)
	for left, want := range map[time.Duration]bool{
		-time.Second: false, 0: false, 1: true, 2 * time.Second: true,
		4 * time.Second: true, 4*time.Second + 1: false, // of a clock that was ahead
	} {
		if got := (Session{Expires: now.Add(left), TTL: 2 * time.Second}).Lives(now); got != want {
			t.Errorf("with %v left it lives: %t, want %t", left, got, want)
		}
	}
}

func TestSessionIsRenewedByItsProcess(t *testing.T) {
	now, own, other := time.Unix(1000, 0), store.NewToken(), store.NewToken()
	s := Session{Start: own, Expires: now.Add(time.Second), TTL: 2 * time.Second, Addr: "a:1"}
	for name, c := range map[string]struct {
		by   store.Session
		at   time.Time
		lost bool
	}{
		"the same process":                      {store.Session{Start: own}, now, false},
		"another one, while it lasts":           {store.Session{Start: other}, now, true},
		"another one, that begins":              {store.Session{Start: other, Begin: true}, now, false},
		"another one, when it is over":          {store.Session{Start: other}, now.Add(time.Second), false},
		"the same one, though the time is over": {store.Session{Start: own}, now.Add(time.Second), false},
	} {
		c.by.TTL, c.by.Addr = 5*time.Second, "b:2"
		got, _, err := s.Renewed(c.by, c.at)
		if lost := errors.Is(err, store.ErrSessionLost); lost != c.lost {
			t.Errorf("%s: %v", name, err)
		}
		want := Session{Start: c.by.Start, Expires: c.at.Add(c.by.TTL), TTL: c.by.TTL, Addr: "b:2"}
		if c.lost {
			want = s
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
