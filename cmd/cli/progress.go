package cli

import (
	"errors"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far long work is, on a terminal only, not before it took
// a second, and not where results pass by anyway. A total below 0 is not known.
type progress struct {
	bar   *progressbar.ProgressBar // nil: nobody looks
	begun time.Time
}

func (c *cli) progress(total int, what string) *progress {
	p := &progress{begun: time.Now()}
	if isTerminal(c.Err) && !isTerminal(c.Out) && (total > 1 || total < 0) {
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(c.Err), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetRenderBlankState(false))
	}
	return p
}

func (p *progress) set(n int) {
	if p.bar != nil && time.Since(p.begun) > time.Second {
		_ = p.bar.Set(n) // a picture only
	}
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = errors.Join(p.bar.Clear(), p.bar.Exit())
		p.bar = nil
	}
}
