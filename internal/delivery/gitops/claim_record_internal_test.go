package gitops

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// claimFiles returns the records of claims in testdata, written by this version and newer ones.
func claimFiles(t testing.TB) map[string][]byte {
	t.Helper()
	return readFiles(t, "testdata/claims/*.json", 2)
}

func FuzzParseClaim(f *testing.F) {
	for _, seed := range []string{
		`{"format":1,"clusters":[]}`, `{"format":1,"clusters":[{"name":"a"},{"name":"a"}]}`, `null`, `{"format":1,"clusters":[null]}`,
		`{"format":9,"x":[ 1, {"a" : null} ],"holder":"<&>","clusters":[{"name":"../x","since":"yesterday","Name":1e400}]}`,
	} {
		f.Add([]byte(seed))
	}
	for _, content := range claimFiles(f) {
		f.Add(content)
	}
	for _, content := range attacks() {
		if len(content) < 1<<17 {
			f.Add([]byte(content))
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var record Claim
		var err error
		if took := measureAllocated(func() {
			if record, err = parseClaim(content); err == nil {
				record.encode()
			}
		}); took > maxAllocated(len(content)) {
			t.Fatalf("%d bytes take %d", len(content), took)
		}
		if err != nil {
			return
		}
		for _, name := range record.Names() {
			if err := checkClusterName(name); err != nil {
				t.Fatal(err)
			}
		}
		encoded := record.encode()
		if !json.Valid(encoded) {
			t.Fatalf("the record is written as invalid JSON: %s", encoded)
		}
		again, err := parseClaim(encoded)
		if err != nil || !bytes.Equal(again.encode(), encoded) || !slices.Equal(again.Names(), record.Names()) || again.Holder != record.Holder {
			t.Fatalf("%s: %v", encoded, err)
		}
		if got := record.withClusters(record.Names(), time.Time{}).encode(); !bytes.Equal(got, encoded) {
			t.Fatalf("unchanged clusters: got %s, want %s", got, encoded)
		}
		if len(again.more) != len(record.more) {
			t.Fatalf("fields are lost: %s", encoded)
		}
	})
}

func TestRecordsOfClaimsRoundTrip(t *testing.T) {
	t.Parallel()
	for name, content := range claimFiles(t) {
		record, err := parseClaim(content)
		if err != nil || !slices.Equal(record.Names(), []string{"pool-2", "pool-1"}) || record.Holder != "3f2a9c4e5b6d7081" ||
			record.Environment != "prod" {
			t.Errorf("%s: %+v, %v", name, record, err)
			continue
		}
		if got := record.encode(); !bytes.Equal(got, content) {
			t.Errorf("%s is written as %s", name, got)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, content); err != nil {
			t.Fatal(err)
		}
		again, err := parseClaim(compact.Bytes())
		if err != nil || !bytes.Equal(again.encode(), content) {
			t.Errorf("%s, compact, is written as %s, %v", name, again.encode(), err)
		}
	}
	record, err := parseClaim(claimFiles(t)["newer.json"])
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC)
	text := string(record.withClusters([]string{"pool-2", "pool-9"}, now).encode())
	for _, want := range []string{`"format": 2`, `"until":"<noon>"`, `"priority"`, `"since": "2026-11-22T05:00:00Z"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

func TestARecordOfAClaimIsParsed(t *testing.T) {
	t.Parallel()
	record, err := parseClaim(claimFiles(t)["format_1.json"])
	want := Claim{
		Environment: "prod", Holder: "3f2a9c4e5b6d7081", Format: 1, more: fields{},
		Clusters: []ClaimedCluster{{"pool-2", time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC), fields{}}, {Name: "pool-1", more: fields{}}},
	}
	if err != nil || !reflect.DeepEqual(record, want) {
		t.Errorf("got %+v, %v\nwant %+v", record, err, want)
	}
}

func TestBadRecordsOfClaimsAreRefused(t *testing.T) {
	t.Parallel()
	clusters := func(text string) string { return `{"format":1,"clusters":[` + text + `]}` }
	for content, want := range map[string]string{
		`{"clusters":[]}`:                                    "no format",
		`{"format":0,"clusters":[]}`:                         "no format",
		`{"format":"1","clusters":[]}`:                       "format",
		`{"format":1}`:                                       "no clusters",
		`{"format":1,"clusters":{}}`:                         "clusters",
		`{"format":1,"clusters":[],"holder":1}`:              "holder",
		`{"format":1,"clusters":[],"environment":"a\u0007"}`: "control character",
		`{"format":1,"clusters":[],"holder":"` + strings.Repeat("x", 254) + `"}`: "253 bytes",
		clusters(`"a"`):                                "string",
		clusters(`null`):                               "not the name",
		clusters(`{"name":""}`):                        "not the name",
		clusters(`{"name":"a b"}`):                     "not the name",
		clusters(`{"name":1}`):                         "name",
		clusters(`{"name":"a","since":1}`):             "since",
		clusters(`{"name":"a"},{"name":"a"}`):          "twice",
		clusters(`{}` + strings.Repeat(",{}", 10_000)): "more values",
		`[]`: "array", `{`: "unexpected end", "": "unexpected end",
		strings.Repeat(" ", maxClaim+1): "4 MiB",
	} {
		if _, err := parseClaim([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: err = %v, want %q", content, err, want)
		}
	}
	record, err := parseClaim([]byte(clusters(`{"name":"a","since":"yesterday"}`)))
	if err != nil || !record.Clusters[0].Since.IsZero() {
		t.Errorf("%+v, %v", record, err)
	}
}
