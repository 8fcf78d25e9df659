// Package largevalue takes large values past the plugin framework, between the server and what has or needs them.
package provider

import (
	"context"

	"github.com/flotilla/terraform-provider-flotilla/internal/wire"
)

type (
	argumentKey  struct{}
	readArgument struct{ value any }
)

// withArgument gives a function an argument that has been read.
func withArgument(ctx context.Context, value any) context.Context {
	return context.WithValue(ctx, argumentKey{}, &readArgument{value})
}

// argumentOf returns the argument that has been read; false where the framework reads it.
func argumentOf(ctx context.Context) (any, bool) {
	read, ok := ctx.Value(argumentKey{}).(*readArgument)
	if !ok {
		return nil, false
	}
	return read.value, true
}

type (
	asideKey       struct{}
	asideAttribute struct {
		name  string
		value []byte
	}
)

// withAside lets a data source set an attribute aside.
func withAside(ctx context.Context) (context.Context, *asideAttribute) {
	aside := &asideAttribute{}
	return context.WithValue(ctx, asideKey{}, aside), aside
}

// setAside keeps an attribute for the server, so that the framework sees it as null. It returns false where the
// framework must have the attribute.
func setAside(ctx context.Context, name string, write func(*wire.Writer)) bool {
	aside, ok := ctx.Value(asideKey{}).(*asideAttribute)
	if !ok {
		return false
	}
	var w wire.Writer
	write(&w)
	aside.name, aside.value = name, w.Bytes()
	return true
}
