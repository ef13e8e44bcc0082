package schedules

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// targetFlags describe the audience of a schedule.
type targetFlags struct {
	asked      client.AudienceTarget
	quiet      string
	spreadFrom int64
}

func (f *targetFlags) flags(fs *pflag.FlagSet) {
	fs.StringVar(&f.asked.Name, "audience", "", "each recipient of this audience gets a task")
	f.spreadFlags(fs)
	fs.BoolVar(&f.asked.Rotate, "rotate", false, "another recipient is the first in each run")
}

// spreadFlags say what a run does with the recipients.
func (f *targetFlags) spreadFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.asked.Kind, "kind", "", "kind of the audience that the tasks are of: who does not want it gets none")
	node.DurationVar(fs, &f.asked.Window, "spread", 0, "spread the tasks of a run over so much time, each recipient at the same place in every run: up to 24h")
	node.DurationVar(fs, &f.asked.Grain, "grain", 0, "places are multiples of it, such as 10s")
	fs.Int64Var(&f.spreadFrom, "spread-from", 0, "fewer recipients go at once (default 100)")
	fs.StringVar(&f.quiet, "quiet", "", "what becomes of a task that is due in quiet hours: defer (default), skip or ignore")
}

// fill gives a schedule its audience, if it has one.
func (f *targetFlags) fill(fs *pflag.FlagSet, s *client.Schedule) (err error) {
	if f.asked.Name == "" {
		for _, name := range []string{"kind", "spread", "grain", "spread-from", "quiet", "rotate"} {
			if fs.Changed(name) {
				return session.Usagef("--%s goes with --audience", name)
			}
		}
		return nil
	}
	s.Audience, err = f.target(fs)
	return err
}

// target is what the flags say.
func (f *targetFlags) target(fs *pflag.FlagSet) (_ *client.AudienceTarget, err error) {
	if fs.Changed("spread-from") {
		f.asked.SpreadFrom = &f.spreadFrom
	}
	f.asked.Quiet, err = parseQuiet(f.quiet)
	return &f.asked, err
}

func parseQuiet(text string) (client.QuietPolicy, error) {
	if text == "" {
		return 0, nil
	}
	for q := client.QuietDefer; q <= client.QuietIgnore; q++ {
		if q.String() == text {
			return q, nil
		}
	}
	return 0, session.Usagef("--quiet is defer, skip or ignore, not %q", text)
}

// targetView is the audience of a schedule, in views and files.
type targetView struct {
	Audience   string `json:"audience,omitempty"`
	Kind       string `json:"kind,omitempty"`
	SpreadMs   int64  `json:"spread_ms,omitempty"`
	GrainMs    int64  `json:"grain_ms,omitempty"`
	SpreadFrom *int64 `json:"spread_from,omitempty"`
	Quiet      string `json:"quiet,omitempty"`
	Rotate     bool   `json:"rotate,omitempty"`
}

func viewTarget(t *client.AudienceTarget) (v targetView) {
	if t == nil {
		return v
	}
	return targetView{
		Audience: t.Name, Kind: t.Kind, SpreadMs: t.Window.Milliseconds(), GrainMs: t.Grain.Milliseconds(),
		SpreadFrom: t.SpreadFrom, Quiet: t.Quiet.String(), Rotate: t.Rotate,
	}
}

func (v *targetView) target() (*client.AudienceTarget, error) {
	if v.Audience == "" {
		if *v != (targetView{}) {
			return nil, fmt.Errorf("kind, spread, grain, spread_from, quiet and rotate go with audience")
		}
		return nil, nil
	}
	quiet, err := parseQuiet(v.Quiet)
	return &client.AudienceTarget{
		Name: v.Audience, Kind: v.Kind, Window: session.Millis(v.SpreadMs), Grain: session.Millis(v.GrainMs),
		SpreadFrom: v.SpreadFrom, Quiet: quiet, Rotate: v.Rotate,
	}, err
}

func (v *targetView) targetText() string {
	text := v.Audience
	if v.Kind != "" {
		text += ", kind " + v.Kind
	}
	if v.SpreadMs > 0 {
		text += ", over " + node.DurationText(session.Millis(v.SpreadMs))
	}
	if v.GrainMs > 0 {
		text += " by " + node.DurationText(session.Millis(v.GrainMs))
	}
	return text
}
