package node

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// version may be set at link time: -ldflags "-X github.com/ddq-io/ddq/cmd/node.version=v1.2.3". Without
// it the version is what the Go toolchain stamped.
var version string

// Build says what this binary was made from.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	System  string `json:"os_arch"`
}

// ReadBuild reads what the toolchain stamped.
func ReadBuild() Build {
	b := Build{Version: version, Commit: "unknown", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
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
func (b Build) register(reg prometheus.Registerer) error {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "ddq_build_info",
		Help:        "What the server was built from; always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go": b.Go},
	})
	info.Set(1)
	return reg.Register(info)
}
