package pebblestore

import "time"

func now() time.Time { return time.UnixMicro(time.Now().UnixMicro()).UTC() }
