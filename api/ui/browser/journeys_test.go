package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focus goes from one thing to the next, as the Tab key does, until it is at the one of a text.
func (b *browser) focus(text string) {
	b.Helper()
	const most = 200
	var seen []string
	for range most {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := eval[string](b, `((e) => (e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent || "").trim())(document.activeElement)`)
		if strings.HasPrefix(at, text) {
			return
		}
		seen = append(seen, at)
	}
	b.Fatalf("Tab leads to no %q, but to %.2000q", text, seen)
}

// press presses a key that leads to another page, and waits for that.
func (b *browser) press(key string) {
	b.Helper()
	if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(key)); err != nil {
		b.Fatal(err)
	}
}

// says fails unless the page has a text.
func (b *browser) says(text string) {
	b.Helper()
	if got := eval[string](b, "document.body.innerText"); !strings.Contains(got, text) {
		b.Errorf("the page does not say %q:\n%s", text, got)
	}
}

// asking is a server that asks who calls, with something on every page.
func asking(t *testing.T, args ...string) *server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "root")
	s := start(t, append(args, "--auth", "token", "--root-token", "file:"+file)...)
	root, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.root = strings.TrimSpace(string(root))
	s.fill()
	return s
}

// enter logs in on the page that asks for a token.
func (b *browser) enter(token string) {
	b.Helper()
	b.focus("Token")
	b.do(chromedp.KeyEvent(token))
	b.press(kb.Enter)
}

// TestAVisitorWithAKeyboard logs in, makes a topic, finds out why a task failed, retries it, and
// logs out.
func TestAVisitorWithAKeyboard(t *testing.T) {
	s := asking(t)
	b := open(t, s.base)
	b.look("/ui/", 1280, "light")
	b.accessible("login")
	if eval[bool](b, "document.querySelector('input[name=user]').checkVisibility()") {
		t.Error("the name under which a browser keeps the token is on the page")
	}
	b.enter(s.root)
	b.says("Tasks of each topic")

	b.focus("Make a topic")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.focus("Name")
	b.do(chromedp.KeyEvent("invoices"))
	b.press(kb.Enter)
	b.says("Topic invoices")
	b.says("It was made.")

	b.focus("Topics")
	b.press(kb.Enter)
	b.focus("sms")
	b.press(kb.Enter)
	b.focus("its dead letters")
	b.press(kb.Enter)
	b.focus("code-1")
	b.press(kb.Enter)
	b.says("gateway: no route to +1 555 0100")
	b.focus("Retry")
	b.press(kb.Enter)
	b.says("Due now, with fresh attempts.")
	b.says("ready")

	b.quiet()
	b.focus("Log out")
	b.press(kb.Enter)
	b.says("Log in")
	b.look("/ui/settings", 1280, "light")
	b.says("Log in")
	cookies, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{})
	if err != nil {
		t.Fatal(err)
	}
	if len(cookies.Cookies) != 0 {
		t.Errorf("%d cookies are left", len(cookies.Cookies))
	}
}
