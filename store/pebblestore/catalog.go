package pebblestore

import (
	"fmt"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
	"github.com/ddq-io/ddq/store/record"
)

const formatVersion = 1

// checkFormat refuses a directory of another layout, and marks a new one.
func checkFormat(d *datadir.Dir) error {
	key := appendPrefix(nil, 0, tableFormat)
	var found []byte
	if err := d.Read(key, func(b []byte) error { found = append(found, b...); return nil }); err != nil {
		return err
	}
	switch {
	case found == nil:
		return d.Set(key, []byte{formatVersion})
	case len(found) != 1 || found[0] != formatVersion:
		return fmt.Errorf("its layout has version %d, and this program knows version %d", found, formatVersion)
	}
	return nil
}

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
