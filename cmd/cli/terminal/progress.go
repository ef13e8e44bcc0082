package terminal

import (
	"errors"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows how far long work is, on a terminal only, not before it took
// a second, and not where results pass by anyway. A total below 0 is not known.
type Progress struct {
	bar   *progressbar.ProgressBar // nil: nobody looks
	begun time.Time
}

// Progress counts up to total what is called what.
func (t *Terminal) Progress(total int, what string) *Progress {
	p := &Progress{begun: time.Now()}
	if IsTerminal(t.Err) && !IsTerminal(t.Out) && (total > 1 || total < 0) {
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(Raw(t.Err)), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetRenderBlankState(false))
	}
	return p
}

// Set says how far it is.
func (p *Progress) Set(n int) {
	if p.bar != nil && time.Since(p.begun) > time.Second {
		_ = p.bar.Set(n) // a picture only
	}
}

// Finish takes the picture away.
func (p *Progress) Finish() {
	if p.bar != nil {
		_ = errors.Join(p.bar.Clear(), p.bar.Exit())
		p.bar = nil
	}
}
