package gitops

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// measureAllocated returns the bytes allocated by a call. No other goroutine may run at the same time.
func measureAllocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// maxAllocated is the limit for reading and writing a record of the given size.
func maxAllocated(size int) uint64 { return 1<<20 + 160*uint64(size) }

// attacks returns records that could grow when read or written, by the kind of growth.
func attacks() map[string]string {
	deep := func(levels int) string {
		return `{"format":1,"deployment_targets":{},"clusters":[],"x":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + "}"
	}
	repeat := func(text string, times int) string { return strings.Repeat(text+",", times) + text }
	return map[string]string{
		"10,000 levels, 20 KB": deep(9_990),
		"levels in a folder, 40 KB": `{"format":1,"deployment_targets":{"a":{"tree":"` + oneTree + `","x":` + strings.Repeat(
			`{"a":`,
			6000,
		) + "1" + strings.Repeat(
			"}",
			6000,
		) + `}}}`,
		"levels with spaces, 64 KB": `{"format":1,"deployment_targets":{},"clusters":[],"x":` + strings.Repeat(
			"[               ",
			2000,
		) + strings.Repeat(
			"               ]",
			2000,
		) + "}",
		"empty folders, 4 MiB": func() string {
			var b strings.Builder
			for i := range 400_000 {
				fmt.Fprintf(&b, `"%x":{},`, i)
			}
			return `{"format":1,"deployment_targets":{` + b.String() + `"a":{}}}`
		}(),
		"empty objects, 4 MiB":  `{"format":1,"deployment_targets":{"a":{"tree":"` + oneTree + `","objects":[` + repeat("{}", 1_400_000) + `]}}}`,
		"empty policies, 4 MiB": `{"format":1,"deployment_targets":{"a":{"tree":"` + oneTree + `","policies":[` + repeat(`""`, 1_400_000) + `]}}}`,
		"members of a newer format, 2 MiB": func() string {
			var b strings.Builder
			for i := range 20_000 {
				fmt.Fprintf(&b, `"%x":{"tree":%q,"source":1,"changed":"","workspace":""},`, i, oneTree)
			}
			return `{"format":9,"deployment_targets":{` + b.String() + `"a":{"tree":"` + oneTree + `"}}}`
		}(),
		"escapes, 1 MiB":        `{"format":9,"deployment_targets":{},"x":"` + strings.Repeat(`\u003c`, 1<<18) + `"}`,
		"empty clusters, 2 MiB": `{"format":1,"clusters":[` + repeat("{}", 700_000) + `]}`,
		"no text, 8 MiB":        "{" + strings.Repeat("\xff", 8<<20-2) + "}",
	}
}

// Without a limit, a record of 20 KB was written as 196 MB, and one of 79 KB took 2.6 GB.
func TestMemoryForARecordIsProportionalToItsSize(t *testing.T) {
	for name, content := range attacks() {
		for kind, read := range map[string]func() (encoded []byte, err error){
			"an owner": func() ([]byte, error) {
				record, err := parseRecord([]byte(content))
				if err != nil {
					return nil, err
				}
				return record.encode(), nil
			},
			"a claim": func() ([]byte, error) {
				record, err := parseClaim([]byte(content))
				if err != nil {
					return nil, err
				}
				return record.encode(), nil
			},
		} {
			var encoded []byte
			var err error
			took := measureAllocated(func() { encoded, err = read() })
			t.Logf("%s of %s: %d bytes in, %d out, %d allocated, %v", name, kind, len(content), len(encoded), took, err)
			if strings.Contains(name, "levels") && err == nil {
				t.Errorf("%s of %s is accepted", name, kind)
			}
			if took > maxAllocated(len(content)) {
				t.Errorf("%s of %s takes %d MiB", name, kind, took>>20)
			}
			if len(encoded) > 2*len(content)+1<<10 {
				t.Errorf("%s of %s: %d bytes are written as %d", name, kind, len(content), len(encoded))
			}
		}
	}
}
