package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"os"
	"slices"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	buildType = "https://github.com/ddq-io/ddq/blob/main/docs/verifying.md"
	builder   = "https://github.com/ddq-io/ddq/blob/main/tools/release.sh"
	source    = "git+https://github.com/ddq-io/ddq"
)

// statement says of files that they were built from a commit, and how: SLSA provenance, version
// 1. Whoever signs it vouches for it; it names no service that built them.
func statement(version, commit string, files []string) (*intoto.Statement, error) {
	s := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: "https://slsa.dev/provenance/v1"}
	settings := map[string]any{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		s.Subject = append(s.Subject, &intoto.ResourceDescriptor{Name: base(file), Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
		if info, err := buildinfo.ReadFile(file); err == nil {
			settings[base(file)] = buildSettings(info)
		}
	}
	parameters, err := structpb.NewStruct(map[string]any{"version": version, "settings": settings})
	if err != nil {
		return nil, err
	}
	p := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: buildType, ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{{Uri: source, Digest: map[string]string{"gitCommit": commit}}},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: builder}},
	}
	text, err := protojson.Marshal(p)
	if err != nil {
		return nil, err
	}
	s.Predicate = new(structpb.Struct)
	if err := protojson.Unmarshal(text, s.Predicate); err != nil {
		return nil, err
	}
	return s, s.Validate()
}

// buildSettings are the version of Go and the flags that a binary was built with.
func buildSettings(info *buildinfo.BuildInfo) []any {
	all := []any{info.GoVersion}
	for _, set := range info.Settings {
		all = append(all, set.Key+"="+set.Value)
	}
	return slices.DeleteFunc(all, func(v any) bool { return strings.HasPrefix(v.(string), "vcs") })
}
