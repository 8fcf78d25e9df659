package fleet_test

import (
	"fmt"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

var sizes = []int{1_000, fleettest.ReferenceAssignments, fleettest.StretchAssignments}

func BenchmarkDecode(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			input := fleettest.Input(fleettest.Reference(size, 1))
			b.ReportAllocs()
			for b.Loop() {
				if _, findings := fleet.Decode(input); len(findings) > 0 {
					b.Fatal(findings)
				}
			}
		})
	}
}

func BenchmarkModel(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f, _ := fleettest.Reference(size, 1)
			b.ReportAllocs()
			for b.Loop() {
				text, err := f.Model()
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(text)))
			}
		})
	}
}

func BenchmarkParseModel(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f, _ := fleettest.Reference(size, 1)
			text := model(b, f)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fleet.ParseModel(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkValue measures writing the value of a decoded fleet, and reading it.
func BenchmarkValue(b *testing.B) {
	for _, size := range sizes {
		decoded, findings := fleet.Decode(fleettest.Input(fleettest.Reference(size, 1)))
		if len(findings) > 0 {
			b.Fatal(findings)
		}
		value, err := decoded.Value()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("make/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decoded.Value(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("read/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := value.Fleet(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
