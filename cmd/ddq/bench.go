package main

import (
	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench"
)

func (c *cli) benchCommand() *cobra.Command { return bench.NewCommand() }
