// Package access decides whether a URL may be requested, and chooses the credentials. All code that opens a connection calls
// [Decide]. The package is pure: it reads URLs as text, resolves no names and never sees a secret.
//
// Credentials belong to a URL prefix, and the longest one wins. Plain credentials belong to the origin of [Request].PlainFor. If
// there are sources, a URL is requested only within them.
//
// A URL from a server's answer gets no credentials, unless it has the same origin and prefix. An answer never leads from https to
// http, and never from another server to a private address. A URL that normalization would change is an error.
package access
