package pebblestore

import (
	"fmt"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
	"github.com/ddq-io/ddq/store/record"
)

// readTopic reads the configuration of a topic.
func readTopic(d *datadir.Dir, name string) (topic store.Topic, err error) {
	err = store.ErrTopicNotFound
	if readErr := d.Read(topicKey(name), func(b []byte) (bad error) {
		topic, bad = record.DecodeTopic(b)
		err = nil
		return bad
	}); readErr != nil {
		return store.Topic{}, readErr
	}
	if err != nil {
		return store.Topic{}, fmt.Errorf("%w: %s", err, name)
	}
	return topic, nil
}

// eachTopic calls f with every topic, by name.
func eachTopic(d *datadir.Dir, f func(store.Topic)) error {
	lower, upper := appendPrefix(nil, 0, tableTopics), appendPrefix(nil, 0, tableTopics+1)
	return d.Scan(lower, upper, func(_, value []byte) (bool, error) {
		topic, err := record.DecodeTopic(value)
		if err != nil {
			return false, d.ReadError(err)
		}
		f(topic)
		return true, nil
	})
}
