package worker

import (
	"context"
	"errors"
	"testing"
)

func TestStepsAreHandledByTheirNames(t *testing.T) {
	var called string
	as := func(name string) HandlerFunc {
		return func(context.Context, Task) error { called = name; return nil }
	}
	steps := Steps{"charge": as("charge"), "charge undo": as("refund"), "page": as("page"), "split.first": as("first")}
	for _, c := range []struct {
		step Step
		want string
	}{
		{Step{Name: "charge"}, "charge"},
		{Step{Name: "charge", Undo: true}, "refund"},
		{Step{Name: "split.page", Copy: 3}, "page"},
		{Step{Name: "split.first"}, "first"},
	} {
		if err := steps.Handle(t.Context(), Task{Step: &c.step}); err != nil || called != c.want {
			t.Errorf("%+v: %v, handled as %s", c.step, err, called)
		}
	}
	for _, unknown := range []*Step{{Name: "ship"}, nil, {Name: "page", Undo: true}} {
		err := steps.Handle(t.Context(), Task{Step: unknown})
		nack := nackOf(t.Context(), err)
		if !errors.Is(err, errNoHandler) || !nack.Release || nack.GetDelayMs() != 5000 {
			t.Errorf("%+v: %v", unknown, nack)
		}
	}
}
