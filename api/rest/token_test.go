package rest

import (
	"encoding/json"
	"strings"
	"testing"
)

// made is the answer to a token that was made.
type made struct {
	Token  struct{ ID, Name string }
	Secret string
}

func makeToken(r *rig, path, body, as string) made {
	r.Helper()
	var m made
	answer := r.do("POST", path, body, as).want(201)
	must(r, json.Unmarshal([]byte(answer.body), &m))
	if answer.header.Get("Cache-Control") != "no-store" || m.Secret == "" {
		r.Errorf("got %v, secret of %d bytes", answer.header, len(m.Secret))
	}
	return m
}

func bearer(secret string) string { return "Authorization: Bearer " + secret }

func TestTokensAreMadeRotatedAndRevoked(t *testing.T) {
	r, root := newAskingRig(t)
	first := makeToken(r, "/v1/tokens", `{"name":"mailer","grants":[{"verbs":["producer"],"topics":"mail*"}],"life":"3600s"}`, root)
	if who := r.do("GET", "/v1/whoami", "", bearer(first.Secret)).want(200).body; !strings.Contains(who, `"mailer"`) || !strings.Contains(who, `"mail*"`) {
		t.Errorf("got %s", who)
	}
	listed := r.do("GET", "/v1/tokens", "", root).want(200).body
	if !strings.Contains(listed, first.Token.ID) || strings.Contains(listed, first.Secret) {
		t.Errorf("got %s", listed)
	}
	second := makeToken(r, "/v1/tokens/"+first.Token.ID+":rotate", `{"overlap":"60s"}`, root)
	for _, secret := range []string{first.Secret, second.Secret} {
		r.do("POST", "/v1/topics/mail/tasks", `{"delay":"60s"}`, bearer(secret)).want(202)
	}
	r.do("DELETE", "/v1/tokens/"+second.Token.ID, "", root).want(204)
	r.do("GET", "/v1/whoami", "", bearer(second.Secret)).problem(401, "BAD_CREDENTIALS")
	r.do("DELETE", "/v1/tokens/"+second.Token.ID, "", root).problem(404, "NO_TOKEN")
}

func TestTokensThatAreRefused(t *testing.T) {
	r, root := newAskingRig(t)
	admin := bearer(makeToken(r, "/v1/tokens", `{"name":"mail","grants":[{"verbs":["admin"],"topics":"mail"}]}`, root).Secret)
	worker := bearer(makeToken(r, "/v1/tokens", `{"name":"worker","grants":[{"verbs":["worker"],"topics":"mail"}]}`, root).Secret)
	other := makeToken(r, "/v1/tokens", `{"name":"sms","grants":[{"verbs":["worker"],"topics":"sms"}]}`, root)
	grant := func(verb, topics string) string {
		return `{"name":"x","grants":[{"verbs":["` + verb + `"],"topics":"` + topics + `"}]}`
	}
	for _, c := range []struct {
		method, path, body, as string
		status                 int
		reason                 string
	}{
		{"GET", "/v1/tokens", "", worker, 403, "NOT_ALLOWED"},
		{"POST", "/v1/tokens", grant("work", "mail"), worker, 403, "NOT_ALLOWED"},
		{"POST", "/v1/tokens", grant("work", "sms"), admin, 403, "BEYOND_GRANTS"},
		{"POST", "/v1/tokens", grant("work", "*mail"), admin, 400, "BAD_GRANT"},
		{"POST", "/v1/tokens", grant("work", "ma*il"), admin, 400, "BAD_GRANT"},
		{"POST", "/v1/tokens", grant("rule", "mail"), admin, 400, "BAD_GRANT"},
		{"POST", "/v1/tokens", `{"name":"x","grants":[{"verbs":[],"topics":"mail"}]}`, admin, 400, "BAD_GRANT"},
		{"POST", "/v1/tokens", `{"name":"x","life":"345600000s","grants":[{"verbs":["work"],"topics":"mail"}]}`, root, 400, "BAD_GRANT"},
		{"POST", "/v1/tokens/" + other.Token.ID + ":rotate", "{}", admin, 404, "NO_TOKEN"},
		{"DELETE", "/v1/tokens/" + other.Token.ID, "", admin, 404, "NO_TOKEN"},
		{"DELETE", "/v1/tokens/" + other.Token.ID, "", worker, 403, "NOT_ALLOWED"},
		{"GET", "/v1/whoami", "", bearer(other.Secret[:20]), 401, "BAD_CREDENTIALS"},
	} {
		r.do(c.method, c.path, c.body, c.as).problem(c.status, c.reason)
	}
}

func TestBindingsArePutAndDeleted(t *testing.T) {
	r, root := newAskingRig(t)
	admin := bearer(makeToken(r, "/v1/tokens", `{"name":"mail","grants":[{"verbs":["admin"],"topics":"mail"}]}`, root).Secret)
	body := `{"certificate":"spiffe://prod/mail/","grants":[{"verbs":["worker"],"topics":"mail"}]}`
	r.do("PUT", "/v1/bindings/mailers", body, root).want(200)
	if listed := r.do("GET", "/v1/bindings", "", admin).want(200).body; !strings.Contains(listed, "spiffe://prod/mail/") {
		t.Errorf("got %s", listed)
	}
	r.do("PUT", "/v1/bindings/mailers", body, admin).problem(403, "BEYOND_GRANTS") // its token ends
	r.do("PUT", "/v1/bindings/mailers", `{"certificate":"*.test","grants":[{"verbs":["worker"],"topics":"mail"}]}`, root).problem(400, "BAD_BINDING")
	r.do("PUT", "/v1/bindings/Mailers", body, root).problem(400, "BAD_BINDING")
	r.do("DELETE", "/v1/bindings/mailers", "", root).want(204)
	r.do("DELETE", "/v1/bindings/mailers", "", root).problem(404, "NO_BINDING")
}
