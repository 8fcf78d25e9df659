// Package access decides whether a URL may be requested, and which credentials the request gets. All code that opens a
// connection asks [Decide]. The package is pure: it reads URLs as text, resolves no names and never sees a secret.
//
// The rules, in short:
//
//   - Credentials belong to the beginning of a URL. The longest matching prefix wins. Plain credentials, which have no URL,
//     belong to one origin: that of [Request].PlainFor.
//   - A URL is requested only within the sources, where there are any.
//   - A URL that a server's answer names is requested without credentials, unless it has the same origin and prefix. It
//     never goes from https to http, and never from elsewhere to a private address.
//   - A URL that normalization would change is an error.
package access
