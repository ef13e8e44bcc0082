//go:build unix

package cli

import (
	"encoding/json"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// TestDoctorFindsHowARedisIsExposed asks servers that let in more than they should.
func TestDoctorFindsHowARedisIsExposed(t *testing.T) {
	const least = "~ddq:* -@all +@read +@write +@connection -@dangerous -scan -randomkey +eval +evalsha +script|load +script|exists +time +wait +info +config|get" // of docs/operating.md
	user := func(rights string) []string {
		return append([]string{"--user", "ddq", "on", ">secret"}, strings.Fields(rights)...)
	}
	for _, tc := range []struct {
		name     string
		settings []string
		login    *url.Userinfo
		more     []string // of doctor
		status   string   // empty: there is no finding
		want     string
	}{
		{"no password, on loopback", []string{"--protected-mode", "yes"}, nil, nil, "note", "every user of this machine may read"},
		{"no password, on loopback, unprotected", nil, nil, nil, "note", "every user of this machine may read"},
		{"no password, everywhere, protected", []string{"--bind", "* -::*", "--protected-mode", "yes"}, nil, nil, "note", "every user of this machine may read"},
		{"no password, everywhere", []string{"--bind", "0.0.0.0"}, nil, nil, "wrong", `protected-mode is no and bind is \"0.0.0.0\"`},
		{"no password, everywhere, by the wildcard", []string{"--bind", "*"}, nil, nil, "wrong", "protected-mode is no and bind is"},
		{"no password, everywhere, which is accepted", []string{"--bind", "0.0.0.0"}, nil, []string{"--insecure"}, "note", "other machines may read"},
		{"a password, and a user who may do everything", []string{"--requirepass", "secret"}, url.UserPassword("default", "secret"), nil, "note", `user \"default\" of redis, who may do everything`},
		{"a user of its own who may do everything", append(user("~* &* +@all"), "--requirepass", "x"), url.UserPassword("ddq", "secret"), nil, "note", `user \"ddq\" of redis, who may do everything`},
		{"a user of its own, and a stranger who may", user(least), url.UserPassword("ddq", "secret"), nil, "note", "redis asks for no password"},
		{"as it should be", append(user(least), "--requirepass", "x"), url.UserPassword("ddq", "secret"), nil, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			addr := redistest.StartTCP(t, tc.settings...).Addr()
			store := url.URL{Scheme: "redis", Host: addr, User: tc.login}
			got := ddq(t, append([]string{"doctor", "--no-server", "-o", "json", "--store", store.String()}, tc.more...)...)
			if want := map[bool]int{true: exitFailed, false: exitOK}[tc.status == "wrong"]; got.code != want {
				t.Errorf("exit code %d, want %d", got.code, want)
			}
			found := 0
			for line := range strings.Lines(got.out) {
				var f finding
				if err := json.Unmarshal([]byte(line), &f); err != nil || f.Check != "store" || f.Status == findingOK {
					continue
				}
				if strings.Contains(line, "CVE-2025-49844") {
					continue // of this machine's Redis, whatever it lets in
				}
				found++
				if f.Status != tc.status || !strings.Contains(line, tc.want) {
					t.Errorf("got %s, want %s with %q", line, tc.status, tc.want)
				}
			}
			if want := min(len(tc.status), 1); found != want || strings.Contains(got.out, "secret") {
				t.Errorf("%d findings, want %d:\n%s%s", found, want, got.out, got.err)
			}
		})
	}
	t.Run("no password, by an address of the network", func(t *testing.T) {
		host := addressOfNetwork(t)
		_, port, err := net.SplitHostPort(redistest.StartTCP(t, "--bind", host+" 127.0.0.1").Addr())
		if err != nil {
			t.Fatal(err)
		}
		got := ddq(t, "doctor", "--no-server", "-o", "json", "--store", "redis://"+net.JoinHostPort(host, port))
		if got.code != exitFailed || !strings.Contains(got.out, "whoever reaches it may read") {
			t.Errorf("got %+v", got)
		}
	})
}

// addressOfNetwork is one of this machine's that is not loopback.
func addressOfNetwork(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		if ip, ok := addr.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address beside loopback")
	return ""
}
