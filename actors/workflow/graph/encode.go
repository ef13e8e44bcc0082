package graph

import (
	"fmt"

	"github.com/ddq-io/ddq/actors/workflow/cell"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// Encode returns a definition as it is stored. The same definition is the same bytes.
func (d *Definition) Encode() ([]byte, error) {
	c, err := d.message()
	if err != nil {
		return nil, err
	}
	return c.MarshalVT()
}

func (d *Definition) message() (*cell.Definition, error) {
	c := &cell.Definition{
		Name: d.Name, Input: d.Input, Failure: int32(d.Failure), Undo: d.Undo,
		TimeoutMs: store.CeilMillis(d.Timeout), RetentionMs: store.CeilMillis(d.Retention), ResultOf: d.ResultOf, Labels: cell.Labels(d.Labels),
	}
	var err error
	c.Steps, err = stepMessages(d.Steps)
	return c, err
}

func stepMessages(steps []Step) (c []*cell.Step, err error) {
	for i := range steps {
		m, err := steps[i].message()
		if err != nil {
			return nil, err
		}
		c = append(c, m)
	}
	return c, nil
}

func (s *Step) message() (c *cell.Step, err error) {
	c = &cell.Step{
		Name: s.Name, Need: int32(s.Need), CancelRest: s.CancelRest, AtATime: int32(s.AtATime), IgnoreFailure: s.IgnoreFailure, Input: s.Input,
	}
	for _, a := range s.After {
		c.After = append(c.After, &cell.After{Step: a.Step, On: int32(a.On), Grown: a.Grown})
	}
	if s.Copies != nil {
		n := int32(*s.Copies)
		c.Copies = &n
	}
	if w := s.Wait; w != nil {
		c.Wait = &cell.Wait{DelayMs: store.CeilMillis(w.Delay), Until: int64(w.Until), Signal: w.Signal, TimeoutMs: store.CeilMillis(w.Timeout), Otherwise: w.Otherwise}
	}
	if s.Child != nil {
		c.Child = &cell.Child{Topic: s.Child.Topic}
		if c.Child.Definition, err = s.Child.message(); err != nil {
			return nil, err
		}
	}
	if c.Task, err = s.Task.message(); err != nil {
		return nil, err
	}
	c.Undo, err = s.Undo.message()
	return c, err
}

func (t *Template) message() (*cell.Template, error) {
	if t == nil {
		return nil, nil
	}
	body, err := record.AppendBody(nil, &t.Task)
	return &cell.Template{
		Topic: t.Topic, Body: body, VisibilityMs: store.CeilMillis(t.Task.Visibility), ExpireAfterMs: store.CeilMillis(t.ExpireAfter), DelayMs: store.CeilMillis(t.Delay),
	}, err
}

// DecodeDefinition reads what Encode wrote. The error wraps cell.ErrCorrupt.
func DecodeDefinition(b []byte) (*Definition, error) {
	var c cell.Definition
	if err := c.UnmarshalVT(b); err != nil {
		return nil, fmt.Errorf("%w: %w", cell.ErrCorrupt, err)
	}
	var d decoder
	def := d.definition(&c)
	return def, d.Err
}

// decoder reads definitions, and growth.
type decoder struct{ cell.Decoder }

func (d *decoder) definition(c *cell.Definition) *Definition {
	d.Check(c != nil && c.Failure >= 0 && c.Failure <= int32(CarryOn), "no definition")
	if d.Err != nil {
		return nil
	}
	return &Definition{
		Name: c.Name, Input: c.Input, Failure: Failure(c.Failure), Undo: c.Undo, Timeout: d.Span(c.TimeoutMs), Retention: d.Span(c.RetentionMs),
		ResultOf: c.ResultOf, Labels: cell.Attributes(c.Labels), Steps: d.steps(c.Steps),
	}
}

// steps reads steps, and refuses those that no check would let through.
func (d *decoder) steps(c []*cell.Step) (steps []Step) {
	for _, m := range c {
		steps = append(steps, d.step(m))
	}
	if d.Err == nil {
		if err := checkSteps("", steps, 1); err != nil {
			d.Check(false, "%w", err)
		}
	}
	return steps
}

func (d *decoder) step(c *cell.Step) Step {
	s := Step{
		Name: c.Name, Need: int(c.Need), CancelRest: c.CancelRest, AtATime: int(c.AtATime), IgnoreFailure: c.IgnoreFailure, Input: c.Input,
		Task: d.template(c.Task), Undo: d.template(c.Undo),
	}
	for _, a := range c.After {
		d.Check(a.On >= 0 && a.On <= int32(OnEnded), "a condition on %d", a.On)
		s.After = append(s.After, After{Step: a.Step, On: On(a.On), Grown: a.Grown})
	}
	if c.Copies != nil {
		n := int(*c.Copies)
		s.Copies = &n
	}
	if w := c.Wait; w != nil {
		s.Wait = &Wait{Delay: d.Span(w.DelayMs), Until: store.Millis(w.Until), Signal: w.Signal, Timeout: d.Span(w.TimeoutMs), Otherwise: w.Otherwise}
	}
	if c.Child != nil {
		s.Child = &Child{Topic: c.Child.Topic}
		if def := d.definition(c.Child.Definition); def != nil {
			s.Child.Definition = *def
		}
	}
	return s
}

func (d *decoder) template(c *cell.Template) *Template {
	if c == nil {
		return nil
	}
	t := &Template{Topic: c.Topic, ExpireAfter: d.Span(c.ExpireAfterMs), Delay: d.Span(c.DelayMs)}
	if err := record.DecodeBody(c.Body, &t.Task); err != nil {
		d.Check(false, "%w", err)
	}
	t.Task.Visibility = d.Span(c.VisibilityMs)
	return t
}

// Encode returns growth as an ack says it.
func (g *Growth) Encode() ([]byte, error) {
	steps, err := stepMessages(g.Steps)
	if err != nil {
		return nil, err
	}
	c := &cell.Growth{Steps: steps, Skip: g.Skip, Suspend: g.Suspend, Journal: g.Journal, Trace: record.EncodeTrace(g.Trace)}
	if g.Again != nil {
		c.Again = *g.Again
		if c.Again == nil {
			c.Again = []byte{}
		}
	}
	return c.MarshalVT()
}

// DecodeGrowth reads what Encode wrote. The error wraps cell.ErrCorrupt.
func DecodeGrowth(b []byte) (*Growth, error) {
	var c cell.Growth
	if err := c.UnmarshalVT(b); err != nil {
		return nil, fmt.Errorf("%w: %w", cell.ErrCorrupt, err)
	}
	var d decoder
	g := &Growth{Steps: d.steps(c.Steps), Skip: c.Skip, Suspend: c.Suspend, Journal: c.Journal, Trace: record.DecodeTrace(c.Trace)}
	if c.Again != nil {
		g.Again = &c.Again
	}
	return g, d.Err
}

// EncodeSteps returns steps that grew as their part has them.
func EncodeSteps(steps []Step) []byte {
	b, err := (&Growth{Steps: steps}).Encode()
	if err != nil {
		return nil // text that is no UTF-8, which no check lets through
	}
	return b
}
