package access

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// TestWhatALaterVersionWroteStays changes records in which there are fields that this version does not know.
func TestWhatALaterVersionWroteStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "0123456789abcdef"
		registry := memstore.New()
		a := start(t, registry, key)
		later := records{Registry: registry, keys: auth.NewClusterKeys(clusterKeys(key)...)}
		addTo := func(kind, at string) {
			t.Helper()
			r := later.only(t, kind)
			value := strings.Replace(r.Value, at, at+`"later":{"x":[7]},`, 1)
			if _, err := later.write(t.Context(), store.Record{Kind: kind, Name: r.Name, Version: r.Version}, new(json.RawMessage(value))); err != nil {
				t.Fatal(err)
			}
		}

		if _, err := a.Namespaces.Create(t.Context(), auth.Root(), "acme", Quotas{MaxTopics: 1, MaxPending: 2}); err != nil {
			t.Fatal(err)
		}
		addTo(kindNamespace, "{")
		addTo(kindNamespace, `"quotas":{`)
		_, err := a.Namespaces.Configure(t.Context(), "acme", func(q *Quotas) { q.MaxTopics, q.MaxPending, q.MaxStreams = 3, 0, 4 })
		if err != nil {
			t.Fatal(err)
		}
		got := later.only(t, kindNamespace).Value
		if n := strings.Count(got, `"later":{"x":[7]}`); n != 2 || !strings.Contains(got, `"max_topics":3`) || strings.Contains(got, "max_pending") {
			t.Errorf("the record of the namespace is %s", got)
		}

		_, id := makeToken(t, a)
		addTo(kindToken, "{")
		if _, _, err := a.Tokens.Rotate(t.Context(), auth.Root(), id, time.Hour); err != nil {
			t.Fatal(err)
		}
		all := later.all(t, kindToken)
		if len(all) != 2 || all[0].ID == all[1].ID {
			t.Fatalf("tokens are %+v", all)
		}
		for _, r := range all {
			if !strings.Contains(r.Value, `"later":{"x":[7]}`) {
				t.Errorf("a token after the rotation is %s", r.Value)
			}
		}
	})
}

// opened is a record, with what is in it.
type opened struct {
	store.Record
	ID, Value string
}

func (r *records) all(t *testing.T, kind string) (all []opened) {
	t.Helper()
	found, _, err := r.Records(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		value, _ := r.open(&found[i])
		var named struct{ ID string }
		if err := json.Unmarshal(value, &named); err != nil {
			t.Fatal(err)
		}
		all = append(all, opened{found[i], named.ID, string(value)})
	}
	return all
}

func (r *records) only(t *testing.T, kind string) opened {
	t.Helper()
	all := r.all(t, kind)
	if len(all) != 1 {
		t.Fatalf("%d records, want 1", len(all))
	}
	return all[0]
}
