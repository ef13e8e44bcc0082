package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"
)

const day = 24 * time.Hour

// ParseDuration reads a duration on the command line: as Go writes it, such as 1h30m or
// 250ms, or with days, weeks and years of 365 days before that, such as 5d or 1w2d12h.
func ParseDuration(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	rest, negative := strings.CutPrefix(text, "-")
	d, err := model.ParseDuration(rest)
	if err != nil {
		return 0, fmt.Errorf("want a duration such as 250ms, 1h30m or 5d, not %q", text)
	}
	if negative {
		d = -d
	}
	return time.Duration(d), nil
}

// DurationText writes a duration as ParseDuration reads it, in as few words as there are:
// 1h, and not 1h0m0s; 30d, and not 720h0m0s.
func DurationText(d time.Duration) string {
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// duration is a duration as a flag.
type duration time.Duration

func (d *duration) Type() string { return "duration" }

// String is 0 for none, which help does not show as a default.
func (d *duration) String() string {
	if *d == 0 {
		return "0"
	}
	return DurationText(time.Duration(*d))
}

func (d *duration) Set(text string) error {
	parsed, err := ParseDuration(text)
	if err == nil {
		*d = duration(parsed)
	}
	return err
}

// DurationVar adds a flag for a duration that ParseDuration reads.
func DurationVar(fs *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	fs.Var((*duration)(p), name, usage)
}
