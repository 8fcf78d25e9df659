// Package bounded limits the size and duration of server responses.
package bounded

import (
	"io"
	"net"
	"net/http"
	"time"
)

// Reader returns TooLong after more than Left bytes. Callers may raise Left between reads.
type Reader struct {
	From    io.Reader
	Left    int64 // bytes; negative after the limit
	TooLong error
}

func (r *Reader) Read(p []byte) (int, error) {
	if r.Left < 0 {
		return 0, r.TooLong
	}
	if int64(len(p)) > r.Left+1 { // one more byte shows the excess
		p = p[:r.Left+1]
	}
	n, err := r.From.Read(p)
	if r.Left -= int64(n); r.Left < 0 {
		return n, r.TooLong
	}
	return n, err
}

// Body limits a response body to most bytes.
func Body(body io.ReadCloser, most int64, tooLong error) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{&Reader{From: body, Left: most, TooLong: tooLong}, body}
}

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
