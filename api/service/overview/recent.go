package overview

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	freshFor = time.Second
	maxKept  = 100
)

// recent keeps overviews for as long as they are fresh. Who asks while one is being made gets
// that one. It is safe for concurrent use.
type recent struct {
	flight singleflight.Group

	mu   sync.Mutex
	kept map[Query]*Overview // by what was asked for; guarded by mu
}

func (r *recent) get(key Query, read func() (*Overview, error)) (*Overview, error) {
	if v := r.fresh(key); v != nil {
		return v, nil
	}
	v, err, _ := r.flight.Do(fmt.Sprint(key.scope, " ", key.Size, " ", key.Topic, " ", key.Token), func() (any, error) {
		v, err := read()
		if err == nil {
			r.keep(key, v)
		}
		return v, err
	})
	if err != nil {
		return nil, err
	}
	return v.(*Overview), nil
}

func (r *recent) fresh(key Query) *Overview {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.kept[key]; v != nil && time.Since(v.made) < freshFor {
		return v
	}
	return nil
}

func (r *recent) keep(key Query, v *Overview) {
	v.made = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= maxKept {
		clear(r.kept)
	}
	r.kept[key] = v
}
