package redisstore

// Stored returns what an id is stored as.
func Stored(id string) string { return string(appendID(nil, id)) }

// Dialer is what connections are made with.
var Dialer = dialer
