package main

import (
	"strings"
	"testing"
)

func TestTableHasARowForEachBenchmark(t *testing.T) {
	t.Parallel()
	tables, err := read(strings.NewReader(`goos: linux
pkg: example.com/empty
PASS
pkg: example.com/a
cpu: some
BenchmarkGo/size=1-8   	     100	  12345678 ns/op	   1024 B/op	       3 allocs/op
BenchmarkGo/size=1-8   	     100	  11345678 ns/op	   1025 B/op	       4 allocs/op
BenchmarkGo/size=1-8   	     100	  13345678 ns/op	   1026 B/op	       5 allocs/op
BenchmarkGit-8         	       1	1500000000 ns/op	   0.5 peak-MiB
BenchmarkGit-8         	--- SKIP
ok  	example.com/a	1.2s
pkg: example.com/b
BenchmarkOne 	 1000000	       250.4 ns/op	  87.21 MB/s	 3221225472 B/op
`))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for i := range tables {
		tables[i].write(&got)
	}
	want := `example.com/a    time  allocated  allocs/op  peak-MiB
Go/size=1      11.3ms    1.00KiB          4          
Git             1.50s                            0.50

example.com/b   time  MB/s  allocated
One            250ns  87.2       3GiB

`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}
