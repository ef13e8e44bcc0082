package server

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/audit"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// listAudit is a filter of records; nil is all.
func listAudit(edit func(*ddqv1.ListAuditRecordsRequest)) func(*rig) error {
	return func(r *rig) error {
		req := new(ddqv1.ListAuditRecordsRequest)
		edit(req)
		_, err := ddqv1.NewAuditServiceClient(r.conn).ListAuditRecords(r.Context(), req)
		return err
	}
}

// heard are records as caller, method, topic, name and outcome.
func heard(records []*ddqv1.AuditRecord) (all []string) {
	for _, r := range records {
		method := r.Method[strings.LastIndexByte(r.Method, '/')+1:]
		all = append(all, strings.Join([]string{r.Caller, method, r.Topic, r.Name, strings.TrimPrefix(r.Outcome.String(), "AUDIT_OUTCOME_"), r.Code}, " "))
	}
	return all
}

// TestAnAuditorReadsWhatWasWrittenDown, of all namespaces, and sees where a page ends.
func TestAnAuditorReadsWhatWasWrittenDown(t *testing.T) {
	auditedBubble(t, func(r *guardedRig, _ *audit.Log, path string) {
		tenant := r.tenant("acme")
		if _, err := r.admin.CreateTopic(r.as(tenant), &ddqv1.CreateTopicRequest{Name: "mail"}); err != nil {
			t.Fatal(err)
		}
		_, _ = r.admin.DeleteTopic(r.as(r.root), &ddqv1.DeleteTopicRequest{Name: "none"})
		viewer, _ := r.token(0, "viewer")
		_, _ = r.admin.PauseTopic(r.as(viewer), &ddqv1.PauseTopicRequest{Name: "mail", Delivery: true})
		auditor, _ := r.token(0, "auditor")
		client := ddqv1.NewAuditServiceClient(r.conn)

		list := func(filter *ddqv1.ListAuditRecordsRequest) *ddqv1.ListAuditRecordsResponse {
			t.Helper()
			page, err := client.ListAuditRecords(r.as(auditor), filter)
			if err != nil {
				t.Fatal(err)
			}
			return page
		}
		got := heard(list(&ddqv1.ListAuditRecordsRequest{Outcome: ddqv1.AuditOutcome_AUDIT_OUTCOME_REFUSED}).Records)
		if want := []string{"token:viewer PauseTopic   REFUSED NOT_ALLOWED"}; !slices.Equal(got, want) {
			t.Errorf("turned away: %q", got)
		}
		page := list(&ddqv1.ListAuditRecordsRequest{Resource: "acme/mail"})
		got = heard(page.Records)
		if want := []string{"token:acme CreateTopic  acme/mail DONE OK", "token:acme CreateTopic  acme/mail ASKED "}; !slices.Equal(got, want) {
			t.Errorf("of a topic: %q", got)
		}
		if done, asked := page.Records[0], page.Records[1]; done.Call != asked.Seq || asked.Request != `{"name":"acme/mail"}` || asked.Namespace != "acme" || asked.Address == "" || asked.Node == "" || asked.Time == nil {
			t.Errorf("asked for was %v, done %v", asked, done)
		}
		if got := heard(list(&ddqv1.ListAuditRecordsRequest{Method: "DeleteTopic", Outcome: ddqv1.AuditOutcome_AUDIT_OUTCOME_FAILED}).Records); len(got) != 1 || !strings.HasSuffix(got[0], "none FAILED NO_TOPIC") {
			t.Errorf("what failed: %q", got)
		}
		all, one := heard(list(&ddqv1.ListAuditRecordsRequest{}).Records), []string(nil)
		for token := ""; ; {
			page := list(&ddqv1.ListAuditRecordsRequest{PageSize: 1, PageToken: token})
			one = append(one, heard(page.Records)...)
			if token = page.NextPageToken; token == "" {
				break
			}
		}
		if !slices.Equal(all, one) || len(all) != len(auditRecords(t, path)) {
			t.Errorf("all are %q, and one by one %q", all, one)
		}

		verify := func() string {
			t.Helper()
			chains, err := client.VerifyAudit(r.as(auditor), &ddqv1.VerifyAuditRequest{})
			if err != nil || len(chains.Chains) != 1 {
				t.Fatal(chains, err)
			}
			c := chains.Chains[0]
			return strings.TrimSpace(fmt.Sprintf("%v %d %s", c.State, c.Records, c.Error))
		}
		if got, want := verify(), fmt.Sprint("AUDIT_CHAIN_STATE_WHOLE ", len(all)); got != want {
			t.Errorf("the chain is %s, want %s", got, want)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Replace(text, []byte(`"none"`), []byte(`"nine"`), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := verify(); !strings.HasPrefix(got, "AUDIT_CHAIN_STATE_BROKEN") || !strings.Contains(got, "it was changed") {
			t.Errorf("the chain is %s", got)
		}
		if page := list(&ddqv1.ListAuditRecordsRequest{Outcome: ddqv1.AuditOutcome_AUDIT_OUTCOME_STARTED}); len(page.Records) != 2 || !page.Records[0].Altered {
			t.Errorf("a line that was changed does not show: %v", page.Records)
		}
	})
}

// TestNodesWithoutAnAnswerAreNamed, and those without a log.
func TestNodesWithoutAnAnswerAreNamed(t *testing.T) {
	fleetBubble(t, Config{}, func(r *rig) {
		client := ddqv1.NewAuditServiceClient(r.conn)
		page, err := client.ListAuditRecords(r.Context(), &ddqv1.ListAuditRecordsRequest{})
		if err != nil || len(page.Records) != 0 || fmt.Sprint(page.NodesWithoutLog, page.SilentNodes) != "[a] [b]" {
			t.Errorf("%v, %v", page, err)
		}
		chains, err := client.VerifyAudit(r.Context(), &ddqv1.VerifyAuditRequest{})
		if err != nil || len(chains.Chains) != 2 || chains.Chains[0].State != ddqv1.AuditChainState_AUDIT_CHAIN_STATE_NONE || chains.Chains[1].State != ddqv1.AuditChainState_AUDIT_CHAIN_STATE_UNKNOWN || chains.Chains[1].Error == "" {
			t.Errorf("%v, %v", chains, err)
		}
	})
}

// TestOnlyNodesReadTheLogOfANode, of those who need not say who they are.
func TestOnlyNodesReadTheLogOfANode(t *testing.T) {
	ask := func(r *rig) (lines int, list, verify error) {
		node := ddqv1.NewPeerServiceClient(r.conn)
		page, list := node.ListPeerAudit(r.Context(), &ddqv1.ListPeerAuditRequest{Most: 10, Bytes: 1 << 20})
		_, verify = node.VerifyPeerAudit(r.Context(), &ddqv1.VerifyPeerAuditRequest{})
		return len(page.GetLines()), list, verify
	}
	memberBubble(t, Config{}, []netip.Addr{netip.MustParseAddr("10.0.0.3")}, func(r *rig) {
		if _, list, verify := ask(r); reasonOf(list) != "NOT_A_NODE" || reasonOf(verify) != "NOT_A_NODE" {
			t.Errorf("%v, %v", list, verify)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		log, err := audit.Open(filepath.Join(t.TempDir(), "audit"), "a", quiet)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		r := newRig(t, Config{Audit: log}, actors.Config{Node: "a"}, fleet.Member{Name: "a", Addr: "10.0.0.1:9090", State: fleet.MemberActive},
			fleet.Member{Name: "b", Addr: "b:9090", State: fleet.MemberActive, Hosts: []netip.Addr{clientAddr.Addr()}})
		defer r.close()
		if lines, list, verify := ask(r); list != nil || verify != nil || lines != 1 {
			t.Errorf("%v, %v, %d lines", list, verify, lines)
		}
	})
}
