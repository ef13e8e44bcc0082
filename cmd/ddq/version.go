package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
)

// version may be set at link time: -ldflags "-X main.version=v1.2.3". Without
// it the version is what the Go toolchain stamped.
var version string

// build says what this binary was made from.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	System  string `json:"os_arch"`
}

func readBuild() build {
	b := build{Version: version, Commit: "unknown", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	b.Commit += dirty
	return b
}

// register exposes the build as a metric of constant value 1.
func (b build) register(reg prometheus.Registerer) error {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "ddq_build_info",
		Help:        "What the server was built from; always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go": b.Go},
	})
	info.Set(1)
	return reg.Register(info)
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			if c.output == formatJSON {
				return c.writeJSON(b)
			}
			_, err := fmt.Fprintf(c.out, "ddq %s\ncommit %s\n%s %s\n", b.Version, b.Commit, b.Go, b.System)
			return err
		},
	}
}
