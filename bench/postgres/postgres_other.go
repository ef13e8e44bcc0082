//go:build !linux

package postgres

import "errors"

// Server is a PostgreSQL server: on Linux only.
type Server struct{}

// Start fails.
func Start() (*Server, error) { return nil, errors.ErrUnsupported }

// URL is no address.
func (*Server) URL(string) string { return "" }

// Bin is nowhere.
func (*Server) Bin() string { return "" }

// Stop does nothing.
func (*Server) Stop() error { return nil }
