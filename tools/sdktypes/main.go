// Command sdktypes writes the types of the TypeScript and Python SDKs from the
// description of the REST API:
//
//	sdktypes openapi.json types.gen.ts _types.py
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 4 {
		log.Fatal("usage: sdktypes openapi.json types.gen.ts _types.py")
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatalf("sdktypes: %v", err)
	}
}

func run(description, typescript, python string) error {
	text, err := os.ReadFile(description)
	if err != nil {
		return err
	}
	var doc struct {
		Components struct{ Schemas map[string]*schema }
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("%s: %w", description, err)
	}
	for file, write := range map[string]func(map[string]*schema) (string, error){typescript: asTypeScript, python: asPython} {
		out, err := write(doc.Components.Schemas)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
			return err
		}
	}
	return nil
}
