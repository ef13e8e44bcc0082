package node

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/api/auth"
)

const (
	olderKey = "MDEyMzQ1Njc4OWFiY2RlZg=="
	newerKey = "ZmVkY2JhOTg3NjU0MzIxMA=="
)

func writeKeys(t *testing.T, name string, mode os.FileMode, lines ...string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

func TestGossipKeysAreReadFromFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys")
	for want, c := range map[string]struct {
		mode  os.FileMode
		lines []string
	}{
		"every user can read": {0o644, []string{olderKey}},
		"there is no key in":  {0o600, []string{"", " "}},
		"is not base64":       {0o600, []string{"?"}},
		"has 3 bytes":         {0o600, []string{olderKey, "YWJj"}},
	} {
		writeKeys(t, name, c.mode, c.lines...)
		cfg := configOf(t, "--gossip-key", "file:"+name)
		err := cfg.Check()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--gossip-key") {
			t.Errorf("got %v, want %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), olderKey) {
			t.Errorf("the error has a key in it: %v", err)
		}
	}
	if err := configOf(t, "--gossip-key", "file:"+name+"x").Check(); err == nil {
		t.Error("a file that is not there was read")
	}
	writeKeys(t, name, 0o640, newerKey, "", olderKey, "")
	cfg := configOf(t, "--gossip-key", "file:"+name)
	if err := cfg.Check(); err != nil || !slices.Equal(cfg.Fleet.keys, []string{newerKey, olderKey}) {
		t.Errorf("%q, %v", cfg.Fleet.keys, err)
	}
}

// ring remembers the keys that it was told to use.
type ring struct {
	texts []string
	first auth.ClusterKey
	err   error
}

type accessRing struct{ *ring }

func (r *ring) UseKeys(texts []string) error { r.texts = texts; return nil }

func (r accessRing) UseKeys(_ context.Context, keys []auth.ClusterKey) error {
	if r.err == nil {
		r.first = keys[0]
	}
	return r.err
}

// sample returns the values of a metric.
func sample(t *testing.T, reg *prometheus.Registry, name string) (values []float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				values = append(values, m.GetCounter().GetValue()+m.GetGauge().GetValue())
			}
		}
	}
	return values
}

func TestKeysOfFilesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "keys")
		r, logged, reg := &ring{texts: []string{olderKey}}, new(bytes.Buffer), prometheus.NewRegistry()
		f := &keyFollower{
			values: []string{"file:" + name}, using: []string{olderKey}, fleet: r, access: accessRing{r},
			log: slog.New(slog.NewTextHandler(logged, nil)),
		}
		f.register(reg)
		writeKeys(t, name, 0o600, olderKey)
		f.start()
		defer f.stop()
		away := errors.New("the store is away")
		for _, step := range []struct {
			what  string
			mode  os.FileMode
			lines []string
			err   error // of the store
			want  string
		}{
			{"nothing changes", 0o600, []string{olderKey}, nil, olderKey},
			{"a new key cannot be the first", 0o600, []string{newerKey, olderKey}, nil, olderKey},
			{"nor the only one", 0o600, []string{newerKey}, nil, olderKey},
			{"added", 0o600, []string{olderKey, newerKey}, nil, olderKey + newerKey},
			{"the old key cannot go with one step", 0o600, []string{newerKey}, nil, olderKey + newerKey},
			{"half of a file", 0o600, []string{olderKey, newerKey[:7]}, nil, olderKey + newerKey},
			{"no keys", 0o600, nil, nil, olderKey + newerKey},
			{"for every user", 0o604, []string{newerKey, olderKey}, nil, olderKey + newerKey},
			{"made the first without the store", 0o600, []string{newerKey, olderKey}, away, newerKey + olderKey},
			{"made the first", 0o600, []string{newerKey, olderKey}, nil, newerKey + olderKey},
			{"the old one taken away", 0o600, []string{newerKey}, nil, newerKey},
		} {
			before := sample(t, reg, "ddq_gossip_key_failures_total")[0]
			r.err = step.err
			writeKeys(t, name, step.mode, step.lines...)
			time.Sleep(renewal)
			synctest.Wait()
			if got := strings.Join(r.texts, ""); got != step.want {
				t.Errorf("%s: %s", step.what, got)
			}
			failed, want := sample(t, reg, "ddq_gossip_key_failures_total")[0] > before, step.err != nil || strings.Join(step.lines, "") != step.want || step.mode != 0o600
			if failed != want {
				t.Errorf("%s: failed %v", step.what, failed)
			}
		}
		if got := sample(t, reg, "ddq_gossip_key_place"); !slices.Equal(got, []float64{1}) {
			t.Errorf("metrics show places %v", got)
		}
		key := auth.NewClusterKey([]byte("fedcba9876543210"))
		if _, ok := r.first.Open("k", "n", key.Seal("k", "n", nil)); !ok {
			t.Error("records are not sealed with the first key")
		}
		for _, secret := range []string{olderKey, newerKey, "0123456789abcdef", "fedcba9876543210"} {
			if strings.Contains(logged.String(), secret) {
				t.Errorf("the log has a key in it: %s", logged)
			}
		}
	})
}
