// Package webtest has the HTTP client of tests.
package webtest

import "net/http"

// Transport takes the place of http.DefaultTransport: each httptest.Server closes the idle connections of that one at its end,
// and breaks a request of a parallel test that has just taken one of them.
var Transport = http.DefaultTransport.(*http.Transport).Clone()

// Client sends its requests through Transport.
var Client = &http.Client{Transport: Transport}
