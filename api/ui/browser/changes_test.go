package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// firstRow is the id of the latest change on the page.
const firstRow = "document.querySelector('tbody th')?.textContent"

// TestChangesAreFollowed while they are looked at: not while the page is paused, and not in a tab that is
// hidden, and from a cursor that was copied.
func TestChangesAreFollowed(t *testing.T) {
	s := fixtures(t)
	visit := func(id string) {
		s.call("POST", "/v1/topics/watched/tasks", map[string]any{"id": id, "delay": "3600s"})
	}
	b := open(t, s.base)
	b.look("/ui/changes?topic=watched", 1280, "light")
	visit("first")
	b.becomes(firstRow + " === 'first'")
	b.focus("Copy")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.becomes("document.querySelector('button[data-copy]').textContent === 'Copied'")
	cursor := eval[string](b, "document.querySelector('button[data-copy]').dataset.copy")
	if marked := eval[string](b, "document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd)"); marked != cursor {
		t.Errorf("%q is marked, want %q", marked, cursor)
	}
	eval[bool](b, "document.activeElement.blur(); true")

	b.keys(".")
	b.says("Paused: this is how it was.")
	visit("second")
	eval[bool](b, "new Promise((r) => setTimeout(() => r(true), 2000))", chromedp.EvalAwaitPromise)
	if got := eval[string](b, firstRow); got != "first" {
		t.Errorf("a page that is paused shows %s", got)
	}
	b.keys(".")
	b.becomes(firstRow + " === 'second'")

	b.look("/ui/changes?topic=watched&kind=enqueued&id=se&cursor="+url.QueryEscape(cursor), 390, "dark")
	if got := eval[int64](b, "document.querySelectorAll('tbody tr').length"); got != 1 {
		t.Errorf("%d changes are behind the cursor", got)
	}
	for i := range 3 {
		visit(fmt.Sprint("see-", i))
	}
	b.becomes("document.querySelectorAll('tbody tr').length === 4")
	b.quiet()
}

// TestChangesAreSwitchedOnByKeyboard.
func TestChangesAreSwitchedOnByKeyboard(t *testing.T) {
	s := fixtures(t)
	b := open(t, s.base)
	b.look("/ui/changes?topic=mail", 1280, "light")
	b.focus("Keep what happens for an hour")
	b.press(kb.Enter)
	b.says("The policy was changed.")
	b.says("Nothing that is looked for has happened")
	b.quiet()
}

// TestAnOperationIsStartedAndStopped by keyboard: what a filter matches is counted before.
func TestAnOperationIsStartedAndStopped(t *testing.T) {
	s := fixtures(t)
	b := open(t, s.base)
	b.look("/ui/tasks?topic=mail", 1280, "light")
	b.keys("/")
	b.keys("welcome")
	b.press(kb.Enter)
	b.focus("All that the filter matches")
	b.press(kb.Enter)
	b.says("40 tasks that wait are matched.")
	b.accessible("a count")
	b.focus("A second, at most")
	b.keys("1")
	b.focus("Reschedule all of them")
	b.press(kb.Enter)
	b.says("The operation was started.")
	b.becomes("document.querySelector('main dd').textContent === 'running' && document.querySelectorAll('main dd')[1].textContent !== '0'")
	b.accessible("an operation that runs")
	b.focus("Stop operation")
	b.press(kb.Enter)
	b.becomes("document.querySelector('main dd').textContent === 'stopped'")
	b.quiet()
}

// TestHostileTextsAreChanges.
func TestHostileTextsAreChanges(t *testing.T) {
	s := fixtures(t)
	visible := func(r rune) rune { // as ids are
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}
	for i, text := range hostile()[:25] {
		s.call("POST", "/v1/topics/watched/tasks", map[string]any{"id": fmt.Sprintf("%.100s-%d", strings.Map(visible, text), i)})
		s.call("POST", "/v1/topics/watched:retrieve", map[string]any{"worker": fmt.Sprintf("%.100s", text), "max_tasks": 1, "wait_ms": "30000"})
	}
	b := open(t, s.base)
	b.look("/ui/changes?topic=watched", 390, "light")
	if got := eval[int64](b, "document.querySelectorAll('tbody tr').length"); got < 50 {
		t.Errorf("%d changes", got)
	}
	if over := eval[int64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
		t.Errorf("%d pixels wider than the window", over)
	}
	if n := eval[int64](b, "document.querySelectorAll('h1').length + document.scripts.length + document.querySelectorAll('img, iframe, style').length"); n != 2 {
		t.Error("a text is more than text")
	}
	b.quiet()
}
