//go:build !linux

package faults

import "context"

// alone is not possible here.
func alone(context.Context, todo) (Line, error) { return Line{}, ErrPrivilege }
