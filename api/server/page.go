package server

import (
	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/ddqv1"
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
func pageSize(asked int32) (int, *actors.Error) {
	switch {
	case asked < 0:
		return 0, invalid("OUT_OF_RANGE_FIELD", "page_size", "must not be negative")
	case asked == 0:
		return defaultPage, nil
	}
	return min(int(asked), maxPage), nil
}

// page gathers one page of tasks from list, in steps, so that neither the reply
// nor what is read for it grows with the payloads. It may hold fewer than asked.
func page(asked int32, token string, list func(size int, token string) ([]actors.Found, string, error)) ([]*ddqv1.Task, string, error) {
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
		fit := fittingPage(tasks, &bytes)
		switch {
		case fit == len(tasks):
		case fit > 0:
			step = fit // the cursor counts whole steps: read only these again
			continue
		case len(out) > 0:
			return out, token, nil
		default:
			step = 1
			if ask > 1 {
				continue
			}
		}
		for i := range tasks {
			out = append(out, foundWire(&tasks[i]))
		}
		if token = next; next == "" || len(tasks) < ask || bytes >= pageBytes {
			break
		}
	}
	return out, token, nil
}

// fittingPage returns how many tasks the page has room for, and when that is
// all of them counts them into bytes.
func fittingPage(tasks []actors.Found, bytes *int) int {
	sum := *bytes
	for i := range tasks {
		if sum += taskSize(&tasks[i].Task); sum > pageBytes {
			if i == 0 && len(tasks) == 1 && *bytes == 0 {
				break
			}
			return i
		}
	}
	*bytes = sum
	return len(tasks)
}
