package workflow

import (
	"bytes"
	"maps"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/store"
)

// After is what is stored of a workflow once the commit of a step is made, which before was of and
// which w came out of. By is the server that has made it, see store.Commit. Only Workflow and a
// further step may be asked of it.
func After(before *Stored, w *Workflow, c *store.Commit, by uint64) *Stored {
	put := &c.Puts[0]
	s := &Stored{Cell: put.Cell, w: w, by: by, old: before.old}
	s.Cell.Version = put.Next(put.If)
	if pages(len(w.Units)) == 0 && len(before.old) == 0 {
		return s
	}
	s.old = maps.Clone(before.old)
	mine := pagePart + strconv.FormatUint(w.Life, 36) + "/" // a child that begins has pages, too
	for i := range c.Puts {
		switch p := &c.Puts[i]; {
		case !strings.HasPrefix(string(p.ID), mine):
		case len(p.Body) == 0:
			delete(s.old, p.ID)
		default:
			s.old[p.ID] = p.Body
		}
	}
	return s
}

// Is reports whether s is what a header says that was read from a server. Its version alone would not
// do: servers of before had those of each workflow begin at 1. What the header says includes the life.
func (s *Stored) Is(header store.Cell, server uint64) bool {
	return s.by == server && s.Cell.Version == header.Version && bytes.Equal(s.Cell.Body, header.Body)
}

// Workflow is what s is of. It is not to be changed.
func (s *Stored) Workflow() *Workflow { return s.w }

// Size is about how many bytes s has in memory.
func (s *Stored) Size() int {
	n := 1<<10 + 2*len(s.Cell.Body) + 256*len(s.w.Units) + 512*len(s.w.of().steps)
	for _, page := range s.old {
		n += 2 * len(page)
	}
	for i := range s.w.Grown {
		n += 2 * s.w.Grown[i].Size
	}
	return n
}
