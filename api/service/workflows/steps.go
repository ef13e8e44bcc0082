package workflows

import (
	"cmp"
	"context"
	"strconv"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/api/service/pagetoken"
	"github.com/ddq-io/ddq/store"
)

const (
	stepsPage   = "steps:"
	resultsPage = "results:"
)

// pageOf checks the size of a page, and reads where it begins: a number.
func (s *Workflows) pageOf(listing string, size int, token string) (from, most int, err *problem.Error) {
	if size < 0 {
		return 0, 0, problem.BadField("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	text, ok := pagetoken.Position(listing, token)
	if ok && token != "" {
		n, err := strconv.Atoi(text)
		from, ok = n, err == nil && n >= 0
	}
	if !ok {
		return 0, 0, problem.FromStore(store.ErrBadCursor)
	}
	return from, min(cmp.Or(size, 100), s.limits.PageSize), nil
}

// Steps pages through the steps of a workflow, in a state or in any when state is nil.
func (s *Workflows) Steps(ctx context.Context, topic, id string, state *workflow.UnitState, size int, token string) (steps []workflow.StepStatus, next string, err error) {
	from, most, e := s.pageOf(stepsPage, size, token)
	if e != nil {
		return nil, "", e
	}
	_, all, err := s.Get(ctx, topic, id, true)
	if err != nil {
		return nil, "", err
	}
	for i := from; i < len(all); i++ {
		if len(steps) == most {
			return steps, pagetoken.Make(stepsPage, strconv.Itoa(i)), nil
		}
		if state == nil || all[i].State == *state {
			steps = append(steps, all[i])
		}
	}
	return steps, "", nil
}

// Results pages through what a step returned, or its copies.
func (s *Workflows) Results(ctx context.Context, topic, id, step string, size int, token string) (results []access.Result, next string, err error) {
	from, most, e := s.pageOf(resultsPage, size, token)
	if e != nil {
		return nil, "", e
	}
	if step == "" {
		return nil, "", problem.BadField("step", refusal.BadName, "step is required")
	}
	after := 0
	if e := s.at(ctx, topic, id, func(t *store.Topic) (err error) {
		results, after, err = s.kept.Results(ctx, t, id, step, from, most)
		return err
	}); e != nil {
		return nil, "", e
	}
	if after > 0 {
		next = pagetoken.Make(resultsPage, strconv.Itoa(after))
	}
	return results, next, nil
}
