//go:build !linux

package faults

import (
	"context"

	"github.com/ddq-io/ddq/bench/faults/stand"
)

// alone is not possible here.
func alone(context.Context, todo) (Line, error) { return Line{}, stand.ErrPrivilege }
