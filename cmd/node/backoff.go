package node

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Backoff is a backoff on the command line: exponential,base=1s,max=1m,jitter=10.
type Backoff struct {
	Kind      int // as store.BackoffKind and client.BackoffKind have it; 0: not given
	Base, Max time.Duration
	Jitter    int // percent
}

// backoffKinds are the kinds by number.
var backoffKinds = []string{"", "fixed", "linear", "quadratic", "exponential"}

// BackoffUsage says how to write one.
const BackoffUsage = "wait between attempts: fixed, linear, quadratic or exponential, with base=, max= and jitter= (percent), as in exponential,base=1s,max=1m,jitter=10"

// Type implements pflag.Value.
func (b *Backoff) Type() string { return "backoff" }

// String writes a backoff as Set reads it, "" when it is not given.
func (b *Backoff) String() string {
	if b.Kind == 0 {
		return ""
	}
	return BackoffText(backoffKinds[b.Kind], b.Base, b.Max, b.Jitter)
}

// Set implements pflag.Value.
func (b *Backoff) Set(text string) error {
	kind, rest, _ := strings.Cut(text, ",")
	parsed := Backoff{Kind: slices.Index(backoffKinds, strings.TrimSpace(kind)), Base: time.Second}
	if parsed.Kind < 1 {
		return fmt.Errorf("the kind is fixed, linear, quadratic or exponential, not %q", kind)
	}
	for option := range strings.SplitSeq(rest, ",") {
		if err := parsed.setOption(strings.TrimSpace(option)); err != nil {
			return err
		}
	}
	*b = parsed
	return nil
}

func (b *Backoff) setOption(option string) (err error) {
	name, value, _ := strings.Cut(option, "=")
	switch name {
	case "":
		return nil
	case "base":
		b.Base, err = positive(value)
	case "max":
		b.Max, err = positive(value)
	case "jitter":
		b.Jitter, err = strconv.Atoi(strings.TrimSuffix(value, "%"))
		if err == nil && (b.Jitter < 0 || b.Jitter > 100) {
			err = fmt.Errorf("want 0 to 100 percent")
		}
	default:
		return fmt.Errorf("no option is called %q; there are base, max and jitter", name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func positive(text string) (time.Duration, error) {
	d, err := ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("must not be negative")
	}
	return d, err
}

// policy is the backoff for the server's own defaults.
func (b *Backoff) policy() store.Backoff {
	return store.Backoff{Kind: store.BackoffKind(b.Kind), Base: b.Base, Max: b.Max, Jitter: b.Jitter}
}

// BackoffText writes a backoff as Set reads it.
func BackoffText(kind string, base, most time.Duration, jitter int) string {
	text := fmt.Sprintf("%s,base=%s", kind, DurationText(base))
	if most > 0 {
		text += fmt.Sprintf(",max=%s", DurationText(most))
	}
	if jitter > 0 {
		text += fmt.Sprintf(",jitter=%d", jitter)
	}
	return text
}
