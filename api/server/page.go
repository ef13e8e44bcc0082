package server

import (
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
)

const (
	defaultPage = 100
	maxPage     = 1000
	pageStep    = 100 // tasks asked for at a time

	// pageBytes is what a reply with tasks may take up: clients refuse messages
	// over 4 MiB unless told otherwise. A single larger task goes out alone.
	pageBytes = 3 << 20
)

// pageSize is the size of a page as asked for, within bounds.
func pageSize(asked int32) (int, *problem.Error) {
	switch {
	case asked < 0:
		return 0, wire.Invalid("OUT_OF_RANGE_FIELD", "page_size", "must not be negative")
	case asked == 0:
		return defaultPage, nil
	}
	return min(int(asked), maxPage), nil
}

// page gathers one page of tasks from list, in steps, so that neither the reply
// nor what is read for it grows with the payloads. It may hold fewer than asked.
func page(asked int32, token string, list func(size int, token string) ([]service.Found, string, error)) ([]*ddqv1.Task, string, error) {
	size, e := pageSize(asked)
	if e != nil {
		return nil, "", e
	}
	var out []*ddqv1.Task
	bytes, step := 0, pageStep
	for len(out) < size {
		ask := min(step, size-len(out))
		tasks, next, err := list(ask, token)
		if err != nil {
			return nil, "", err
		}
		fit := fitting(tasks, foundSize, pageBytes-bytes)
		if fit < len(tasks) && fit == 0 && len(out) > 0 {
			return out, token, nil
		}
		if fit < len(tasks) && ask > max(fit, 1) {
			step = max(fit, 1) // the cursor is behind all of them: read only these again
			continue
		}
		for i := range tasks {
			out = append(out, foundWire(&tasks[i]))
			bytes += foundSize(&tasks[i])
		}
		if token = next; next == "" || len(tasks) < ask || bytes >= pageBytes {
			break
		}
	}
	return out, token, nil
}

func foundSize(f *service.Found) int { return wire.TaskSize(&f.Task) }

// fitting returns how many of items have room for their sizes in bytes.
func fitting[T any](items []T, size func(*T) int, bytes int) int {
	for i := range items {
		if bytes -= size(&items[i]); bytes < 0 {
			return i
		}
	}
	return len(items)
}
