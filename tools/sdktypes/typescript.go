package main

import (
	"fmt"
	"slices"
	"strings"
)

var typeScript = words{
	text: "string", number: "number", boolean: "boolean", anything: "unknown", object: "Record<string, unknown>",
	list: func(of string) string { return of + "[]" },
	null: " | null",
}

func asTypeScript(schemas map[string]*schema) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "// %s\n", header)
	for _, name := range sorted(schemas) {
		s := schemas[name]
		out.WriteByte('\n')
		comment(&out, "", note(s))
		if len(s.Properties) == 0 {
			if err := alias(&out, name, s); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		fmt.Fprintf(&out, "export interface %s {\n", name)
		for _, field := range sorted(s.Properties) {
			is := s.Properties[field]
			spelled, err := typeScript.spell(is)
			if err != nil {
				return "", fmt.Errorf("%s.%s: %w", name, field, err)
			}
			comment(&out, "  ", note(is))
			mark := "?"
			if slices.Contains(s.Required, field) {
				mark = ""
			}
			fmt.Fprintf(&out, "  %s%s: %s;\n", field, mark, spelled)
		}
		out.WriteString("}\n")
	}
	return out.String(), nil
}

// alias writes what is no object with fields.
func alias(out *strings.Builder, name string, s *schema) error {
	if len(s.Enum) > 0 {
		fmt.Fprintf(out, "export type %s =\n  | \"%s\";\n", name, strings.Join(s.Enum, "\"\n  | \""))
		return nil
	}
	spelled, err := typeScript.spell(s)
	fmt.Fprintf(out, "export type %s = %s;\n", name, spelled)
	return err
}

func comment(out *strings.Builder, indent string, lines []string) {
	switch len(lines) {
	case 0:
	case 1:
		fmt.Fprintf(out, "%s/** %s */\n", indent, lines[0])
	default:
		fmt.Fprintf(out, "%s/**\n", indent)
		for _, line := range lines {
			fmt.Fprintf(out, "%s\n", strings.TrimRight(indent+" * "+line, " "))
		}
		fmt.Fprintf(out, "%s */\n", indent)
	}
}
