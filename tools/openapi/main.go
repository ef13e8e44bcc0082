// Command openapi writes the OpenAPI 3.1 document of the REST API: what the protos say,
// made by protoc-gen-openapiv3, in the spelling that the server uses, with an overlay for
// what the protos cannot say. make generate runs it:
//
//	openapi IMAGE OVERLAY OUT
//
// IMAGE is what buf build makes of the protos. An action of the overlay that matches
// nothing fails the run, so that what has moved in the generated part is noticed.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pb33f/libopenapi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// sources are the protos whose services have routes.
var sources = []string{"ddq/v1/access.proto", "ddq/v1/admin.proto", "ddq/v1/audience.proto", "ddq/v1/audit.proto", "ddq/v1/operation.proto", "ddq/v1/queue.proto", "ddq/v1/schedule.proto", "ddq/v1/workflow.proto"}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: openapi IMAGE OVERLAY OUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(image, overlay, out string) error {
	set, err := readImage(image)
	if err != nil {
		return err
	}
	text, err := generate(set)
	if err != nil {
		return err
	}
	var doc document
	if err := json.Unmarshal(text, &doc.root); err != nil {
		return err
	}
	doc.tidy(messagesOf(set))
	if text, err = json.Marshal(doc.root); err != nil {
		return err
	}
	if text, err = overlaid(text, overlay); err != nil {
		return err
	}
	return os.WriteFile(out, text, 0o644)
}

// readImage reads the protos, with fields that are spelled in JSON as in the protos.
func readImage(name string) (*descriptorpb.FileDescriptorSet, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	set := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(text, set); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	for _, file := range set.File {
		for _, message := range file.MessageType {
			spellAsInProto(message)
		}
	}
	return set, nil
}

func spellAsInProto(m *descriptorpb.DescriptorProto) {
	for _, field := range m.Field {
		field.JsonName = proto.String(field.GetName())
	}
	for _, nested := range m.NestedType {
		spellAsInProto(nested)
	}
}

// generate has the plugin make a document of each source, and merges them.
func generate(set *descriptorpb.FileDescriptorSet) ([]byte, error) {
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: sources, ProtoFile: set.File, Parameter: proto.String("disable_default_errors"),
	})
	if err != nil {
		return nil, err
	}
	answer, err := tool(request, "protoc-gen-openapiv3")
	if err != nil {
		return nil, err
	}
	var made pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &made); err != nil {
		return nil, err
	}
	if made.GetError() != "" {
		return nil, errors.New(made.GetError())
	}
	dir, err := os.MkdirTemp("", "openapi")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	merge := []string{"openapiv3-merge"}
	for _, file := range made.File {
		name := filepath.Join(dir, filepath.Base(file.GetName()))
		if err := os.WriteFile(name, []byte(file.GetContent()), 0o600); err != nil {
			return nil, err
		}
		merge = append(merge, name)
	}
	return tool(nil, merge...)
}

// tool runs a tool of this module.
func tool(in []byte, args ...string) ([]byte, error) {
	cmd := exec.Command("go", append([]string{"tool"}, args...)...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	return out, nil
}

// messagesOf are all messages by their full names.
func messagesOf(set *descriptorpb.FileDescriptorSet) map[string]*descriptorpb.DescriptorProto {
	all := make(map[string]*descriptorpb.DescriptorProto)
	for _, file := range set.File {
		for _, message := range file.MessageType {
			all[file.GetPackage()+"."+message.GetName()] = message
		}
	}
	return all
}

// overlaid applies an overlay of which every action has to match something.
func overlaid(doc []byte, name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if text, err = asJSON(text); err != nil { // without aliases, which overlays do not follow
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	result, err := libopenapi.ApplyOverlayFromBytesToSpecBytes(doc, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var missed []string
	for _, warning := range result.Warnings {
		missed = append(missed, warning.Target+": "+warning.Message)
	}
	if len(missed) > 0 {
		return nil, fmt.Errorf("%s: %s", name, strings.Join(missed, "; "))
	}
	return asJSON(result.Bytes)
}
