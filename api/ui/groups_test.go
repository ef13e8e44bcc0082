package ui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ddq-io/ddq/api/client"
)

// TestDeadLettersByError: each group has its number and example, and leads to a count of what its filter matches.
func TestDeadLettersByError(t *testing.T) {
	r := start(t)
	for i, why := range []string{"timeout after 30s", "timeout after 31s", "no template for order-2", "no template for order-3", "no template for order-4", "", hostile[0]} {
		r.enqueue(client.Task{Topic: "mail", ID: fmt.Sprint("order-", i), MaxRetries: new(0)})
		kill(r, "mail", why)
	}
	page, text := r.get(http.StatusOK, "/ui/dead/groups?topic=mail")
	links := strings.Join(r.check("/ui/dead/groups", page), "\n")
	for _, want := range []string{"7 dead letters were examined, which are all.", ">timeout after #s<", ">no template for #<", ">no error<", "&lt;script&gt;alert(#)&lt;/script&gt;<"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if !strings.Contains(links, "/ui/dead?error=no+template+for&reason=max+retries&topic=mail") || !strings.Contains(links, "/ui/task?id=order-5&topic=mail") {
		t.Error(links)
	}
	if strings.Index(text, "no template") > strings.Index(text, "timeout") {
		t.Error("the group that has most is not the first")
	}
	if _, text := r.get(http.StatusOK, "/ui/dead/groups?topic=mail&error=timeout"); strings.Contains(text, "no template") || !strings.Contains(text, "2 dead letters were examined") {
		t.Error(text)
	}
	if _, text := r.get(http.StatusOK, "/ui/dead/groups?topic=mail&reason=expired"); !strings.Contains(text, "There are none") {
		t.Error(text)
	}
	r.get(http.StatusBadRequest, "/ui/dead/groups?topic=mail&reason=lost")
	r.get(http.StatusBadRequest, "/ui/dead/groups")

	form := url.Values{"topic": {"mail"}, "reason": {"max retries"}, "error": {"template"}, "group": {"2"}}
	reply, err := http.PostForm(r.base+"/ui/dead/count", form)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	asked, err := html.Parse(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatal(reply.Status, err)
	}
	r.check("/ui/dead/count", asked)
	said := textOf(asked)
	for _, want := range []string{"3 dead letters are matched.", "The group had 2 of those that were examined.", "order-2", "order-4", "no template for order-3", "Requeue all of them"} {
		if !strings.Contains(said, want) {
			t.Errorf("the count does not say %q:\n%s", want, said)
		}
	}
}

func textOf(page *html.Node) string {
	var text strings.Builder
	for n := range page.Descendants() {
		if n.Type == html.TextNode {
			text.WriteString(n.Data)
		}
	}
	return text.String()
}
