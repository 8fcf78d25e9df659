package bounded

import (
	"net"
	"net/http"
	"time"
)

// How long connecting to a server may take, and then the handshake of TLS or ssh.
const (
	DialTimeout      = 30 * time.Second
	HandshakeTimeout = 15 * time.Second
)

// KeepAlive is how often a connection without requests is probed.
const KeepAlive = 30 * time.Second

// Transport is what http and https requests go through: by the proxy of the environment, and with bounds on connecting, on
// the wait for an answer to begin, and on its header.
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
