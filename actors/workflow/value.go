package workflow

import (
	"bytes"
	"slices"
)

// value keeps bytes: those of a long one in a part. What is too large for the workflow is
// not kept, and fails it.
func (p *transition) value(b []byte) Value {
	if len(b) <= inline {
		return Value{Bytes: bytes.Clone(b), Size: len(b)} // else it would keep the parcels that it came with
	}
	if p.w.Bytes+int64(len(b)) > MaxCells {
		p.fail(CauseTooLarge, "")
		return Value{}
	}
	return Value{Part: p.part(b, false), Size: len(b)}
}

func (p *transition) part(b []byte, growth bool) int64 {
	n := p.w.number()
	p.w.Bytes += int64(len(b))
	p.out.Parts = append(p.out.Parts, Part{Number: n, Growth: growth, Body: b})
	return n
}

// forget deletes the part of a value.
func (p *transition) forget(v Value) {
	if v.Part != 0 {
		p.drop(Dropped{Number: v.Part}, v.Size)
	}
}

// drop has a part deleted, in this step or a later one.
func (p *transition) drop(part Dropped, size int) {
	p.w.Bytes -= int64(size)
	if i := slices.IndexFunc(p.out.Parts, func(new Part) bool { return new.Number == part.Number }); i >= 0 {
		p.out.Parts = slices.Delete(p.out.Parts, i, i+1)
		return
	}
	p.w.Trash = append(p.w.Trash, part)
}

// sweep deletes parts that nothing refers to, as many as fit into one step.
func (p *transition) sweep() {
	n := min(len(p.w.Trash), dropsAStep)
	p.out.Drop, p.w.Trash = p.w.Trash[:n:n], p.w.Trash[n:]
	if len(p.w.Trash) > 0 {
		p.out.More, p.out.Wake = true, p.Now
	}
}
