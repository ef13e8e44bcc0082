package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestAScheduleIsPreviewedWhileItIsWritten: the runs to come follow what is typed, and so does what is wrong with
// it; the field that one types in keeps its text and the focus.
func TestAScheduleIsPreviewedWhileItIsWritten(t *testing.T) {
	s := fixtures(t)
	b := open(t, s.base)
	b.look("/ui/schedule/new?topic=report", 1280, "light")
	b.focus("Name")
	b.do(chromedp.KeyEvent("weekly"))
	b.focus("Cron")
	b.do(chromedp.KeyEvent("0 9 * *"))
	const cron, wrong = "document.querySelector('[name=cron]')", "document.querySelectorAll('form .bad').length"
	b.becomes(cron + ".getAttribute('aria-invalid') === 'true' && " + wrong + " === 1")
	b.accessible("a schedule with a mistake")
	b.do(chromedp.KeyEvent(" MON"))
	b.becomes("document.querySelectorAll('#preview tbody tr').length === 10 && " + wrong + " === 0 && !" + cron + ".hasAttribute('aria-invalid')")
	if got := eval[string](b, "document.activeElement.name + ' ' + document.activeElement.value"); got != "cron 0 9 * * MON" {
		t.Errorf("the focus is at %q", got)
	}
	b.focus("Zone")
	b.do(chromedp.KeyEvent("Europe/Berlin"))
	b.becomes("document.querySelector('#preview').innerText.includes('T09:00:00+0') && document.querySelector('#preview').innerText.includes('change within a year')")
	b.accessible("a schedule with a preview")
	b.press(kb.Enter) // in a field, which saves
	b.says("It was made.")
	b.says("Schedule weekly")
	b.press("e")
	b.says("Change schedule weekly")
	b.becomes("document.querySelectorAll('#preview tbody tr').length === 10")
	b.quiet()
}

// TestAPreviewNeedsNoScript, only a button.
func TestAPreviewNeedsNoScript(t *testing.T) {
	s := fixtures(t)
	b := open(t, s.base)
	b.withoutScripts()
	b.look("/ui/schedule/new?topic=report", 390, "light")
	b.focus("Cron")
	b.do(chromedp.KeyEvent("0 9 * * MON"))
	b.focus("Preview")
	b.press(kb.Enter)
	b.says("A schedule has a name.")
	b.focus("Name")
	b.do(chromedp.KeyEvent("weekly"))
	b.focus("Preview")
	b.press(kb.Enter)
	b.says("The next is at ")
	b.focus("Save")
	b.press(kb.Enter)
	b.says("Schedule weekly")
}

// withoutScripts lets pages run none.
func (b *browser) withoutScripts() {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		b.Fatal(err)
	}
}
