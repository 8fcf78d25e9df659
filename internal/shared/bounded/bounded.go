// Package bounded bounds how much is read of what a server answers.
package bounded

import "io"

// Reader reads From, and ends with TooLong once more than Left bytes came. Left may be raised while it reads: no byte is lost.
type Reader struct {
	From    io.Reader
	Left    int64 // bytes; negative once there were more
	TooLong error
}

func (r *Reader) Read(p []byte) (int, error) {
	if r.Left < 0 {
		return 0, r.TooLong
	}
	if int64(len(p)) > r.Left+1 { // one more shows that there is more
		p = p[:r.Left+1]
	}
	n, err := r.From.Read(p)
	if r.Left -= int64(n); r.Left < 0 {
		return n, r.TooLong
	}
	return n, err
}

// Body is the body of an answer that ends with tooLong after most bytes, if there are more.
func Body(body io.ReadCloser, most int64, tooLong error) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{&Reader{From: body, Left: most, TooLong: tooLong}, body}
}
