package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protojson"
)

const usage = `usage: release licenses BINARY|FOLDER             the table of docs/licenses.md, of a binary or of a program's folder
       release sbom VERSION BINARY                a bill of materials, CycloneDX in JSON
       release provenance VERSION COMMIT FILE...  an in-toto statement of FILEs with SLSA provenance
`

func main() {
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flag.Parse()
	if err := run(os.Stdout, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "licenses":
		read := readProduct
		if f, err := os.Stat(args[1]); err == nil && f.IsDir() {
			read = planProduct
		}
		p, err := read(args[1])
		if err != nil {
			return err
		}
		return writeLicenses(out, p)
	case len(args) == 3 && args[0] == "sbom":
		p, err := readProduct(args[2])
		if err != nil {
			return err
		}
		return writeSBOM(out, args[1], p)
	case len(args) > 3 && args[0] == "provenance":
		return writeProvenance(out, args[1], args[2], args[3:])
	}
	return errors.New("one of licenses, sbom and provenance is asked for, with its arguments: --help shows them")
}

// writeProvenance writes what was built of what, and with which settings.
func writeProvenance(out io.Writer, version, commit string, files []string) error {
	s, err := statement(version, commit, files)
	if err != nil {
		return err
	}
	text, err := protojson.Marshal(s)
	if err != nil {
		return err
	}
	// protojson puts in white space at random; a release made again must be the same.
	var same any
	if err := json.Unmarshal(text, &same); err != nil {
		return err
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(same)
}

// base is the name under which a file is released.
func base(file string) string { return filepath.Base(file) }
