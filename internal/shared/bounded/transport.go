package bounded

import (
	"net"
	"net/http"
	"time"
)

// Limits of connecting, and of the TLS or ssh handshake.
const (
	DialTimeout      = 30 * time.Second
	HandshakeTimeout = 15 * time.Second
)

// KeepAlive is the interval between probes of an idle connection.
const KeepAlive = 30 * time.Second

// Transport returns a transport that uses the proxy of the environment and limits the time until a response begins.
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
