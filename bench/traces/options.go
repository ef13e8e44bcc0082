package traces

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Options say which tasks have a trace context, and where spans of the server go.
type Options struct {
	// Traced is the share of the tasks whose trace is recorded, 0 to 1; the others have a context that
	// is not. Empty: no task has one.
	Traced string

	// Collect starts a collector, to which the server sends its spans.
	Collect bool

	// PerSecond is the most spans that the server begins in a second; 0 leaves it to the server.
	PerSecond int
}

// Bind makes flags of the options.
func (o *Options) Bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.Traced, "traced", "", "share of the tasks whose trace is recorded, 0 to 1; the others have a context that is not recorded (default no task has a context)")
	fs.BoolVar(&o.Collect, "collector", false, "start a collector on loopback, to which the server sends its spans")
	fs.IntVar(&o.PerSecond, "spans-per-s", 0, "most spans that the server begins in a second: its --trace-max-per-s (default the server's)")
}

// Validate returns what is wrong with the options, nil when nothing is.
func (o Options) Validate() error {
	switch _, err := o.share(); {
	case err != nil:
		return err
	case o.PerSecond < 0:
		return errors.New("--spans-per-s must not be negative")
	case o.PerSecond > 0 && !o.Collect:
		return errors.New("--spans-per-s goes with --collector")
	}
	return nil
}

// share is 0 where no task has a context.
func (o Options) share() (float64, error) {
	if o.Traced == "" {
		return 0, nil
	}
	share, err := strconv.ParseFloat(o.Traced, 64)
	if err != nil || !(share >= 0 && share <= 1) { // NaN is neither
		return 0, fmt.Errorf("--traced must be between 0 and 1, not %q", o.Traced)
	}
	return share, nil
}

// String says what is set, empty when nothing is.
func (o Options) String() string {
	var parts []string
	if o.Traced != "" {
		share, _ := o.share() // it was checked
		parts = append(parts, fmt.Sprintf("tasks have trace contexts, %g %% recorded", 100*share))
	}
	if o.Collect {
		parts = append(parts, "spans go to a collector")
	}
	if o.PerSecond > 0 {
		parts = append(parts, fmt.Sprintf("at most %d a second", o.PerSecond))
	}
	return strings.Join(parts, ", ")
}
