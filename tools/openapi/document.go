package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pb33f/go-yaml"
	"google.golang.org/protobuf/types/descriptorpb"
)

type object = map[string]any

// document is an OpenAPI document as the generator made it.
type document struct{ root object }

const (
	schemas  = "#/components/schemas/"
	ownNames = "ddq.v1."
)

// tidy makes of what the generator wrote what somebody would write by hand: bodies have
// names, ids of paths are called id, and of fields that exclude each other that is said in
// one line.
func (d *document) tidy(messages map[string]*descriptorpb.DescriptorProto) {
	components := at(d.root, "components", "schemas")
	paths := make(object)
	for path, item := range at(d.root, "paths") {
		for method, operation := range item.(object) {
			renamed := d.operation(path, operation.(object), components, messages)
			if paths[renamed] == nil {
				paths[renamed] = make(object)
			}
			paths[renamed].(object)[method] = operation
		}
	}
	d.root["paths"] = paths
	for _, name := range slices.Sorted(maps.Keys(components)) {
		schema := components[name]
		if message := messages[name]; message != nil {
			exclude(schema.(object), message)
		}
		if name == ownNames+"UpdateTaskRequest" {
			nullable(schema.(object))
		}
		if short, own := strings.CutPrefix(name, ownNames); own {
			components[short] = schema
			delete(components, name)
		}
	}
	rename(d.root)
}

// operation gives an operation its name and its body one, and returns its path.
func (d *document) operation(path string, o, components object, messages map[string]*descriptorpb.DescriptorProto) string {
	id := o["operationId"].(string)
	_, name, _ := strings.Cut(id, "_")
	o["operationId"] = strings.ToLower(name[:1]) + name[1:]
	method, _, _ := strings.Cut(name, "_")
	input := ownNames + method + "Request"
	if body, ok := o["requestBody"].(object); ok && messages[input] != nil {
		media := at(body, "content", "application/json")
		if _, named := media["schema"].(object)["$ref"]; !named {
			if components[input] == nil {
				components[input] = media["schema"]
			}
			media["schema"] = object{"$ref": schemas + input}
		}
	}
	parameters, _ := o["parameters"].([]any)
	for _, p := range parameters {
		parameter := p.(object)
		was, _ := parameter["name"].(string)
		if _, last, nested := strings.Cut(was, "."); nested && parameter["in"] == "path" {
			own := strings.TrimPrefix(last, "task_")
			parameter["name"] = own
			path = strings.ReplaceAll(path, "{"+was+"}", "{"+own+"}")
		}
	}
	return path
}

// nullable lets fields be null, which stands for their defaults in a merge patch.
func nullable(schema object) {
	properties := at(schema, "properties")
	for name, p := range properties {
		switch property := p.(object); {
		case property["$ref"] != nil:
			properties[name] = object{"anyOf": []any{property, object{"type": "null"}}}
		default:
			property["type"] = []any{property["type"], "null"}
		}
	}
}

// exclude says of the fields of a oneof that at most one is set.
func exclude(schema object, m *descriptorpb.DescriptorProto) {
	delete(schema, "oneOf")
	delete(schema, "allOf")
	var rules []any
	for i := range m.OneofDecl {
		var names []string
		for _, field := range m.Field {
			if field.OneofIndex != nil && int(field.GetOneofIndex()) == i && !field.GetProto3Optional() {
				names = append(names, field.GetName())
			}
		}
		for a := range names {
			for b := a + 1; b < len(names); b++ {
				rules = append(rules, object{"not": object{"required": []any{names[a], names[b]}}})
			}
		}
	}
	if len(rules) > 0 {
		schema["allOf"] = rules
	}
}

// rename takes the package off references.
func rename(v any) {
	switch v := v.(type) {
	case object:
		if ref, ok := v["$ref"].(string); ok {
			v["$ref"] = strings.Replace(ref, schemas+ownNames, schemas, 1)
		}
		for _, inner := range v {
			rename(inner)
		}
	case []any:
		for _, inner := range v {
			rename(inner)
		}
	}
}

// at is the object at a path, which is there.
func at(v object, path ...string) object {
	for _, name := range path {
		v = v[name].(object)
	}
	return v
}

// asJSON is YAML as JSON, in an order that does not depend on how it was made.
func asJSON(text []byte) ([]byte, error) {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(v)
	return out.Bytes(), err
}
