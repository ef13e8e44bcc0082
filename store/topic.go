package store

import "time"

// Topic is the configuration of a topic.
type Topic struct {
	Name           string
	Shards         int
	Visibility     time.Duration
	MaxRetries     int
	Backoff        Backoff
	MaxDelay       time.Duration
	MaxPayload     int // bytes
	DoneRetention  time.Duration
	DeliveryPaused bool
	EnqueuePaused  bool
	Version        int64 // rises by one with every change
}
