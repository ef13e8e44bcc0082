// Package openapi has the description of the REST API in OpenAPI 3.1. make generate
// writes it from the protos and overlay.yaml.
package openapi

import _ "embed"

// Document is the description, in JSON.
//
//go:embed openapi.json
var Document string
