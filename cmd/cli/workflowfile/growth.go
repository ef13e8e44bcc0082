package workflowfile

import (
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// ReadGrowth reads what a command adds to the workflow of its step: the message of the API as JSON,
// as short as a file of a workflow may be.
func ReadGrowth(text []byte) (*ddqv1.Growth, error) {
	var file map[string]any
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	if err := shorten(file, "", "", "again"); err != nil {
		return nil, err
	}
	if err := shortSteps(file); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	g := &ddqv1.Growth{}
	if err := protojson.Unmarshal(plain, g); err != nil {
		return nil, errors.New(plainText(err))
	}
	return g, nil
}
