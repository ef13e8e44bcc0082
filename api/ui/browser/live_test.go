package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// becomes waits until an expression is true on the page.
func (b *browser) becomes(expression string) {
	b.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(0))); err != nil {
		b.Fatal(err, expression)
	}
}

// scheduled is the number of scheduled tasks on the page of a topic.
const scheduled = "Number(document.querySelector('main dd').textContent)"

// TestAPageStaysUpToDate while it is looked at: but for a form that somebody began to fill in, and not
// in a tab that is hidden.
func TestAPageStaysUpToDate(t *testing.T) {
	s := fixtures(t)
	tasks := 40
	another := func() {
		tasks++
		s.call("POST", "/v1/topics/mail/tasks", map[string]any{"id": fmt.Sprint("another-", tasks), "delay": "7200s"})
	}
	b := open(t, s.base)
	b.look("/ui/topic?name=mail", 1280, "light")
	eval[bool](b, "document.querySelectorAll('details').forEach((d) => d.open = true); document.querySelector('textarea').value = 'mine'; document.querySelector('a[data-key=gk]').focus(); true")
	another()
	b.becomes(scheduled + " === 41")
	if got := eval[string](b, "document.querySelector('textarea').value + document.activeElement.textContent + document.querySelectorAll('details:not([open])').length"); got != "mineits tasks0" {
		t.Errorf("what was typed, where the focus is, and what is closed: %q", got)
	}

	hide := func(hidden bool) {
		eval[bool](b, fmt.Sprintf("Object.defineProperty(document, 'hidden', { value: %t, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); true", hidden))
	}
	hide(true)
	another()
	eval[bool](b, "new Promise((r) => setTimeout(() => r(true), 3000))", chromedp.EvalAwaitPromise)
	if got := eval[int64](b, scheduled); got != 41 {
		t.Errorf("a tab that is hidden has %d", got)
	}
	hide(false)
	b.becomes(scheduled + " === 42")

	b.look("/ui/", 1280, "light")
	s.call("POST", "/v1/topics/aaa/tasks", map[string]any{"id": "first", "delay": "7200s"})
	eval[bool](b, "[...document.querySelectorAll('tbody th a')].find((a) => a.textContent === 'mail').focus(); true")
	b.becomes("[...document.querySelectorAll('tbody th a')].some((a) => a.textContent === 'aaa')")
	if got := eval[string](b, "document.activeElement.textContent"); got != "mail" {
		t.Errorf("a row that comes before takes the focus to %q", got)
	}
	b.quiet()
}

// TestAPageSaysSinceWhenItIsOld where the server does not answer.
func TestAPageSaysSinceWhenItIsOld(t *testing.T) {
	s := fixtures(t)
	b := open(t, s.base)
	b.look("/ui/", 1280, "light")
	s.stop()
	b.becomes("document.getElementById('stale').textContent.includes('has not answered since')")
	b.accessible("an old page")
}
