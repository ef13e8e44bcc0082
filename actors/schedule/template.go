package schedule

import (
	"fmt"

	"github.com/ddq-io/ddq/actors/schedule/cell"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

func (t *Template) record() (*cell.Template, error) {
	body, err := record.AppendBody(nil, &t.Task)
	return &cell.Template{
		Body:          body,
		VisibilityMs:  t.Task.Visibility.Milliseconds(),
		ExpireAfterMs: t.ExpireAfter.Milliseconds(),
		SlackMs:       t.Slack.Milliseconds(),
	}, err
}

func (d *decoder) template(c *cell.Template) (t Template) {
	d.check(min(c.VisibilityMs, c.ExpireAfterMs, c.SlackMs) >= 0, "negative times")
	if err := record.DecodeBody(c.Body, &t.Task); err != nil {
		d.check(false, "%w", err)
	}
	t.Task.Visibility, t.ExpireAfter, t.Slack = millis(c.VisibilityMs), millis(c.ExpireAfterMs), millis(c.SlackMs)
	return t
}

// DecodeTemplate reads the template that a run of an audience brings with it.
func DecodeTemplate(b []byte) (Template, error) {
	var c cell.Template
	if err := c.UnmarshalVT(b); err != nil {
		return Template{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	d := decoder{}
	t := d.template(&c)
	if d.err != nil {
		return Template{}, fmt.Errorf("%w: %w", ErrCorrupt, d.err)
	}
	return t, nil
}

// Make makes a task of the template.
func (t *Template) Make(id string, due, now store.Millis, topic *store.Topic) *store.Task {
	made := t.Task
	made.ID, made.Due, made.Created, made.Indexed = id, due, now, topic.Indexed
	if t.ExpireAfter > 0 {
		made.Expires = due.Add(t.ExpireAfter)
	}
	return &made
}
