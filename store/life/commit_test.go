package life_test

import (
	"testing"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

func TestPut(t *testing.T) {
	for _, c := range []struct {
		wanted, version int64
		want            store.Status
	}{
		{0, 0, store.OK}, {3, 3, store.OK}, {store.AnyVersion, 0, store.OK}, {store.AnyVersion, 9, store.OK},
		{0, 1, store.Stale}, {1, 0, store.Stale}, {3, 4, store.Stale}, {4, 3, store.Stale},
	} {
		if got := life.Put(&store.Put{If: c.wanted}, c.version); got != c.want {
			t.Errorf("put of version %d on %d is %v, want %v", c.wanted, c.version, got, c.want)
		}
	}
}

func TestTakesSealed(t *testing.T) {
	put := func(id store.CellID) store.Put { return store.Put{Cell: store.Cell{ID: id, Body: []byte("x")}} }
	there := func(id store.CellID) bool { return id.Key() == "there" }
	add := []*store.Task{{ID: "a"}}
	for name, c := range map[string]struct {
		commit store.Commit
		want   bool
	}{
		"nothing":                            {store.Commit{}, true},
		"a change and tasks":                 {store.Commit{Puts: []store.Put{put("sthere")}, Adds: add}, true},
		"a deletion and tasks":               {store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "sthere"}}}, Adds: add}, true},
		"tasks of nothing":                   {store.Commit{Adds: add}, false},
		"tasks of a new cell":                {store.Commit{Puts: []store.Put{put("tnew")}, Adds: add}, false},
		"a new cell that does not stay":      {store.Commit{Puts: []store.Put{put("fnew")}}, true},
		"a new schedule":                     {store.Commit{Puts: []store.Put{put("snew")}}, false},
		"a new workflow beside a change":     {store.Commit{Puts: []store.Put{put("sthere"), put("wnew")}}, false},
		"a child beside a change":            {store.Commit{Puts: []store.Put{put("sthere"), put("wnew/child")}, Adds: add}, true},
		"tasks that another shard sends":     {store.Commit{Puts: []store.Put{put("tthere")}, Adds: add}, false},
		"they and a change":                  {store.Commit{Puts: []store.Put{put("tthere"), put("sthere")}, Adds: add}, false},
		"a child that another shard sends":   {store.Commit{Puts: []store.Put{put("tthere"), put("wnew/child")}}, false},
		"what it sends to a cell":            {store.Commit{Puts: []store.Put{put("tthere")}, Send: []store.Parcel{{To: "wthere"}}}, true},
		"the end of a tally":                 {store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "tthere"}}}}, true},
		"the deletion of one that is absent": {store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "snew"}}}}, true},
	} {
		if got := life.TakesSealed(&c.commit, there); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestBringsWork(t *testing.T) {
	put := func(version int64) []store.Put {
		return []store.Put{{Cell: store.Cell{ID: "sa", Body: []byte("x")}, If: version}}
	}
	add := []*store.Task{{ID: "a"}}
	for name, c := range map[string]struct {
		commit store.Commit
		want   bool
	}{
		"nothing":                        {store.Commit{}, false},
		"a new cell":                     {store.Commit{Puts: put(0)}, true},
		"a cell, whatever there is":      {store.Commit{Puts: put(store.AnyVersion)}, true},
		"a cell that is there":           {store.Commit{Puts: put(3)}, false},
		"the deletion of a cell":         {store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "sa"}}}}, false},
		"tasks":                          {store.Commit{Puts: put(3), Adds: add}, true},
		"a parcel":                       {store.Commit{Send: []store.Parcel{{To: "sa"}}}, true},
		"the end of a task and the next": {store.Commit{Puts: put(3), Adds: add, Take: 7}, false},
		"an ack and the next":            {store.Commit{Adds: add, Acks: []store.Ack{{ID: "b"}}}, false},
		"tasks under a hold":             {store.Commit{Adds: add, Under: []store.Holder{{ID: "b"}}}, false},
		"a removal":                      {store.Commit{Removes: []store.Remove{{ID: "b"}}, Cancels: []string{"c"}}, false},
		"parcels that have arrived":      {store.Commit{Drop: []int64{1}}, false},
	} {
		if got := life.BringsWork(&c.commit); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
