package redisstore

import (
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// Commits that share a cell or task, or that a full server treats differently, are made by
// different scripts, and send in their order.
func TestCommitChunks(t *testing.T) {
	put := func(id store.CellID, version int64) store.Commit {
		return store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: id, Body: []byte("x")}, If: version}}}
	}
	sends := func(c store.Commit) store.Commit {
		c.Send = []store.Parcel{{To: "sx"}}
		return c
	}
	ack := func(id string) store.Commit { return store.Commit{Acks: []store.Ack{{ID: id}}} }
	for name, c := range map[string]struct {
		commits []store.Commit
		want    string
	}{
		"of different cells":              {[]store.Commit{put("sa", 0), put("sb", 0), put("sc", 0)}, "[[0 1 2]]"},
		"of one cell":                     {[]store.Commit{put("sa", 0), put("sb", 0), put("sa", 0)}, "[[0 1] [2]]"},
		"that make a cell and change it":  {[]store.Commit{put("sa", 0), put("sa", 1), put("sb", 1)}, "[[0] [1 2]]"},
		"of one task":                     {[]store.Commit{ack("a"), {Removes: []store.Remove{{ID: "a"}}}, ack("b")}, "[[0 2] [1]]"},
		"of a cell and a task of a name":  {[]store.Commit{put("sa", 1), ack("sa")}, "[[0 1]]"},
		"that send, in their order":       {[]store.Commit{sends(put("sa", 0)), sends(put("sa", 0)), sends(put("sb", 0)), put("sc", 0)}, "[[0 3] [1 2]]"},
		"of work and not, work before it": {[]store.Commit{put("sa", 1), put("sb", 0), put("sc", 1)}, "[[1] [0 2]]"},
	} {
		if got := fmt.Sprint(commitChunks(c.commits)); got != c.want {
			t.Errorf("commits %s: %s, want %s", name, got, c.want)
		}
	}
}

func TestCommitsAreCutBySize(t *testing.T) {
	var commits []store.Commit
	for i := range 10 {
		commits = append(commits, store.Commit{Drop: make([]int64, 300), Puts: []store.Put{{Cell: store.Cell{ID: store.CellID(fmt.Sprint("s", i))}}}})
	}
	if got, want := fmt.Sprint(commitChunks(commits)), "[[0 1 2] [3 4 5] [6 7 8] [9]]"; got != want {
		t.Errorf("chunks are %s, want %s", got, want)
	}
	if _, err := commitArgs(nil, []store.Commit{{}}, []int{0}, countNot, 0); err != nil {
		t.Errorf("empty commit: %v", err)
	}
}
