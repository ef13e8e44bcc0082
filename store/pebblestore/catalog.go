package pebblestore

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

const formatVersion = 1

// checkFormat refuses a directory of another layout, and marks a new one.
func checkFormat(d *directory) error {
	key := appendPrefix(nil, 0, tableFormat)
	var found []byte
	if err := d.read(key, func(b []byte) error { found = append(found, b...); return nil }); err != nil {
		return err
	}
	switch {
	case found == nil:
		if err := d.db.Set(key, []byte{formatVersion}, pebble.Sync); err != nil {
			return err
		}
		return d.disk.failure()
	case len(found) != 1 || found[0] != formatVersion:
		return fmt.Errorf("its layout has version %d, and this program knows version %d", found, formatVersion)
	}
	return nil
}

// readTopic reads the configuration of a topic.
func readTopic(d *directory, name string) (topic store.Topic, err error) {
	err = store.ErrTopicNotFound
	if readErr := d.read(topicKey(name), func(b []byte) (bad error) {
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
func eachTopic(d *directory, f func(store.Topic)) error {
	lower, upper := appendPrefix(nil, 0, tableTopics), appendPrefix(nil, 0, tableTopics+1)
	return d.scan(lower, upper, func(_, value []byte) (bool, error) {
		topic, err := record.DecodeTopic(value)
		if err != nil {
			return false, d.readError(err)
		}
		f(topic)
		return true, nil
	})
}
