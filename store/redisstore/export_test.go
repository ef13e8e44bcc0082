package redisstore

// Stored returns what an id is stored as.
func Stored(id string) string { return string(appendID(nil, id)) }
