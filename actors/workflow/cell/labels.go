package cell

import "github.com/ddq-io/ddq/store"

// Labels are the labels of a workflow as they are stored.
func Labels(labels []store.Attribute) (c []*Label) {
	for _, l := range labels {
		c = append(c, &Label{Key: l.Key, Value: l.Value})
	}
	return c
}

// Attributes reads what Labels wrote.
func Attributes(c []*Label) (labels []store.Attribute) {
	for _, l := range c {
		labels = append(labels, store.Attribute{Key: l.Key, Value: l.Value})
	}
	return labels
}
