package agenda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ddq-io/ddq/store"
)

// orderScene are the ordering keys of a shard, and the tasks that it let out.
type orderScene struct {
	*orderKeys
	out map[string]bool
	now store.Millis
}

// TestOrderKeys runs the scenarios of testdata/ordering. Tasks are written id@due/key,
// without the key in answers of the store; moments are in milliseconds.
func TestOrderKeys(t *testing.T) {
	datadriven.Walk(t, "testdata/ordering", func(t *testing.T, path string) {
		s := &orderScene{&orderKeys{Most: 100}, map[string]bool{}, 100}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.step(t, d)
		})
	})
}

func (s *orderScene) step(t *testing.T, d *datadriven.TestData) string {
	var id, head, key string
	d.MaybeScanArgs(t, "id", &id)
	d.MaybeScanArgs(t, "head", &head)
	d.MaybeScanArgs(t, "key", &key)
	var b strings.Builder
	switch d.Cmd {
	case "most":
		d.ScanArgs(t, "n", &s.Most)
	case "now":
		d.ScanArgs(t, "at", &s.now)
	case "ready": // as a shard has it
		for _, e := range orderedTasks(d.Input) {
			if !s.Moved(e, s.now) && !s.MustWait(e) {
				s.Let(e)
				s.out[e.ID] = true
				fmt.Fprintf(&b, "%s goes\n", e.ID)
			}
		}
	case "behind":
		e := orderedTasks(d.Input)[0]
		delete(s.out, e.ID)
		s.Behind(e, head)
	case "held":
		delete(s.out, id)
	case "ended":
		s.Ended(id)
	case "again": // it failed, and is to be tried again
		s.Ended(id)
		s.Learned(orderedTasks(d.Input)[0])
	case "early":
		delete(s.out, id)
		s.Early(id)
	case "doubt":
		delete(s.out, id)
		s.Doubt(id)
	case "removed":
		s.Removed(id)
	case "look":
		s.TimeToLook(key, s.known)
	case "failed":
		s.NotFound(key)
	case "found":
		s.Found(key, foundTasks(d.Input, key), d.HasArg("full"), s.now, s.known)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return b.String() + s.describe()
}

func (s *orderScene) known(id string) bool { return s.out[id] }

func orderedTasks(input string) (tasks []store.Entry) {
	for _, field := range strings.Fields(input) {
		rest, key, _ := strings.Cut(field, "/")
		tasks = append(tasks, orderedTask(rest, key))
	}
	return tasks
}

func orderedTask(text, key string) store.Entry {
	id, due, _ := strings.Cut(text, "@")
	e := store.Entry{ID: id, Traits: &store.Traits{OrderingKey: key}}
	fmt.Sscan(due, &e.Due)
	return e
}

// foundTasks reads what the store says: one that is held is at "held".
func foundTasks(input, key string) (found []store.Ordered) {
	for _, field := range strings.Fields(input) {
		found = append(found, store.Ordered{Entry: orderedTask(field, key), Held: strings.HasSuffix(field, "@held")})
	}
	return found
}

// describe takes what was decided, as a shard does.
func (s *orderScene) describe() string {
	var b strings.Builder
	for !s.Idle() {
		s.Settle()
		for _, e := range s.orderKeys.Out {
			if !s.out[e.ID] {
				s.out[e.ID] = true
				fmt.Fprintf(&b, "%s goes\n", e.ID)
			}
		}
		for _, e := range s.Later {
			fmt.Fprintf(&b, "%s is later\n", e.ID)
		}
		if s.From != 0 {
			fmt.Fprintf(&b, "others are due from %d on\n", s.From)
		}
		for _, key := range s.Asks {
			fmt.Fprintf(&b, "asks for %s\n", key)
		}
		for _, l := range s.Watch {
			fmt.Fprintf(&b, "%s is looked at after %d ms\n", l.Key, l.LookAt(s.now)-s.now)
		}
		s.orderKeys.Out, s.Later, s.From, s.Asks, s.Watch = nil, nil, 0, nil, nil
	}
	var keys []string
	for key := range s.ByKey {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	waiting := 0
	for _, key := range keys {
		l := s.ByKey[key]
		fmt.Fprintf(&b, "%s: head=%s", key, l.head)
		for _, e := range l.parked {
			fmt.Fprintf(&b, " %s", e.ID)
		}
		if l.more {
			b.WriteString(" and more")
		}
		b.WriteString("\n")
		waiting += len(l.parked)
	}
	if waiting != len(s.Waiting) {
		fmt.Fprintf(&b, "%d wait, and %d are known to\n", waiting, len(s.Waiting))
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}
