package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/store"
)

// backoffFlag is a backoff on the command line: exponential,base=1s,max=1m,jitter=10.
type backoffFlag struct {
	kind      int // index in backoffKinds; 0: not given
	base, max time.Duration
	jitter    int
}

// backoffKinds in the order of store.BackoffKind and client.BackoffKind.
var backoffKinds = []string{"", "fixed", "linear", "quadratic", "exponential"}

const backoffUsage = "wait between attempts: fixed, linear, quadratic or exponential, with base=, max= and jitter= (percent), as in exponential,base=1s,max=1m,jitter=10"

func (b *backoffFlag) Type() string { return "backoff" }

func (b *backoffFlag) String() string {
	if b.kind == 0 {
		return ""
	}
	return backoffText(backoffKinds[b.kind], b.base, b.max, b.jitter)
}

func (b *backoffFlag) Set(text string) error {
	kind, rest, _ := strings.Cut(text, ",")
	parsed := backoffFlag{kind: slices.Index(backoffKinds, strings.TrimSpace(kind)), base: time.Second}
	if parsed.kind < 1 {
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

func (b *backoffFlag) setOption(option string) (err error) {
	name, value, _ := strings.Cut(option, "=")
	switch name {
	case "":
		return nil
	case "base":
		b.base, err = positive(value)
	case "max":
		b.max, err = positive(value)
	case "jitter":
		b.jitter, err = strconv.Atoi(strings.TrimSuffix(value, "%"))
		if err == nil && (b.jitter < 0 || b.jitter > 100) {
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
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("must not be negative")
	}
	return d, err
}

// own is the backoff for a request, nil when none was given.
func (b *backoffFlag) own() *client.Backoff {
	if b.kind == 0 {
		return nil
	}
	return &client.Backoff{Kind: client.BackoffKind(b.kind), Base: b.base, Max: b.max, JitterPercent: b.jitter}
}

// policy is the backoff for the server's own defaults.
func (b *backoffFlag) policy() store.Backoff {
	return store.Backoff{Kind: store.BackoffKind(b.kind), Base: b.base, Max: b.max, Jitter: b.jitter}
}

// backoffText writes a backoff as Set reads it.
func backoffText(kind string, base, max time.Duration, jitter int) string {
	text := fmt.Sprintf("%s,base=%v", kind, base)
	if max > 0 {
		text += fmt.Sprintf(",max=%v", max)
	}
	if jitter > 0 {
		text += fmt.Sprintf(",jitter=%d", jitter)
	}
	return text
}
