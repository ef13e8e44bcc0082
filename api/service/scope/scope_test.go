package scope_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/store"
)

func TestTopicsOfTheNamespaceOfACall(t *testing.T) {
	var all []store.Topic
	for _, name := range []string{"acme", "acme/mail", "acme2/mail", "mail"} {
		all = append(all, store.Topic{Name: name})
	}
	for _, c := range []struct {
		ctx  context.Context
		want string
	}{
		{t.Context(), "[acme mail]"},
		{scope.With(t.Context(), store.DefaultNamespace), "[acme mail]"},
		{scope.With(t.Context(), "acme"), "[acme/mail]"},
		{scope.With(t.Context(), "other"), "[]"},
		{scope.All(t.Context()), "[acme acme/mail acme2/mail mail]"},
	} {
		var names []string
		for _, topic := range scope.Topics(c.ctx, all) {
			names = append(names, topic.Name)
			if !scope.Has(c.ctx, topic.Name) {
				t.Errorf("%s: not %s", scope.Of(c.ctx), topic.Name)
			}
		}
		if got := fmt.Sprint(names); got != c.want {
			t.Errorf("%s: %s, want %s", scope.Of(c.ctx), got, c.want)
		}
	}
}
