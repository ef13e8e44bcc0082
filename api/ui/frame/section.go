package frame

import (
	"context"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Section is a group of pages, and of actions that they offer. Keys are paths under Prefix.
type Section struct {
	Pages   map[string]Maker  // which a link leads to
	Actions map[string]Action // of forms that lead to another page
	Answers map[string]Maker  // of forms that are answered with a page, which is shown once
	Files   map[string]Finder // which a link saves
	Close   func()            // ends what the section has begun; nil: there is nothing
}

// Maker makes a page; the query, or the form, says of what.
type Maker func(ctx context.Context, query url.Values) (View, error)

// open serves a section.
func (f *Frame) open(s Section) {
	for path, make := range s.Pages {
		f.pages[strings.TrimSuffix(path, "{$}")] = make
		f.mux.Handle("GET "+Prefix+path, f.page(make))
	}
	for path, make := range s.Answers {
		f.mux.Handle("POST "+Prefix+path, f.answer(make))
	}
	for path, find := range s.Files {
		f.mux.Handle("GET "+Prefix+path, f.file(find))
	}
	for path, do := range s.Actions {
		f.mux.Handle("POST "+Prefix+path, f.act(do))
	}
	if s.Close != nil {
		f.closers = append(f.closers, s.Close)
	}
}

// Required is a field of the query without which there is no page.
func Required(query url.Values, field string) (string, error) {
	if v := query.Get(field); v != "" {
		return v, nil
	}
	return "", status.Errorf(codes.InvalidArgument, "%s is required", field)
}

// Server is how the node that answers is, and the store's time.
func Server(ctx context.Context, admin ddqv1.AdminServiceClient) (*ddqv1.DescribeServerResponse, time.Time, error) {
	s, err := admin.DescribeServer(ctx, &ddqv1.DescribeServerRequest{})
	return s, time.UnixMilli(s.GetStoreNowUnixMs()), err
}
