package result

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Results collects lines and writes them: JSON at once, tables at the end.
type Results struct {
	Out    io.Writer
	Format string // table or json
	Chart  string // file of the lateness distribution, "" for none
	lines  []Line
}

// Validate returns what is wrong with the format, nil when nothing is.
func (r *Results) Validate() error {
	if r.Format != "table" && r.Format != "json" {
		return fmt.Errorf("--output is %q, want table or json", r.Format)
	}
	return nil
}

// Add takes one line.
func (r *Results) Add(l Line) error {
	r.lines = append(r.lines, l)
	if r.Format == "json" {
		return WriteJSON(r.Out, l)
	}
	return nil
}

// Close writes what is left to write.
func (r *Results) Close() error {
	if r.Format != "json" && len(r.lines) > 0 {
		if err := WriteTables(r.Out, r.lines); err != nil {
			return err
		}
	}
	if r.Chart == "" || len(r.lines) == 0 {
		return nil
	}
	return WriteChart(r.Chart, r.lines)
}

// Bind makes flags of how results are written.
func (r *Results) Bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&r.Format, "output", "o", "table", "table or json")
	f.StringVar(&r.Chart, "svg", "", "write the lateness distribution to this SVG file")
}
