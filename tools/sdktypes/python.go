package main

import (
	"fmt"
	"slices"
	"strings"
)

var python = words{
	text: "str", number: "int", boolean: "bool", anything: "object", object: "Dict[str, object]",
	list: func(of string) string { return "List[" + of + "]" },
	null: " | None",
}

// pythonWords are the fields that no attribute of a class may be named.
var pythonWords = []string{"from", "try", "in", "is", "class", "import", "global", "not", "or", "and", "if", "else", "for", "with", "as", "pass", "return"}

func asPython(schemas map[string]*schema) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\nfrom __future__ import annotations\n\nfrom typing import Dict, List, Literal, TypedDict\n", header)
	for _, name := range sorted(schemas) {
		if err := pythonType(&out, name, schemas[name]); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	return out.String(), nil
}

func pythonType(out *strings.Builder, name string, s *schema) error {
	out.WriteString("\n\n")
	remark(out, "", note(s))
	switch {
	case len(s.Enum) > 0:
		fmt.Fprintf(out, "%s = Literal[\n    \"%s\",\n]\n", name, strings.Join(s.Enum, "\",\n    \""))
		return nil
	case len(s.Properties) == 0:
		spelled, err := python.spell(s)
		fmt.Fprintf(out, "%s = %s\n", name, spelled)
		return err
	case slices.ContainsFunc(pythonWords, func(word string) bool { return s.Properties[word] != nil }):
		return pythonFields(out, s, name+" = TypedDict(\""+name+"\", {\n", "    \"%s\": \"%s\",\n", "}, total=False)\n")
	}
	return pythonFields(out, s, "class "+name+"(TypedDict, total=False):\n", "    %s: %s\n", "")
}

// pythonFields writes the fields of a type, each in the form given, between its ends.
func pythonFields(out *strings.Builder, s *schema, begin, form, end string) error {
	out.WriteString(begin)
	for _, field := range sorted(s.Properties) {
		spelled, err := python.spell(s.Properties[field])
		if err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		remark(out, "    ", note(s.Properties[field]))
		fmt.Fprintf(out, form, field, spelled)
	}
	out.WriteString(end)
	return nil
}

func remark(out *strings.Builder, indent string, lines []string) {
	for _, line := range lines {
		fmt.Fprintf(out, "%s\n", strings.TrimRight(indent+"# "+line, " "))
	}
}
