package artifact_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

var (
	commit = strings.Repeat("a1", 20)
	digest = "sha256:" + strings.Repeat("b2", 32)
)

func samplePins() artifact.Resolved {
	return artifact.Resolved{
		"till-live": {
			Manifests: folder.Manifests{Storage: "helm", Repo: "https://charts.example.com", Chart: "till", Version: ">=3 <4"},
			Pin:       folder.Pin{Version: "3.2.1", Digest: digest},
		},
		"hello-live": {
			Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/hello", Branch: "main", Path: "live"},
			Pin:       folder.Pin{Commit: commit},
		},
		"edge-live": {
			Manifests: folder.Manifests{Storage: "oci", Repo: "oci://registry.example.com/edge"},
			Pin:       folder.Pin{Version: "latest", Digest: digest},
		},
	}
}

func TestPinsSurviveEncoding(t *testing.T) {
	t.Parallel()
	text, err := samplePins().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"format":"1","targets":{"edge-live":{"manifests":{"storage":"oci","repo":"oci://registry.example.com/edge"},` +
		`"pin":{"version":"latest","digest":"` + digest + `"}},"hello-live":{"manifests":{"storage":"git","repo":"https://git.example.com/hello",` +
		`"branch":"main","path":"live"},"pin":{"commit":"` + commit + `"}},"till-live":{"manifests":{"storage":"helm","repo":"https://charts.example.com",` +
		`"chart":"till","version":">=3 <4"},"pin":{"version":"3.2.1","digest":"` + digest + `"}}}}`; text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	read, err := artifact.Decode(text)
	if err != nil || !maps.Equal(read, samplePins()) {
		t.Errorf("decoded %v, %v", read, err)
	}
	if text, err := artifact.Resolved(nil).Encode(); err != nil || text != `{"format":"1","targets":{}}` {
		t.Errorf("no pins are encoded as %s, %v", text, err)
	}
	if read, err := artifact.Decode(`{"format":"1"}`); err != nil || len(read) > 0 {
		t.Errorf("no pins are decoded as %v, %v", read, err)
	}
}

func TestPinIsForEqualManifestsOnly(t *testing.T) {
	t.Parallel()
	entry := samplePins()["hello-live"]
	same := entry.Manifests
	same.Pin.Commit = commit
	if !entry.IsFor(same) {
		t.Error("the entry does not apply to its own manifests with a pin")
	}
	same.Branch = "next"
	if entry.IsFor(same) {
		t.Error("the entry applies to another branch")
	}
}

func TestInvalidPinsAreRefused(t *testing.T) {
	t.Parallel()
	git := func(rest string) string {
		return `{"format":"1","targets":{"a-b":{"manifests":{"storage":"git","repo":"r"` + rest
	}
	for text, want := range map[string]string{
		``:                               "does not come from flotilla_artifacts",
		`[]`:                             "does not come from flotilla_artifacts",
		`{"format":"2","x":1}`:           `format "2", but this release`,
		`{}`:                             `format ""`,
		`{"format":"1","x":1}`:           "unknown field",
		`{"format":"1"} {}`:              "does not come from",
		git(`},"pin":{}}}}`):             `deployment target "a-b": the pin is not the full id of a commit`,
		git(`},"pin":{"commit":"a"}}}}`): "full id of a commit",
		git(`},"pin":{"commit":"` + commit + `","version":"1"}}}}`):                                                      "full id of a commit",
		git(`,"pin":{"commit":"` + commit + `"}},"pin":{"commit":"` + commit + `"}}}}`):                                  "a pin of their own",
		git(`,"branch":"a\u001b"},"pin":{"commit":"` + commit + `"}}}}`):                                                 "a character that is not shown",
		`{"format":"1","targets":{"a\u202e":{}}}`:                                                                        "the name of a deployment target",
		`{"format":"1","targets":{"a-b":{"manifests":{"storage":"git"}}}}`:                                               "no repo",
		`{"format":"1","targets":{"a-b":{"manifests":{"storage":"s3","repo":"r"}}}}`:                                     `storage "s3"`,
		`{"format":"1","targets":{"a-b":{"manifests":{"storage":"oci","repo":"r"}}}}`:                                    "not a digest",
		`{"format":"1","targets":{"a-b":{"manifests":{"storage":"helm","repo":"r"},"pin":{"digest":"` + digest + `"}}}}`: "no version",
		strings.Repeat(" ", 32<<20+1):                                                                                    "more than 32 MiB",
	} {
		if _, err := artifact.Decode(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %q", text, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	text, err := samplePins().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(`{"format":"1","targets":{"a":{"manifests":{},"pin":{}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		read, err := artifact.Decode(text)
		if err != nil {
			return
		}
		again, err := read.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if second, err := artifact.Decode(again); err != nil || !maps.Equal(read, second) {
			t.Errorf("%q becomes %q: %v", text, again, err)
		}
	})
}
