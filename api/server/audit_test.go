package server

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/audit"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// auditedBubble runs test in fake time on a server that asks who calls, with an audit log.
func auditedBubble(t *testing.T, test func(r *guardedRig, log *audit.Log, path string)) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit")
		log, err := audit.Open(path, "node", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		guardedWith(t, Config{Audit: log}, func(r *guardedRig) { test(r, log, path) })
	})
}

func auditRecords(t *testing.T, path string) (all []audit.Record) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r audit.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// rulesOf are the rules of all methods that the server has.
func rulesOf(t *testing.T, r *guardedRig) *auth.Rules {
	t.Helper()
	var methods []string
	for service, info := range r.server.grpc.GetServiceInfo() {
		for _, m := range info.Methods {
			methods = append(methods, "/"+service+"/"+m.Name)
		}
	}
	rules, err := auth.RulesFor(methods)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestEveryAuditedCallIsWrittenDown goes through all methods that the server has: what operators
// and administrators do leaves a record before and one after, and nothing else does.
func TestEveryAuditedCallIsWrittenDown(t *testing.T) {
	auditedBubble(t, func(r *guardedRig, _ *audit.Log, path string) {
		admin, _ := r.token(0, "admin")
		rules := rulesOf(t, r)
		for service, info := range r.server.grpc.GetServiceInfo() {
			for _, m := range info.Methods {
				method := "/" + service + "/" + m.Name
				rule := rules.Of(method)
				if rule.Where == auth.Fleet || rule.Where == auth.Public || rule.Verbs == auth.Node {
					continue
				}
				before := len(auditRecords(t, path))
				if got := r.call(r.as(admin), r.conn, method, "mail"); got != "ok" {
					t.Fatalf("%s: %s", method, got)
				}
				synctest.Wait()
				var events []string
				for _, rec := range auditRecords(t, path)[before:] {
					events = append(events, rec.Event)
					if rec.Method != method || rec.Caller != "token:admin" || rec.Address == "" {
						t.Errorf("%s: %+v", method, rec)
					}
				}
				want := []string(nil)
				if rule.Audited() {
					want = []string{audit.Asked, audit.Answered}
				}
				if !slices.Equal(events, want) {
					t.Errorf("%s: %v, want %v", method, events, want)
				}
			}
		}
	})
}

func TestWhoIsTurnedAwayIsWrittenDown(t *testing.T) {
	auditedBubble(t, func(r *guardedRig, _ *audit.Log, path string) {
		viewer, id := r.token(0, "viewer:mail")
		before := len(auditRecords(t, path))
		_, _ = r.admin.DeleteTopic(r.as(viewer), &ddqv1.DeleteTopicRequest{Name: "mail"})
		_, _ = r.admin.ListTopics(r.as("ddq_x"), &ddqv1.ListTopicsRequest{})
		_, _ = r.queue.Enqueue(r.as(""), &ddqv1.EnqueueRequest{Topic: "mail"})
		all := auditRecords(t, path)[before:]
		if len(all) != 3 || all[0].Code != "NOT_ALLOWED" || all[0].Token != id || all[1].Code != "BAD_CREDENTIALS" || all[1].Caller != "" || all[2].Code != "NO_CREDENTIALS" {
			t.Errorf("%+v", all)
		}
		for _, rec := range all {
			if rec.Event != audit.Refused {
				t.Errorf("%+v", rec)
			}
		}
	})
}

// TestWhatCannotBeWrittenDownIsNotDone: and work goes on.
func TestWhatCannotBeWrittenDownIsNotDone(t *testing.T) {
	auditedBubble(t, func(r *guardedRig, log *audit.Log, _ string) {
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.admin.CreateTopic(r.as(r.root), &ddqv1.CreateTopicRequest{Name: "mail"}); reasonOf(err) != "AUDIT_DOWN" {
			t.Errorf("create: %v", err)
		}
		topics, err := r.admin.ListTopics(r.as(r.root), &ddqv1.ListTopicsRequest{})
		if err != nil || len(topics.Topics) != 0 {
			t.Errorf("after a call that was refused: %v, %v", topics, err)
		}
		if _, err := r.queue.Enqueue(r.as(r.root), &ddqv1.EnqueueRequest{Topic: "mail"}); err != nil {
			t.Errorf("enqueue: %v", err)
		}
	})
}

// TestWithoutAuthenticationCallersAreLocal: what they do is written down all the same.
func TestWithoutAuthenticationCallersAreLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit")
		log, err := audit.Open(path, "node", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		r := newRig(t, Config{Audit: log}, actors.Config{})
		defer r.close()
		if _, err := r.admin.CreateTopic(r.Context(), &ddqv1.CreateTopicRequest{Name: "mail"}); err != nil {
			t.Fatal(err)
		}
		all := auditRecords(t, path)
		if len(all) != 3 || all[1].Caller != "local" || all[2].Code != "OK" {
			t.Errorf("%+v", all)
		}
	})
}
