package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

const licensesHead = `# Licences

What ddq is built from, beside Go itself (BSD-3-Clause), as its packages say. ` + "`make generate`" + ` writes this page, and fails on a module without a licence that is known and permissive.

`

func writeLicenses(out io.Writer, p *product) error {
	if _, err := io.WriteString(out, licensesHead); err != nil {
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintf(t, "| module\t| licence\t|\n| ---\t| ---\t|\n")
	for _, m := range p.parts {
		fmt.Fprintf(t, "| %s\t| %s\t|\n", m.path, strings.Join(m.licenses, ", "))
	}
	return t.Flush()
}
