// Package quota bounds how many of something a topic has.
package quota

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Fresh is how long a count is gone by, at least.
const Fresh = 10 * time.Second

// Quota counts what topics have now and then, and between that what this node adds. The zero
// Quota works. Its methods are safe for concurrent use.
type Quota struct {
	// Share has a count gone by for so many times as long as it took, beyond Fresh.
	Share int

	mu     sync.Mutex
	topics map[string]*count // by name and life; guarded by mu
}

type count struct {
	seen  int64
	until time.Time
}

// Take counts n more of a topic, which may have up to most, and reports whether there is room for
// one. have counts what there is; it is called where no fresh count leaves room.
func (q *Quota) Take(ctx context.Context, topic *store.Topic, n, most int64, have func(context.Context) (int64, error)) (there int64, room bool, err error) {
	key := string(binary.BigEndian.AppendUint64([]byte(topic.Name), topic.Life))
	if q.takeKnown(key, n, most) {
		return 0, true, nil
	}
	began := time.Now()
	if there, err = have(ctx); err != nil {
		return 0, false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.topics == nil {
		q.topics = make(map[string]*count)
	}
	lasts := max(Fresh, time.Duration(q.Share)*time.Since(began))
	q.topics[key] = &count{seen: there + n, until: time.Now().Add(lasts)}
	return there, there < most, nil
}

// takeKnown counts n more by a count that is fresh, if that leaves room for it.
func (q *Quota) takeKnown(key string, n, most int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	known := q.topics[key]
	if known == nil || !time.Now().Before(known.until) || known.seen >= most {
		return false
	}
	known.seen += n
	return true
}
