package topics

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// rateFlag is a rate on the command line: 100/s, 20/1m30s, or none.
type rateFlag struct {
	given  bool
	count  int
	period time.Duration
}

func (r *rateFlag) Type() string { return "rate" }

func (r *rateFlag) String() string {
	if !r.given {
		return ""
	}
	return rateText(r.count, r.period)
}

// Set takes what a rate is per as a duration; a bare unit is one of it.
func (r *rateFlag) Set(text string) (err error) {
	parsed := rateFlag{given: true, period: time.Second}
	if text == "none" {
		*r = parsed
		return nil
	}
	count, per, found := strings.Cut(text, "/")
	if parsed.count, err = strconv.Atoi(count); err != nil || !found {
		return fmt.Errorf("a rate is a number per duration, as in 100/s or 20/1m30s, or none")
	}
	if parsed.period, err = node.ParseDuration(per); err != nil {
		if parsed.period, err = node.ParseDuration("1" + per); err != nil {
			return fmt.Errorf("a rate is a number per duration, as in 100/s or 20/1m30s: %w", err)
		}
	}
	*r = parsed
	return nil
}

func rateText(count int, period time.Duration) string {
	if count == 0 {
		return "none"
	}
	per := node.DurationText(period)
	if len(per) == 2 && per[0] == '1' {
		per = per[1:] // 100/s is how it is typed
	}
	return fmt.Sprintf("%d/%s", count, per)
}

// limitFlags are the rates and caps of a topic.
type limitFlags struct {
	rate, keyRate               rateFlag
	burst, keyBurst             int
	window, keyWindow           bool
	concurrency, keyConcurrency int
	over                        string
}

func (l *limitFlags) flags(fs *pflag.FlagSet) {
	fs.Var(&l.rate, "rate", "most deliveries over all nodes, as in 100/s or 20/1m30s; none ends it")
	fs.IntVar(&l.burst, "burst", 1, "deliveries of --rate at once after a rest")
	fs.BoolVar(&l.window, "rate-window", false, "--rate is a sliding window: never more in any period")
	fs.Var(&l.keyRate, "key-rate", "like --rate, for the tasks of each rate key")
	fs.IntVar(&l.keyBurst, "key-burst", 1, "like --burst, of --key-rate")
	fs.BoolVar(&l.keyWindow, "key-rate-window", false, "like --rate-window, of --key-rate")
	fs.IntVar(&l.concurrency, "concurrency", 0, "most tasks held at a time over all nodes; 0 ends the cap")
	fs.IntVar(&l.keyConcurrency, "key-concurrency", 0, "like --concurrency, for the tasks of each concurrency key")
	fs.StringVar(&l.over, "over-limit", "", "what tasks over a rate do: wait (as they do by default), or dead_letter; it stays when a rate ends")
}

func (l *limitFlags) read(fs *pflag.FlagSet, p *client.Policy) (err error) {
	if p.Rate, err = l.rate.read(fs, "rate", "burst", "rate-window", l.burst, l.window); err != nil {
		return err
	}
	if p.KeyRate, err = l.keyRate.read(fs, "key-rate", "key-burst", "key-rate-window", l.keyBurst, l.keyWindow); err != nil {
		return err
	}
	p.Concurrency = given(fs, "concurrency", l.concurrency)
	p.KeyConcurrency = given(fs, "key-concurrency", l.keyConcurrency)
	if !fs.Changed("over-limit") {
		return nil
	}
	for _, over := range [...]client.OverLimit{client.OverLimitWait, client.OverLimitDeadLetter} {
		if over.String() == l.over {
			p.OverLimit = &over
			return nil
		}
	}
	return session.Usagef("--over-limit is wait or dead_letter, not %q", l.over)
}

// read puts a rate together with the flags that go with it.
func (r *rateFlag) read(fs *pflag.FlagSet, name, burstName, windowName string, burst int, window bool) (*client.Rate, error) {
	if !r.given {
		if fs.Changed(burstName) || fs.Changed(windowName) {
			return nil, session.Usagef("--%s and --%s go with --%s", burstName, windowName, name)
		}
		return nil, nil
	}
	rate := &client.Rate{Count: r.count, Period: r.period, Burst: burst}
	if window {
		rate.Kind, rate.Burst = client.SlidingWindow, 0
		if fs.Changed(burstName) {
			return nil, session.Usagef("a sliding window has no --%s", burstName)
		}
	}
	return rate, nil
}

// rateView is a rate as it is printed.
type rateView struct {
	Kind     string `json:"kind"`
	Count    int    `json:"count"`
	PeriodMs int64  `json:"period_ms"`
	Burst    int    `json:"burst,omitempty"`
}

// viewRate returns nil for no limit.
func viewRate(r *client.Rate) *rateView {
	if r == nil || r.Count == 0 {
		return nil
	}
	kind := "token_bucket"
	if r.Kind == client.SlidingWindow {
		kind = "sliding_window"
	}
	return &rateView{kind, r.Count, r.Period.Milliseconds(), r.Burst}
}

func (r *rateView) text() string {
	if r.Kind == "sliding_window" {
		return rateText(r.Count, session.Millis(r.PeriodMs)) + " in any window"
	}
	return fmt.Sprintf("%s, burst %d", rateText(r.Count, session.Millis(r.PeriodMs)), r.Burst)
}

// viewOver leaves out what is so by default.
func viewOver(o *client.OverLimit) string {
	if value(o) != client.OverLimitDeadLetter {
		return ""
	}
	return o.String()
}

// limitsView are the rates and caps of a topic.
type limitsView struct {
	Rate           *rateView `json:"rate,omitempty"`
	KeyRate        *rateView `json:"key_rate,omitempty"`
	Concurrency    int       `json:"concurrency,omitempty"`
	KeyConcurrency int       `json:"key_concurrency,omitempty"`
	OverLimit      string    `json:"over_limit,omitempty"`
}

func viewLimits(p *client.Policy) limitsView {
	return limitsView{viewRate(p.Rate), viewRate(p.KeyRate), value(p.Concurrency), value(p.KeyConcurrency), viewOver(p.OverLimit)}
}

// rows are the limits that there are.
func (v *limitsView) rows() (rows []table.Row) {
	if v.Rate != nil {
		rows = append(rows, table.Row{"rate", v.Rate.text()})
	}
	if v.KeyRate != nil {
		rows = append(rows, table.Row{"key rate", v.KeyRate.text()})
	}
	if v.OverLimit != "" {
		rows = append(rows, table.Row{"over limit", v.OverLimit})
	}
	if v.Concurrency > 0 {
		rows = append(rows, table.Row{"concurrency", v.Concurrency})
	}
	if v.KeyConcurrency > 0 {
		rows = append(rows, table.Row{"key concurrency", v.KeyConcurrency})
	}
	return rows
}
