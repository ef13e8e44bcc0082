package record

import "github.com/ddq-io/ddq/store"

// encodeStep returns nil for no step.
func encodeStep(s *store.StepOf) *Step {
	if s == nil {
		return nil
	}
	out := &Step{
		Workflow: s.Workflow, Topic: s.Topic, Kind: s.Kind, Name: s.Name, Copy: int32(s.Copy), Try: int32(s.Try), Starts: int32(s.Starts),
		Undo: s.Undo, Input: s.Input, Cut: s.Cut, Journal: journalMessage(s.Journal),
	}
	for i := range s.Inputs {
		in := &s.Inputs[i]
		out.Inputs = append(out.Inputs, &StepInput{Step: in.Step, Copy: int32(in.Copy), End: int32(in.End), Size: int64(in.Size), Result: in.Result, Error: []byte(in.Error)})
	}
	return out
}

// decodeStep returns nil for no step.
func decodeStep(s *Step) *store.StepOf {
	if s == nil {
		return nil
	}
	out := &store.StepOf{
		Workflow: s.Workflow, Topic: s.Topic, Kind: s.Kind, Name: s.Name, Copy: int(s.Copy), Try: int(s.Try), Starts: int(s.Starts),
		Undo: s.Undo, Input: orNil(s.Input), Cut: s.Cut, Journal: entriesOf(s.Journal),
	}
	for _, in := range s.Inputs {
		out.Inputs = append(out.Inputs, store.StepInput{
			Step: in.Step, Copy: int(in.Copy), End: store.StepEnd(in.End), Size: int(in.Size), Result: orNil(in.Result), Error: string(in.Error),
		})
	}
	return out
}

// orNil is nil for no bytes, whether they were written or not.
func orNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
