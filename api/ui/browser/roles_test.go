package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// verbs are those of roles.
var verbs = map[string][]string{"viewer": {"read"}, "operator": {"read", "operate"}}

// as opens a browser, and logs in with a token of a role.
func (s *server) as(t *testing.T, role string) *browser {
	t.Helper()
	made := s.call("POST", "/v1/tokens", map[string]any{"name": role, "grants": []map[string]any{{"verbs": verbs[role], "topics": "*"}}})
	b := open(t, s.base)
	b.look("/ui/", 1280, "light")
	b.enter(fmt.Sprint(made["secret"]))
	b.says("Tasks of each topic")
	return b
}

// changing are the buttons of a page that change something, one of each name.
const changing = `[...new Set([...document.querySelectorAll("main form[method=post] button")].map((b) => b.textContent.trim()))]`

// sent is what the server answers to a form that no page has.
func (b *browser) sent(path, fields string) int64 {
	b.Helper()
	return eval[int64](b, fmt.Sprintf("fetch(%q, {method: 'POST', body: new URLSearchParams(%q)}).then((r) => r.status)", path, fields), chromedp.EvalAwaitPromise)
}

// TestRolesDecideWhatIsThere: what each may do is written down for each page. Where nothing can be done a page
// keeps nobody out either.
func TestRolesDecideWhatIsThere(t *testing.T) {
	s := asking(t)
	for _, role := range []string{"viewer", "operator"} {
		b, list := s.as(t, role), ""
		for _, p := range pages {
			b.look(strings.Replace(p.path, "ID", s.operation, 1), 1280, "light")
			if role == "viewer" { // of those who may do all, see TestPagesLookAsTheyDid
				b.accessible(role + " " + p.name)
			}
			list += strings.TrimSpace(p.name+": "+strings.Join(eval[[]string](b, changing), ", ")) + "\n"
		}
		compare(t, "role-"+role+".txt", list)
		b.quiet()
	}
}

// TestAViewerChangesNothing, finds out why a task failed, and sees no payload.
func TestAViewerChangesNothing(t *testing.T) {
	s := asking(t)
	b := s.as(t, "viewer")
	b.focus("sms")
	b.press(kb.Enter)
	b.keys("p", "e") // which pause it, and edit its policy, for those who may
	b.says("Topic sms")
	b.keys("g")
	b.press("d")
	b.focus("code-1")
	b.press(kb.Enter)
	b.says("gateway: no route to +1 555 0100")
	b.look("/ui/task?topic=mail&id=welcome-00", 1280, "light")
	if eval[bool](b, "document.body.innerText.includes('ann@example.com')") {
		t.Error("a viewer sees a payload")
	}
	for path, fields := range map[string]string{
		"/ui/topic/pause": "name=sms&delivery=on", "/ui/task/requeue": "topic=sms&id=code-1", "/ui/changes/keep": "topic=mail", "/ui/topic/create": "name=mine", "/ui/tokens/create": "name=x&grants=root&days=7",
	} {
		if code := b.sent(path, fields); code != 403 {
			t.Errorf("%s: %d", path, code)
		}
	}
	b.look("/ui/dead?topic=sms", 1280, "light")
	b.says("code-1")
	b.quiet()
}

// TestAnOperatorRunsTopics, and deletes none.
func TestAnOperatorRunsTopics(t *testing.T) {
	s := asking(t)
	b := s.as(t, "operator")
	b.focus("sms")
	b.press(kb.Enter)
	b.focus("Pause delivery")
	b.press(kb.Enter)
	b.says("Delivery is paused.")
	b.focus("Resume")
	b.press(kb.Enter)
	b.look("/ui/task?topic=sms&id=code-1", 1280, "light")
	b.focus("Retry")
	b.press(kb.Enter)
	b.says("Due now, with fresh attempts.")
	for path, fields := range map[string]string{
		"/ui/topic/delete": "name=sms&sure=sms", "/ui/topic/purge": "name=sms&sure=sms", "/ui/node/drain": "name=n", "/ui/tokens/create": "name=x&grants=root&days=7",
	} {
		if code := b.sent(path, fields); code != 403 {
			t.Errorf("%s: %d", path, code)
		}
	}
	b.look("/ui/topic?name=sms", 1280, "light")
	b.says("Topic sms")
	b.quiet()
}
