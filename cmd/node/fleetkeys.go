package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/cluster"
)

// keyFiles begins a value of --gossip-key that is the name of a file with keys, one on each line.
const keyFiles = "file:"

// readGossipKeys returns the keys as values of --gossip-key, those in files included, the one to send
// with first.
func readGossipKeys(values []string) (texts []string, err error) {
	for _, value := range values {
		name, ok := strings.CutPrefix(value, keyFiles)
		if !ok {
			texts = append(texts, value)
			continue
		}
		keys, err := readKeyFile(name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, keys...)
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" }), nil
}

func readKeyFile(name string) ([]string, error) {
	text, err := readKeys(name)
	if err != nil {
		return nil, err
	}
	keys := strings.Fields(text)
	if len(keys) == 0 {
		return nil, fmt.Errorf("there is no key in %s", name)
	}
	return keys, nil
}

// readKeys reads a file of keys, which not every user may read.
func readKeys(name string) (string, error) {
	if err := checkKeyFile(name); err != nil {
		return "", err
	}
	text, err := os.ReadFile(name)
	return string(text), err
}

// checkKeyFile refuses a file of keys that is not there, or that every user may read or change.
func checkKeyFile(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return err
	case info.Mode().Perm()&0o007 != 0: // a group is how an orchestrator hands a secret to a process
		return fmt.Errorf("every user can read %s (mode %v): chmod 600 it", name, info.Mode().Perm())
	}
	return nil
}

// clusterKeys derives what nodes sign and seal with.
func clusterKeys(texts []string) ([]auth.ClusterKey, error) {
	raw, err := cluster.DecodeKeys(texts)
	if err != nil {
		return nil, err
	}
	keys := make([]auth.ClusterKey, len(raw))
	for i, k := range raw {
		keys[i] = auth.NewClusterKey(k)
	}
	return keys, nil
}

// keyFollower follows the files of --gossip-key while the node runs, so that a fleet exchanges its key
// without a restart. It owns one goroutine, gone after stop.
type keyFollower struct {
	values []string // of --gossip-key
	using  []string // what the fleet's keys are
	fleet  interface{ UseKeys(texts []string) error }
	access interface {
		UseKeys(ctx context.Context, keys []auth.ClusterKey) error
	}
	log      *slog.Logger
	failures prometheus.Counter
	keys     *prometheus.GaugeVec
	cancel   context.CancelFunc
	loop     sync.WaitGroup
}

// newKeyFollower returns nil for a node that stands alone or has no file of keys.
func newKeyFollower(cfg *Config, fleet *gossip, a *access.Access, log *slog.Logger, reg *prometheus.Registry) *keyFollower {
	files := slices.ContainsFunc(cfg.Fleet.GossipKeys, func(v string) bool { return strings.HasPrefix(v, keyFiles) })
	if fleet == nil || !files {
		return nil
	}
	f := &keyFollower{values: cfg.Fleet.GossipKeys, using: cfg.Fleet.keys, fleet: fleet, access: a, log: log}
	f.register(reg)
	return f
}

func (f *keyFollower) register(reg prometheus.Registerer) {
	f.failures = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ddq_gossip_key_failures_total", Help: "Reads of the files of --gossip-key whose keys could not be used; those before are in use.",
	})
	f.keys = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ddq_gossip_key_place", Help: "Place of each key of --gossip-key that counts, by its fingerprint; the first one is used to send.",
	}, []string{"fingerprint"})
	reg.MustRegister(f.failures, f.keys)
	f.show()
}

// show tells which keys are in use.
func (f *keyFollower) show() {
	f.keys.Reset()
	for i, print := range slices.Backward(fingerprints(f.using)) {
		f.keys.WithLabelValues(print).Set(float64(i + 1))
	}
}

// fingerprints tell keys apart without showing them.
func fingerprints(texts []string) []string {
	keys, err := cluster.DecodeKeys(texts)
	if err != nil {
		return nil // they were decoded before
	}
	prints := make([]string, len(keys))
	for i, key := range keys {
		sum := sha256.Sum256(key)
		prints[i] = hex.EncodeToString(sum[:4])
	}
	return prints
}

func (f *keyFollower) start() {
	if f == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	f.loop.Go(func() { f.follow(ctx) })
}

func (f *keyFollower) follow(ctx context.Context) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look uses what is in the files now. What cannot be used changes nothing, and is tried again.
func (f *keyFollower) look(ctx context.Context) {
	texts, err := readGossipKeys(f.values)
	if err == nil && slices.Equal(texts, f.using) {
		return
	}
	if err == nil {
		err = f.use(ctx, texts)
	}
	if err != nil {
		f.failures.Inc()
		f.log.Warn("gossip keys cannot be exchanged; the former ones count", "err", err)
		return
	}
	f.using = texts
	f.show()
	f.log.Info("gossip keys were exchanged", "keys", strings.Join(fingerprints(texts), ","))
}

// use exchanges the keys: gossip first, since it can do so at once.
func (f *keyFollower) use(ctx context.Context, texts []string) error {
	keys, err := clusterKeys(texts)
	switch {
	case err != nil:
		return err
	case len(keys) == 0:
		return errors.New("there is no key")
	}
	if err := checkStep(f.using, texts); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return errors.Join(f.fleet.UseKeys(texts), f.access.UseKeys(ctx, keys))
}

// checkStep refuses to send with a key that this node did not have, or not to know any more the key
// that it sent with: other nodes may be one step behind.
func checkStep(from, to []string) error {
	switch {
	case !slices.Contains(from, to[0]):
		return errors.New("the first key is new: make it the second one first, at every node")
	case !slices.Contains(to, from[0]):
		return errors.New("the key that was first is gone: make it the second one first, at every node")
	}
	return nil
}

func (f *keyFollower) stop() {
	if f != nil && f.cancel != nil {
		f.cancel()
		f.loop.Wait()
	}
}
