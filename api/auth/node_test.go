package auth

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestNodesKnowEachOtherByTheirKey(t *testing.T) {
	key, other := NewClusterKey([]byte("0123456789abcdef")), NewClusterKey([]byte("fedcba9876543210"))
	const method = "/ddq.v1.PeerService/Notify"
	good := func() string { return key.Sign("a", "b", method, noon) }
	for what, c := range map[string]struct {
		credential, method string
		at                 time.Time
		want               error
	}{
		"good":                {good(), method, noon, nil},
		"early":               {good(), method, noon.Add(-30 * time.Second), nil},
		"late":                {good(), method, noon.Add(30 * time.Second), nil},
		"too early":           {good(), method, noon.Add(-31 * time.Second), ErrClockSkew},
		"too late":            {good(), method, noon.Add(31 * time.Second), ErrClockSkew},
		"another key":         {other.Sign("a", "b", method, noon), method, noon, ErrBadNode},
		"another method":      {good(), method + "x", noon, ErrBadNode},
		"for another node":    {key.Sign("a", "c", method, noon), method, noon, ErrBadNode},
		"without a name":      {key.Sign("", "b", method, noon), method, noon, ErrBadNode},
		"empty":               {NodeScheme, method, noon, ErrBadNode},
		"another node's name": {strings.Replace(good(), text64("a"), text64("z"), 1), method, noon, ErrBadNode},
	} {
		node, err := NewNodes("b", NewClusterKeys(NewClusterKey([]byte("an older key....")), key)).Verify(c.credential, c.method, c.at)
		if !errors.Is(err, c.want) || err == nil && node != "a" {
			t.Errorf("%s: %q, %v; want %v", what, node, err, c.want)
		}
	}
}

func TestCredentialsOfNodesCountOnce(t *testing.T) {
	key := NewClusterKey([]byte("0123456789abcdef"))
	n, at := NewNodes("b", NewClusterKeys(key)), noon
	first := key.Sign("a", "b", "/m", at)
	if _, err := n.Verify(first, "/m", at); err != nil {
		t.Fatal(err)
	}
	for at.Before(noon.Add(5 * time.Minute)) {
		if _, err := n.Verify(first, "/m", at); err == nil {
			t.Fatalf("again after %v", at.Sub(noon))
		}
		if _, err := n.Verify(key.Sign("a", "b", "/m", at), "/m", at); err != nil {
			t.Fatal(err)
		}
		at = at.Add(7 * time.Second)
	}
	if kept := len(n.used) + len(n.old); kept > 20 {
		t.Errorf("%d nonces are kept", kept)
	}
}

func TestRecordsAreSealed(t *testing.T) {
	key, other := NewClusterKey([]byte("0123456789abcdef")), NewClusterKey([]byte("fedcba9876543210"))
	sealed := key.Seal("token", "a", []byte("value"))
	if value, ok := key.Open("token", "a", sealed); !ok || string(value) != "value" {
		t.Errorf("%q, %v", value, ok)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, ok := key.Open("token", "a", changed); ok {
			t.Errorf("byte %d was changed", i)
		}
		if _, ok := key.Open("token", "a", sealed[:i]); ok {
			t.Errorf("cut at %d", i)
		}
	}
	for what, ok := range map[string]bool{
		"another kind": opens(key, "binding", "a", sealed), "another name": opens(key, "token", "b", sealed),
		"moved border": opens(key, "toke", "na", sealed), "another key": opens(other, "token", "a", sealed),
	} {
		if ok {
			t.Errorf("%s: opened", what)
		}
	}
}

func opens(k ClusterKey, kind, name string, sealed []byte) bool {
	_, ok := k.Open(kind, name, sealed)
	return ok
}
