package schedules

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

const (
	importBatch  = 1000    // recipients of one call
	importAtOnce = 8       // calls in flight
	importChunk  = 500_000 // recipients that are put in order at a time: neighbours share a write of the server
)

// importFlags say how a file is imported.
type importFlags struct {
	format  string
	badFile string
	replace bool
	strict  bool
}

func (a audienceCommands) importFile() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import NAME FILE",
		Short: "Put the recipients of a file, CSV with a header or one JSON object a line",
		Long: `Put the recipients of a file, or of stdin for -: CSV whose first line has the names of the
columns (id, zone, disabled, quiet_from, quiet_to, on, off, data; kinds are parted by
semicolons), or JSON objects with the same names, one a line. What is said twice of a recipient
counts as the later line has it. The same file again changes nothing.

Lines that are refused are left out, counted, and written to a file with the reason.`,
		Example: `  ddq audience import users users.csv
  ddq audience import users users.ndjson --replace`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return a.runImport(ctx, s, args[0], args[1], &f)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.format, "format", "", "csv or ndjson (default by the end of the file's name)")
	fs.StringVar(&f.badFile, "bad-file", "", "where lines that are refused are written (default the file's name and .bad)")
	fs.BoolVar(&f.replace, "replace", false, "remove the recipients that the file has not, once all of it is put")
	fs.BoolVar(&f.strict, "strict", false, "stop at the first line that is refused; with --replace nothing is removed then")
	return cmd
}

// ImportResult is what an import came to.
type ImportResult struct {
	Audience string `json:"audience"`
	Added    int64  `json:"added"`
	Changed  int64  `json:"changed"`
	Same     int64  `json:"same"`
	Removed  int64  `json:"removed"`
	Bad      int64  `json:"bad"`
	BadFile  string `json:"bad_file,omitempty"`
}

// importer is an import on its way.
type importer struct {
	importFlags
	client     *client.Client
	audience   string
	generation int64

	mu     sync.Mutex
	result ImportResult // guarded by mu
	bad    *bufio.Writer
	file   *os.File
}

func (a audienceCommands) runImport(ctx context.Context, s *client.Client, audience, name string, f *importFlags) error {
	in, err := a.openImport(name, f)
	if err != nil {
		return err
	}
	defer in.Close()
	lines, err := newRecipientReader(f.format, in)
	if err != nil {
		return err
	}
	i := &importer{importFlags: *f, client: s, audience: audience, result: ImportResult{Audience: audience}}
	begun := time.Now()
	err = i.run(ctx, lines, a.Progress(-1, "recipients"))
	if err = errors.Join(err, i.closeBad()); err != nil {
		return err
	}
	r := i.result
	text := ""
	if r.Bad > 0 {
		text = fmt.Sprintf("; %d lines were refused, see %s", r.Bad, r.BadFile)
	}
	return a.Say(r, "audience %s: %d added, %d changed, %d as they were, %d removed (%s)%s", audience, r.Added, r.Changed, r.Same, r.Removed,
		perSecond(r.Added+r.Changed+r.Same, time.Since(begun)), text)
}

// openImport opens the file, and decides what is not said.
func (a audienceCommands) openImport(name string, f *importFlags) (io.ReadCloser, error) {
	if f.format == "" {
		f.format = "csv"
		if end := filepath.Ext(name); end == ".ndjson" || end == ".jsonl" || end == ".json" {
			f.format = "ndjson"
		}
	}
	if name == "-" {
		f.badFile = cmp.Or(f.badFile, "recipients.bad")
		return io.NopCloser(a.In), nil
	}
	f.badFile = cmp.Or(f.badFile, name+".bad")
	return os.Open(name)
}

func (i *importer) run(ctx context.Context, lines recipientReader, p *terminal.Progress) (err error) {
	defer p.Finish()
	if i.replace {
		if i.generation, err = i.client.BeginReplacement(ctx, i.audience); err != nil {
			return err
		}
	}
	for done := false; !done; {
		var chunk []recipientLine
		if chunk, done, err = i.read(lines); err != nil {
			return err
		}
		if err := i.putAll(ctx, chunk, p); err != nil {
			return err
		}
	}
	if !i.replace {
		return nil
	}
	i.result.Removed, err = i.client.EndReplacement(ctx, i.audience, i.generation)
	return err
}

// read returns the next recipients in the order in which they lie, the last of each.
func (i *importer) read(lines recipientReader) (chunk []recipientLine, done bool, err error) {
	known := make(map[string]int)
	for len(chunk) < importChunk && !done {
		line, err := lines.next()
		var bad *badLine
		switch {
		case errors.As(err, &bad):
			if err := i.refuse(bad); err != nil {
				return nil, false, err
			}
			continue
		case errors.Is(err, io.EOF):
			done = true
			continue
		case err != nil:
			return nil, false, err
		}
		if at, there := known[line.ID]; there {
			chunk[at] = line
			continue
		}
		known[line.ID] = len(chunk)
		chunk = append(chunk, line)
	}
	slices.SortFunc(chunk, func(a, b recipientLine) int {
		return cmp.Compare(xxhash.Sum64String(a.ID), xxhash.Sum64String(b.ID))
	})
	return chunk, done, nil
}

func (i *importer) putAll(ctx context.Context, chunk []recipientLine, p *terminal.Progress) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(importAtOnce)
	for batch := range slices.Chunk(chunk, importBatch) {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { return i.put(ctx, batch, p) })
	}
	return g.Wait()
}

func (i *importer) put(ctx context.Context, batch []recipientLine, p *terminal.Progress) error {
	recipients := make([]client.Recipient, len(batch))
	for n := range batch {
		recipients[n] = batch[n].Recipient
	}
	results, err := i.client.PutRecipients(ctx, i.audience, i.generation, recipients)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, r := range results {
		if r.Err != nil {
			if err := i.refuseLocked(&badLine{batch[n].number, r.Err.Error()}); err != nil {
				return err
			}
			continue
		}
		switch r.Outcome {
		case client.RecipientAdded:
			i.result.Added++
		case client.RecipientChanged:
			i.result.Changed++
		default:
			i.result.Same++
		}
	}
	p.Set(int(i.result.Added + i.result.Changed + i.result.Same))
	return nil
}

func (i *importer) refuse(bad *badLine) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.refuseLocked(bad)
}

// refuseLocked counts a line that is left out. The caller holds mu.
func (i *importer) refuseLocked(bad *badLine) (err error) {
	if i.strict {
		return bad
	}
	if i.bad == nil {
		if i.file, err = os.OpenFile(i.badFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			return err
		}
		i.bad, i.result.BadFile = bufio.NewWriter(i.file), i.badFile
	}
	i.result.Bad++
	_, err = fmt.Fprintln(i.bad, bad)
	return err
}

func (i *importer) closeBad() error {
	if i.bad == nil {
		return nil
	}
	return errors.Join(i.bad.Flush(), i.file.Close())
}
