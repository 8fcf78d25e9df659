package bounded

import (
	"net"
	"net/http"
	"time"
)

// Limits for connecting to a server, and then for the TLS or ssh handshake.
const (
	DialTimeout      = 30 * time.Second
	HandshakeTimeout = 15 * time.Second
)

// KeepAlive is the interval between probes of an idle connection.
const KeepAlive = 30 * time.Second

// Transport returns a transport for http and https requests. It uses the proxy of the environment, and limits connecting,
// the wait for a response to begin, and the size of its header.
func Transport(responseTimeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: DialTimeout, KeepAlive: KeepAlive}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    HandshakeTimeout,
		ResponseHeaderTimeout:  responseTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
}
