package main

import (
	"net"
)

// off turns a listener off.
const off = "off"

// checkListener refuses an address that other machines can reach, since there
// is no authentication yet, unless that is what the operator asked for.
func checkListener(flag, addr string, insecure bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usagef("--%s %q: want host:port", flag, addr)
	}
	if insecure || isLoopback(host) {
		return nil
	}
	return usagef("--%s %s: other machines could reach it, and there is no authentication; use 127.0.0.1, or accept that with --insecure", flag, addr)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
