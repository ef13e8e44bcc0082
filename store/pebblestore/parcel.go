package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ddq-io/ddq/store"
)

const (
	parcelSent  = 1 // somebody sent it
	parcelEnded = 2 // the end of a task left it
	parcelSaid  = 3 // an ack or a nack that says something left it
)

// appendParcel appends the stored form of a parcel, whose number is in its key.
func appendParcel(b []byte, p *store.Parcel) []byte {
	if p.Ended != nil {
		form := byte(parcelEnded)
		if len(p.Ended.Say) > 0 {
			form = parcelSaid
		}
		b = appendParcelHead(append(b, form), p)
		if form == parcelSaid {
			b = appendText(b, string(p.Ended.Say))
		}
		return appendEnded(b, p.Ended)
	}
	b = appendParcelHead(append(b, parcelSent), p)
	b = appendText(b, p.Topic)
	return append(b, p.Body...)
}

func appendParcelHead(b []byte, p *store.Parcel) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(p.At))
	return appendText(b, string(p.To))
}

func appendEnded(b []byte, e *store.Ended) []byte {
	b = append(b, byte(e.Kind), byte(e.Reason))
	b = binary.AppendUvarint(b, uint64(e.Attempt))
	b = binary.AppendVarint(b, int64(e.Due))
	b = binary.AppendVarint(b, int64(e.Started))
	b = appendText(b, e.ID)
	b = appendText(b, e.Worker)
	b = appendText(b, e.Error)
	return append(b, e.Result...)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// decodeParcel reads a parcel. Nothing of it is a part of b.
func decodeParcel(b []byte) (p store.Parcel, err error) {
	in := input{b: b}
	form := in.byte()
	p.At = store.Millis(in.uint64())
	p.To = store.CellID(in.text())
	switch form {
	case parcelSent:
		p.Topic = in.text()
		p.Body = bytes.Clone(in.b)
	case parcelEnded:
		p.Ended = in.ended()
	case parcelSaid:
		said := []byte(in.text())
		p.Ended = in.ended()
		p.Ended.Say = said
	default:
		return store.Parcel{}, fmt.Errorf("decode parcel: unknown form %d", form)
	}
	if in.short {
		return store.Parcel{}, errors.New("decode parcel: malformed")
	}
	return p, nil
}

func (in *input) ended() *store.Ended {
	e := &store.Ended{Kind: store.ChangeKind(in.byte()), Reason: store.Reason(in.byte())}
	e.Attempt = int(in.uvarint())
	e.Due, e.Started = store.Millis(in.varint()), store.Millis(in.varint())
	e.ID, e.Worker, e.Error = in.text(), in.text(), in.text()
	if len(in.b) > 0 {
		e.Result = bytes.Clone(in.b)
	}
	return e
}

func appendParcelKey(b []byte, number uint32, t table, n int64) []byte {
	return binary.BigEndian.AppendUint64(appendPrefix(b, number, t), uint64(n))
}
