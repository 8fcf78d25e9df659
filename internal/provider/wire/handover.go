package wire

import "context"

// The context of a call hands large values over between the server and the function or data source that has them.

type (
	argumentKey  struct{}
	readArgument struct{ value any }
)

// WithArgument gives a function an argument that has been read.
func WithArgument(ctx context.Context, value any) context.Context {
	return context.WithValue(ctx, argumentKey{}, &readArgument{value})
}

// ArgumentOf returns the argument that has been read; false where the framework reads it.
func ArgumentOf(ctx context.Context) (any, bool) {
	read, ok := ctx.Value(argumentKey{}).(*readArgument)
	if !ok {
		return nil, false
	}
	return read.value, true
}

type (
	asideKey struct{}
	// Aside is an attribute that is set aside: its name, and its value as Terraform gets it.
	Aside struct {
		Name  string
		Value []byte
	}
)

// WithAside lets a data source set an attribute aside.
func WithAside(ctx context.Context) (context.Context, *Aside) {
	aside := &Aside{}
	return context.WithValue(ctx, asideKey{}, aside), aside
}

// SetAside keeps an attribute for the server, so that the framework sees it as null. It returns false where the
// framework must have the attribute.
func SetAside(ctx context.Context, name string, write func(*Writer)) bool {
	aside, ok := ctx.Value(asideKey{}).(*Aside)
	if !ok {
		return false
	}
	w := NewWriter()
	write(w)
	aside.Name, aside.Value = name, w.Bytes()
	return true
}
