package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// keys presses keys one after the other, of which none leads to another page.
func (b *browser) keys(all ...string) {
	b.Helper()
	for _, key := range all {
		if len(key) == 1 && key > " " {
			b.letter(key)
			continue
		}
		b.do(chromedp.KeyEvent(key))
	}
}

// letter presses a key in one event, as a browser does: a page that takes it takes the letter, too.
func (b *browser) letter(key string) {
	b.Helper()
	for _, e := range []input.DispatchKeyEventParams{{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key}, {Type: input.DispatchKeyEventTypeKeyUp, Key: key}} {
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, e); err != nil {
			b.Fatal(err)
		}
	}
}

// at fails unless the focus is at what has a text.
func (b *browser) at(text string) {
	b.Helper()
	if got := eval[string](b, "document.activeElement.textContent.trim()"); got != text {
		b.Errorf("the focus is at %.100q, want %q, on %s", got, text, eval[string](b, "location.href"))
	}
}

// TestKeysLeadEverywhere finds a task that failed, retries it, stops its topic and looks for tasks, and
// changes a policy: by keys only.
func TestKeysLeadEverywhere(t *testing.T) {
	s := fixtures(t)
	b := open(t, s.base)
	b.look("/ui/nodes", 1280, "light")
	b.keys("?")
	b.says("to the button that retries")
	b.accessible("help")
	b.keys(kb.Escape)
	// A browser closes what Escape cancels in a step of its own, behind the key's event.
	b.becomes("document.querySelector('dialog') === null")

	b.keys("g")
	b.press("o")
	b.keys("j", "j", "j", "j", "k", "j")
	b.at("sms")
	b.press(kb.Enter)
	b.says("Topic sms")
	b.keys("g")
	b.press("d")
	b.keys("j", "x", "r")
	b.at("Requeue those that are ticked")
	if !eval[bool](b, "document.querySelector('tbody input').checked") {
		t.Error("the row is not ticked")
	}
	b.keys("k")
	b.press(kb.Enter)
	b.says("gateway: no route to +1 555 0100")
	b.keys("r")
	b.at("Retry")
	b.press(kb.Enter)
	b.says("Due now, with fresh attempts.")

	b.keys("g")
	b.press("t")
	b.keys("p")
	b.at("Pause delivery")
	b.press(kb.Enter)
	b.says("Delivery is paused.")
	b.keys("e", "g", "n", "?", ".")
	if got := eval[string](b, "document.activeElement.value.slice(0, 4) + document.getElementById('stale').textContent"); got != "gn?." {
		t.Errorf("in a field keys are more than letters: %q", got)
	}
	eval[bool](b, "document.activeElement.select(); true")
	b.keys(`{"max_retries": 7}`, kb.Tab)
	b.press(kb.Enter)
	b.says("is\tyou want")
	b.accessible("a change of a policy")
	b.focus("Change it")
	b.press(kb.Enter)
	b.says("The policy was changed.")

	b.keys(".")
	b.says("Paused: this is how it was.")
	b.keys(".", "L")
	b.keys("g")
	b.press("k")
	b.keys("/")
	b.keys("code")
	b.press(kb.Enter)
	b.says("code-1")
	b.keys("j")
	b.at("code-1")
	b.keys("g")
	b.press("l")
	b.says("Changes of sms")
	b.keys("g")
	b.press("b")
	b.says("Operations of sms")
	b.quiet()
}

func TestKeysCanBeSwitchedOff(t *testing.T) {
	s := fixtures(t)
	b := open(t, s.base)
	b.look("/ui/settings", 1280, "light")
	b.focus("Keys")
	b.keys(" ")
	b.look("/ui/", 1280, "light")
	b.keys("?", "j", "g", "n")
	if got := eval[bool](b, "document.querySelector('dialog') === null && document.activeElement === document.body && location.pathname === '/ui/'"); !got {
		t.Error("a key that is switched off does something")
	}
	b.quiet()
}

// TestTimesAreThoseOfTheVisitor when they want it.
func TestTimesAreThoseOfTheVisitor(t *testing.T) {
	s := fixtures(t)
	b := open(t, s.base)
	if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"}); err != nil {
		t.Fatal(err)
	}
	b.look("/ui/task?topic=mail&id=welcome-00", 1280, "light")
	const first = "document.querySelector('time[data-exact]').textContent"
	utc := eval[string](b, first)
	b.keys("L")
	local := eval[string](b, first)
	if utc[len(utc)-3:] != "UTC" || local[len(local)-5:] != "GMT+9" || utc[:10+3] == local[:10+3] {
		t.Errorf("%q and %q", utc, local)
	}
	b.keys("L")
	if got := eval[string](b, first); got != utc {
		t.Errorf("%q, want %q", got, utc)
	}
	b.quiet()
}
